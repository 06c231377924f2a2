// The session's socket, which reconnects automatically.

export interface SocketHooks {
  /** The URL with a valid token. */
  address: () => Promise<string>;
  frame: (frame: any) => void;
  /** Called when the socket is closed. `wasOpen`: the agent had accepted it. */
  down: (wasOpen: boolean) => void;
}

/** The pauses before reconnecting, without jitter. */
const PAUSES_MS: readonly number[] = [300, 1000, 2000, 5000, 10_000];

export class SessionSocket {
  #hooks: SocketHooks;
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failures = 0;
  #isClosed = true;

  constructor(hooks: SocketHooks) {
    this.#hooks = hooks;
  }

  open(): void {
    this.#isClosed = false;
    globalThis.addEventListener?.("online", this.#now);
    globalThis.addEventListener?.("offline", this.#lose);
    void this.#connect();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    globalThis.removeEventListener?.("online", this.#now);
    globalThis.removeEventListener?.("offline", this.#lose);
    this.#drop();
  }

  /** `false`: there is no connection. */
  send(frame: object): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  /** The agent has accepted the socket. */
  accepted(): void {
    this.#failures = 0;
  }

  async #connect(): Promise<void> {
    let address: string;
    try {
      address = await this.#hooks.address();
    } catch {
      return this.#again(false);
    }
    if (this.#isClosed || this.#socket !== undefined) return;
    const socket = new WebSocket(address);
    this.#socket = socket;
    let wasOpen = false;
    socket.onmessage = ({ data }) => {
      wasOpen = true;
      const frame = parsed(data);
      if (frame !== undefined && this.#socket === socket) this.#hooks.frame(frame);
    };
    socket.onclose = () => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      this.#again(wasOpen);
    };
  }

  #again(wasOpen: boolean): void {
    if (this.#isClosed) return;
    const pause = PAUSES_MS[Math.min(this.#failures++, PAUSES_MS.length - 1)]!;
    clearTimeout(this.#timer);
    // Jitter, so that pages don't reconnect at the same time.
    this.#timer = setTimeout(() => void this.#connect(), pause * (0.5 + Math.random() / 2));
    this.#hooks.down(wasOpen);
  }

  /** The browser is online again. */
  #now = (): void => {
    if (this.#socket !== undefined || this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#failures = 0;
    void this.#connect();
  };

  /** The browser is offline: a socket would notice it only minutes later. */
  #lose = (): void => {
    this.#drop();
    this.#again(true);
  };

  #drop(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
  }
}

function parsed(data: unknown): any {
  try {
    const frame = JSON.parse(String(data));
    return typeof frame === "object" && frame !== null ? frame : undefined;
  } catch {
    return undefined;
  }
}
