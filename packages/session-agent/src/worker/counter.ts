// Counts tokens with the class's function. The core counts synchronously, so the result of a promise is
// used from the next count on.

/** The most texts whose asynchronous counts are cached. */
const MAX_KNOWN = 500;

/** The most texts with pending counts. Further texts are estimated in the meantime. */
const MAX_LATE = 500;

/** The number of nested counter calls in the isolate. */
let depth = 0;

/** Whether a counter is running: the core is then in the middle of its work. */
export const isCounting = (): boolean => depth > 0;

export class OwnCounter {
  #count: (text: string) => unknown;
  #known = new Map<string, number>();
  #late = new Set<string>();
  #hasFailed = false;

  constructor(count: (text: string) => unknown) {
    this.#count = count;
  }

  /** `undefined`: the core estimates. */
  count(text: string): number | undefined {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    // A counter that runs operations would be called for the same text by them, in an endless recursion.
    if (this.#late.has(text) || this.#late.size >= MAX_LATE) return undefined;
    depth += 1;
    try {
      const counted = this.#count(text);
      if (typeof (counted as Promise<unknown>)?.then !== "function") return whole(counted);
      this.#late.add(text);
      (counted as Promise<unknown>)
        .then(
          (late) => this.#remember(text, whole(late)),
          (error) => this.#logFailure(error),
        )
        .then(() => this.#late.delete(text));
    } catch (error) {
      this.#logFailure(error);
    } finally {
      depth -= 1;
    }
    return undefined;
  }

  #remember(text: string, count: number | undefined): void {
    if (count === undefined) return;
    if (this.#known.size >= MAX_KNOWN) this.#known.delete(this.#known.keys().next().value!);
    this.#known.set(text, count);
  }

  /** Logs only the first failure: texts are counted by the hundred. */
  #logFailure(error: unknown): void {
    if (!this.#hasFailed) console.error("session-agent: `countTokens` failed, and tokens are estimated", error);
    this.#hasFailed = true;
  }
}

/** A valid number of tokens, or `undefined`. */
function whole(count: unknown): number | undefined {
  return typeof count === "number" && count >= 0 && count <= Number.MAX_SAFE_INTEGER ? Math.ceil(count) : undefined;
}
