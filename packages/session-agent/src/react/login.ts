// The page's login: the agent's name and a token, which is renewed before it expires, and after the agent
// has refused it.

import type { AgentOptions } from "../options.js";

/** The answer of your server to a login. */
export interface LoginAnswer {
  /** The agent's name. Required if `useAgent` has no `name`. */
  agent?: string;
  token?: string;
  /** The seconds for which the token is valid. Default: until the agent refuses it. */
  expiresIn?: number;
}

export interface UseAgentOptions {
  /** The Worker's address. Default: the page's own origin. */
  url?: string;
  /** The agent's name. Default: the name that `login` returns. */
  name?: string;
  /** A token, or a function that returns one. Never put the Worker's secret into a page. */
  token?: AgentOptions["token"];
  /** Gets the agent and a token from your server. Called again before the token expires, and when the agent refuses it. */
  login?: () => Promise<LoginAnswer>;
}

/** The remaining time at which a token is renewed. */
const SPARE_MS = 60_000;

interface Known {
  name: string;
  token: string | undefined;
  renewAt: number;
}

export class Login {
  #options: UseAgentOptions;
  #current: Promise<Known> | undefined;

  constructor(options: UseAgentOptions) {
    this.#options = options;
  }

  /** The functions of the newest render. */
  set options(options: UseAgentOptions) {
    this.#options = options;
  }

  async get(): Promise<Known> {
    return await this.#unless((known) => known.renewAt <= Date.now());
  }

  /** A newer login than `refused`. */
  async renew(refused: Known): Promise<Known> {
    return await this.#unless((known) => known === refused);
  }

  /** The current login. Callers whose logins were refused at the same time share one new login. */
  async #unless(isUseless: (known: Known) => boolean): Promise<Known> {
    const current = this.#current;
    const known = await current?.catch(() => undefined);
    if ((known === undefined || isUseless(known)) && this.#current === current) this.#current = this.#ask();
    return await this.#current!;
  }

  /** Sends a request with the token, and once more with a new one if the agent refuses it. */
  readonly fetch = async (url: string, init: RequestInit = {}): Promise<Response> => {
    const known = await this.get();
    const response = await fetch(url, withToken(init, known));
    if (response.status !== 401 || this.#options.login === undefined) return response;
    const renewed = await this.renew(known);
    await response.body?.cancel().catch(() => {});
    return await fetch(url, withToken(init, renewed));
  };

  async #ask(): Promise<Known> {
    const { name, token, login } = this.#options;
    const answer = (await login?.()) ?? {};
    const named = name ?? answer.agent;
    if (typeof named !== "string" || named === "")
      throw new TypeError("`useAgent` needs the agent's `name`, or a `login` that returns it as `agent`.");
    const own = typeof token === "function" ? await token() : token;
    // A function is called for each request, as in the client.
    if (login === undefined) return { name: named, token: own, renewAt: typeof token === "function" ? 0 : Infinity };
    const { expiresIn } = answer;
    const renewAt = expiresIn === undefined ? Infinity : Date.now() + expiresIn * 1000 - SPARE_MS;
    return { name: named, token: answer.token ?? own, renewAt };
  }
}

function withToken(init: RequestInit, { token }: Known): RequestInit {
  if (!token) return init;
  return { ...init, headers: { ...(init.headers as { [name: string]: string }), authorization: `Bearer ${token}` } };
}
