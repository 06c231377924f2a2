// Addresses as npm `agents` writes them, and its `getAgentByName`.

/** The addresses of every object begin so, whatever the class and the binding are called. */
const ADDRESS = "/agents/session-agent/";

/**
 * A request with this object's own address: `routeAgentRequest` of npm `agents` hands on
 * `/agents/my-agent/…`, and an agent's name as the address encodes it. `name`: the object's.
 */
export function addressOf(request: Request, name: string | undefined): Request {
  const url = new URL(request.url);
  const [, first, kind, agent, ...rest] = url.pathname.split("/");
  if (first !== "agents" || !kind || !agent) return request;
  // The object was found by the name as the address has it.
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
 * An object over its binding. The types of Workers' own stubs go through values of any type
 * without end (TS2589); here a method has the type that it has in the class.
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

/** Who names no class has that of the namespace. */
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

/** The object of this name, with the methods of the namespace's class. It needs no call to be there. */
export function getAgentByName<Agent = Unnamed, Given extends Namespace = Namespace>(
  namespace: Given,
  name: string,
): Promise<StubOf<Agent, Given>> {
  return Promise.resolve(namespace.get(namespace.idFromName(name)));
}
