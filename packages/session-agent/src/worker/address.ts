// Addresses as npm `agents` writes them, and its `getAgentByName`.

/** The prefix of every object's address, for any name of the class and the binding. */
const ADDRESS = "/agents/session-agent/";

/**
 * The request with this object's own address: `routeAgentRequest` of npm `agents` passes
 * `/agents/my-agent/…`, and the agent's name as encoded in the address. `name`: the object's name.
 */
export function addressOf(request: Request, name: string | undefined): Request {
  const url = new URL(request.url);
  const [, first, kind, agent, ...rest] = url.pathname.split("/");
  if (first !== "agents" || !kind || !agent) return request;
  // The object was found by the encoded name.
  const segment = agent === name ? encodeURIComponent(name) : agent;
  const pathname = [`${ADDRESS}${segment}`, ...rest].join("/");
  return pathname === url.pathname ? request : new Request(Object.assign(url, { pathname }), request);
}

/** A namespace of objects, as far as `getAgentByName` needs it. */
interface Namespace {
  idFromName(name: string): any;
  get(id: any): any;
}

/**
 * An object over its binding. Workers' own stub types recurse endlessly through values of type `any`
 * (TS2589); here, each method has the type that it has in the class.
 */
export type AgentStub<Agent> = {
  [Name in keyof Agent as Agent[Name] extends (...given: never[]) => unknown ? Name : never]: Agent[Name] extends (
    ...given: infer Given
  ) => infer Answer
    ? Answer extends Promise<unknown>
      ? Agent[Name]
      : (...given: Given) => Promise<Answer>
    : never;
};

/** Without an explicit class, the type is that of the namespace. */
interface Unnamed {
  unnamed: never;
}

/** A namespace without a class accepts any call. */
type StubOf<Agent, Given> = [Agent] extends [Unnamed]
  ? Given extends DurableObjectNamespace<infer Own>
    ? [Own] extends [undefined]
      ? any
      : AgentStub<Own>
    : any
  : AgentStub<Agent>;

/** The object with this name, with the methods of the namespace's class. It is created on first use. */
export function getAgentByName<Agent = Unnamed, Given extends Namespace = Namespace>(
  namespace: Given,
  name: string,
): Promise<StubOf<Agent, Given>> {
  return Promise.resolve(namespace.get(namespace.idFromName(name)));
}
