// A session service of Google's ADK whose sessions are in one agent.
//
// A session of ADK is a session of the agent. Its state is the initial state plus the changes of its
// events, in the order of the log. The state of an app, and of each of its users, is stored in its own
// session, with a message for each key, so writers of different keys never overwrite each other.

import {
  type AppendEventRequest,
  BaseSessionService,
  type CreateSessionRequest,
  createEvent,
  createSession,
  type DeleteSessionRequest,
  type Event,
  type GetSessionRequest,
  type ListSessionsRequest,
  type ListSessionsResponse,
  mergeStates,
  type Session,
  trimTempDeltaState,
  trimTempState,
} from "@google/adk";
import { eventsOf, foreignEventOf, storedEventOf } from "./adk_events.js";
import type { AgentClient } from "./agent.js";
import { orNull } from "./branch_path.js";
import { AlreadyExistsError, SessionNotFoundError } from "./errors.js";
import type { Session as AgentSession } from "./operations.js";
import type { SessionClient } from "./session.js";

type State = Record<string, unknown>;

/** The metadata of a session. */
interface StoredState {
  user: string;
  id: string;
  state: State;
  createdAt: number;
}

const METADATA_KEY = "adk";
const APP = "app:";
const USER = "user:";
/** The API's ids have at most 200 characters. Longer ones are hashed. */
const LONGEST_ID = 200;
/** The sessions of one request. */
const PAGE = 500;
/** The number of recent sessions whose order of writes is remembered. */
const MOST_ORDERED = 1000;

/** Stores ADK's sessions in an agent. All apps and users of a service are in one agent. */
export class SessionAgentSessionService extends BaseSessionService {
  #agent: AgentClient;
  /** For each session, the state object on which ADK records the order of writes. */
  #ordered: Map<string, State> = new Map();

  constructor(agent: AgentClient) {
    super();
    this.#agent = agent;
  }

  async createSession({ appName, userId, state, sessionId }: CreateSessionRequest): Promise<Session> {
    const id = sessionId || crypto.randomUUID();
    const stored: StoredState = {
      user: userId,
      id,
      state: plain(trimTempState(state ?? {})),
      createdAt: Date.now(),
    };
    await this.#agent.createSession({
      id: await idOf("session", appName, userId, id),
      metadata: { [METADATA_KEY]: stored, adkApp: appName, adkUser: userId },
    });
    return createSession({
      id,
      appName,
      userId,
      state: await this.#merged(appName, userId, Object.assign(emptyState(), stored.state)),
      events: [],
      lastUpdateTime: stored.createdAt,
    });
  }

  async getSession({ appName, userId, sessionId, config = {} }: GetSessionRequest): Promise<Session | undefined> {
    const session = await this.#session("session", appName, userId, sessionId);
    const found = await session.getSession();
    if (found === null) return undefined;
    const { state, createdAt } = storedStateOf(found) ?? { state: {}, createdAt: found.createdAt };
    const { events, changes } = await readEvents(session);
    return createSession({
      id: sessionId,
      appName,
      userId,
      state: await this.#merged(appName, userId, Object.assign(emptyState(), state, ...changes)),
      events: chosen(events, config),
      lastUpdateTime: lastTimeOf(events) ?? createdAt,
    });
  }

  /** The sessions, by default in the order in which they were created. */
  async listSessions(request: ListSessionsRequest): Promise<ListSessionsResponse> {
    const { appName, userId, limit, offset = 0, page, order } = request;
    const found: Array<{ session: Session; createdAt: number }> = [];
    const where = { metadata: { adkApp: appName, ...(userId !== undefined && { adkUser: userId }) } };
    for await (const one of this.#agent.sessions({ limit: PAGE, where })) {
      const stored = storedStateOf(one);
      if (stored === undefined) continue;
      const { id, user, createdAt } = stored;
      const session = createSession({ id, appName, userId: user, lastUpdateTime: one.updatedAt });
      found.push({ session, createdAt });
    }
    const timeOf = ({ session, createdAt }: (typeof found)[number]): number =>
      order === undefined ? createdAt : order === "asc" ? session.lastUpdateTime : -session.lastUpdateTime;
    found.sort((one, other) => timeOf(one) - timeOf(other) || one.session.id.localeCompare(other.session.id));
    const sessions = found.map(({ session }) => session);
    const totalItems = sessions.length;
    if (limit === undefined)
      return {
        sessions: sessions.slice(offset),
        page: 1,
        limit: totalItems,
        totalItems,
        totalPages: Math.min(1, totalItems),
      };
    const start = page === undefined ? offset : (page - 1) * limit;
    return {
      sessions: sessions.slice(start, start + limit),
      page: page ?? (limit === 0 ? 1 : Math.floor(start / limit) + 1),
      limit,
      totalItems,
      totalPages: limit === 0 ? 0 : Math.ceil(totalItems / limit),
    };
  }

  /** Deletes a session. Keeps the state of its app and of its user. */
  async deleteSession({ appName, userId, sessionId }: DeleteSessionRequest): Promise<void> {
    const id = await idOf("session", appName, userId, sessionId);
    this.#ordered.delete(id);
    await this.#agent.deleteSession({ sessionId: id });
  }

  override async appendEvent({ session, event }: AppendEventRequest): Promise<Event> {
    if (event.partial) return event;
    const trimmed = trimTempDeltaState(event);
    const { appName, userId, id } = session;
    const sessionId = await idOf("session", appName, userId, id);
    const delta = trimmed.actions?.stateDelta ?? {};
    const applied = await this.#applied(sessionId, session, trimmed);
    const skipped = Object.keys(delta).filter((key) => !Object.hasOwn(applied, key));
    await this.#agent.session(sessionId).appendEvents({
      events: eventsOf({ event: plain(trimmed), ...(skipped.length > 0 && { skipped }) }),
    });
    for (const [key, value] of Object.entries(delta)) {
      if (key.startsWith(APP)) await this.#setState(["app", appName], key.slice(APP.length), value);
      if (key.startsWith(USER)) await this.#setState(["user", appName, userId], key.slice(USER.length), value);
    }
    await super.appendEvent({ session, event: trimmed });
    session.lastUpdateTime = event.timestamp;
    return event;
  }

  /**
   * The changes of an event that are not older than the session's state. ADK records the order of writes
   * of this process on the state object.
   */
  async #applied(sessionId: string, session: Session, event: Event): Promise<State> {
    const state = this.#ordered.get(sessionId) ?? emptyState();
    this.#ordered.delete(sessionId);
    this.#ordered.set(sessionId, state);
    if (this.#ordered.size > MOST_ORDERED) this.#ordered.delete(this.#ordered.keys().next().value!);
    for (const key of Object.keys(state)) delete state[key];
    await super.appendEvent({ session: { ...session, state, events: [] }, event });
    return state;
  }

  async #session(...names: string[]): Promise<SessionClient> {
    return this.#agent.session(await idOf(...names));
  }

  /** A session's state, merged with that of its app and its user. */
  async #merged(appName: string, userId: string, state: State): Promise<State> {
    const [app, user] = await Promise.all([this.#state("app", appName), this.#state("user", appName, userId)]);
    return mergeStates(app, user, state);
  }

  async #state(...names: string[]): Promise<State> {
    const session = await this.#session(...names);
    const state = emptyState();
    await orNull(async () => {
      for await (const { content } of session.events()) {
        const [key, value] = JSON.parse(content);
        state[key] = value;
      }
    });
    return state;
  }

  async #setState(names: string[], key: string, value: unknown): Promise<void> {
    const session = await this.#session(...names);
    const text = JSON.stringify([key, value]);
    const message = { id: await idOf(key), role: "system", parts: [{ type: "text", text }] };
    try {
      await session.upsertMessage({ message });
    } catch (error) {
      if (!(error instanceof SessionNotFoundError)) throw error;
      await session.create().catch((failed) => {
        if (!(failed instanceof AlreadyExistsError)) throw failed;
      });
      await session.upsertMessage({ message });
    }
  }
}

/** The events of a session, each with its changes of the state. */
async function readEvents(session: SessionClient): Promise<{ events: Event[]; changes: State[] }> {
  const events = new Map<string, Event>();
  const changes: State[] = [];
  for await (const one of session.events()) {
    const stored = storedEventOf(one);
    const given = stored?.event ?? foreignEventOf(one);
    if (given === undefined) continue;
    const event = createEvent(given);
    // An event that is appended again replaces the first one.
    events.set(event.id, event);
    const change = Object.entries(event.actions.stateDelta).filter(([key]) => !stored?.skipped?.includes(key));
    changes.push(Object.fromEntries(change));
  }
  return { events: [...events.values()], changes };
}

function chosen(
  events: Event[],
  { numRecentEvents, afterTimestamp }: NonNullable<GetSessionRequest["config"]>,
): Event[] {
  const recent = numRecentEvents ? events.slice(-numRecentEvents) : events;
  if (!afterTimestamp) return recent;
  return recent.slice(recent.findLastIndex(({ timestamp }) => timestamp < afterTimestamp) + 1);
}

const lastTimeOf = (events: Event[]): number | undefined => events.at(-1)?.timestamp;

const storedStateOf = ({ metadata }: AgentSession): StoredState | undefined => metadata?.[METADATA_KEY];

/** Without a prototype, as in ADK: a key can be `__proto__`. */
const emptyState = (): State => Object.create(null);

/** A value after a round trip through JSON. */
const plain = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value));

/** An id that is unique for these names. */
async function idOf(...names: string[]): Promise<string> {
  const id = JSON.stringify(["adk", ...names]);
  if (id.length <= LONGEST_ID) return id;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(id));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
