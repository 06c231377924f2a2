// Routes a request to its object, in your own Worker. URLs are untrusted, and a Worker may bind other
// objects. So a URL reaches only the namespaces that the program names, and never the directory of agents.

import { opensStream, streamOf } from "./mcp_stream.js";
import { describe } from "./oauth.js";
import { agentOfState } from "./oauth_state.js";

/** The prefix of all URLs of agents, whatever the class is called. */
const ADDRESS = "session-agent";

/** The paths of the OAuth redirect, and of the client's metadata. */
const CALLBACK = "/oauth/callback";
const CLIENT = "/oauth/client.json";

/** The binding of agents, and that of their directory. */
const AGENTS = "SESSION_AGENT";
const DIRECTORY = "DIRECTORY";

export interface RouteOptions {
  /** The namespace of the agents, whatever `{class}` is. Default: `env.SESSION_AGENT`, for `session-agent` alone. */
  namespace?: any;
  /**
   * Several namespaces, by the names of their bindings: `{ MY_AGENT: env.MY_AGENT }` is at
   * `/agents/my-agent/…`. No other namespace is reachable.
   */
  namespaces?: { [binding: string]: any };
}

/**
 * Answers a request to `/agents/{class}/{agent}/…`, and returns `null` for other requests. `{class}` is
 * `session-agent` for `env.SESSION_AGENT`, or the name of a binding in `options.namespaces` as the
 * Agents SDK writes it: `my-agent` for `MyAgent` or `MY_AGENT`. The object authenticates the caller.
 * Requests to `/oauth/callback` and `/oauth/client.json` go to the agents' namespace, if there is one.
 */
export async function routeSessionAgent(
  request: Request,
  env: any,
  options: RouteOptions = {},
): Promise<Response | null> {
  const description = describe(request, env);
  if (description !== null) return description;
  const url = new URL(request.url);
  if (url.pathname === CALLBACK || url.pathname === CLIENT) return await routeOAuth(request, url, env, options);
  const [, first, kind, agent] = url.pathname.split("/");
  if (first !== "agents" || !kind || !agent) return null;
  const namespace = namespaceOf(kind, env, options);
  if (kind === ADDRESS && namespace == null && isUsual(options)) return unbound();
  if (typeof namespace?.idFromName !== "function" || namespace === env?.[DIRECTORY]) return null;
  let name: string;
  try {
    name = decodeURIComponent(agent);
  } catch {
    return null;
  }
  const addressed =
    kind === ADDRESS
      ? request
      : new Request(
          Object.assign(url, { pathname: url.pathname.replace(`/agents/${kind}/`, () => `/agents/${ADDRESS}/`) }),
          request,
        );
  const object = namespace.get(namespace.idFromName(name));
  if (opensStream(addressed)) return await streamOf(addressed, (question) => object.fetch(question));
  return await object.fetch(addressed);
}

/**
 * Routes the redirect of an authorization server to the agent that its state names. A state that no
 * agent of this deployment created reaches none. The description of the client is the same in every
 * object.
 */
async function routeOAuth(request: Request, url: URL, env: any, options: RouteOptions): Promise<Response | null> {
  const namespaces = Object.values(options.namespaces ?? {});
  // The state names no class.
  const namespace = options.namespace ?? (options.namespaces === undefined ? env?.[AGENTS] : namespaces[0]);
  if (namespaces.length > 1) return null;
  if (typeof namespace?.idFromName !== "function" || namespace === env?.[DIRECTORY]) return null;
  const agent = url.pathname === CLIENT ? "oauth" : await agentOfState(url.searchParams.get("state"), env);
  if (agent === null) return null;
  return await namespace.get(namespace.idFromName(agent)).fetch(request);
}

const isUsual = ({ namespace, namespaces }: RouteOptions): boolean =>
  namespace === undefined && namespaces === undefined;

/** The answer of a Worker whose binding has another name, or none. */
function unbound(): Response {
  const message = `This Worker has no binding \`${AGENTS}\`. Give the binding of your class this name in the Wrangler configuration, or pass \`{ namespace: env.…}\` to \`routeSessionAgent\`.`;
  const error = { code: "not_configured", message, details: { binding: AGENTS } };
  return Response.json({ error }, { status: 501 });
}

function namespaceOf(kind: string, env: any, { namespace, namespaces }: RouteOptions): any {
  if (namespace !== undefined) return namespace;
  if (namespaces === undefined) return kind === ADDRESS ? env?.[AGENTS] : undefined;
  return Object.entries(namespaces).find(([binding]) => kebab(binding) === kind)?.[1];
}

/** A binding's name as it appears in an address. */
function kebab(name: string): string {
  const words =
    name === name.toUpperCase() ? name.toLowerCase() : name.replaceAll(/(?<!^)([A-Z])/g, "-$1").toLowerCase();
  return words.replaceAll("_", "-");
}
