// The exports of scripts/build/shim.mjs, and the module that the build puts next to it.

declare module "#built" {
  /** The Worker in front of the objects. */
  const Entrypoint: any;
  export default Entrypoint;

  export class SessionAgent {
    constructor(ctx: any, env: any, seen?: any);
    fetch(request: Request): Promise<Response>;
    call(operation: string, json?: string, options?: object): Promise<string>;
    static inside: {
      fetch(object: object, request: Request, granted: string | undefined): Promise<Response>;
      call(object: object, operation: string, json: string): Promise<string>;
      /** A synchronous read: its JSON, or the thrown error. `undefined`: the read must wait. */
      callNow(object: object, operation: string, json: string): string | Error | undefined;
      /** The JSON of an input. Throws if the input is not an object. */
      textOf(operation: string, input: unknown): string;
      renew(object: object): void;
      forgetReads(object: object, mayBeRolledBack: boolean): void;
    };
  }

  export class AgentDirectory {
    constructor(ctx: any, env: any);
    fetch(request: Request): Promise<Response>;
    alarm(): Promise<void>;
  }
}

declare module "#defaults" {
  export function agentDefaults(): string | undefined;
}

declare module "cloudflare:workers" {
  export class DurableObject<Env = unknown> {
    protected ctx: any;
    protected env: Env;
    constructor(ctx: any, env: Env);
  }
}

// The types of the runtime, which a project gets from `wrangler types` or `@cloudflare/workers-types`.

declare namespace Rpc {
  interface DurableObjectBranded {
    __DURABLE_OBJECT_BRAND: never;
  }
}

declare class DurableObjectNamespace<Agent extends Rpc.DurableObjectBranded | undefined = undefined> {
  idFromName(name: string): any;
  get(id: any): { agent: Agent };
}
