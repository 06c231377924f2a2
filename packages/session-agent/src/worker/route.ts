// From a request's address to its object, in a Worker of one's own.

/** The addresses of every object begin so, whatever the class is called. */
const ADDRESS = "session-agent";

export interface RouteOptions {
  /** The namespace of the objects. Default: the one that the address names, `SESSION_AGENT` for `/agents/session-agent/…`. */
  namespace?: any;
}

/**
 * Answers a request to `/agents/{class}/{agent}/…`, or gives `null` for another. `{class}` is
 * `session-agent`, or the name of a binding as the Agents SDK writes it: `my-agent` for
 * `MyAgent` or `MY_AGENT`. The object itself checks who asks.
 */
export async function routeSessionAgent(
  request: Request,
  env: any,
  options: RouteOptions = {},
): Promise<Response | null> {
  const url = new URL(request.url);
  const [, first, kind, agent] = url.pathname.split("/");
  if (first !== "agents" || !kind || !agent) return null;
  const namespace = options.namespace ?? namespaceOf(kind, env);
  if (namespace === undefined) return null;
  let name: string;
  try {
    name = decodeURIComponent(agent);
  } catch {
    return null;
  }
  const asked =
    kind === ADDRESS
      ? request
      : new Request(
          Object.assign(url, { pathname: url.pathname.replace(`/agents/${kind}/`, `/agents/${ADDRESS}/`) }),
          request,
        );
  return await namespace.get(namespace.idFromName(name)).fetch(asked);
}

function namespaceOf(kind: string, env: any): any {
  const isNamespace = (value: any): boolean => typeof value?.idFromName === "function";
  const bindings = Object.entries(env).filter(([, value]) => isNamespace(value));
  const named = bindings.find(([name]) => kebab(name) === kind);
  if (named !== undefined) return named[1];
  // The object needs its own namespace under this name for memory in other agents.
  return kind === ADDRESS && bindings.length === 1 ? bindings[0]![1] : undefined;
}

/** A binding's name as it stands in an address. */
function kebab(name: string): string {
  const words =
    name === name.toUpperCase() ? name.toLowerCase() : name.replaceAll(/(?<!^)([A-Z])/g, "-$1").toLowerCase();
  return words.replaceAll("_", "-");
}
