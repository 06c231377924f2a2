// Tokens as the class counts them. The core counts synchronously,
// so a number that arrives late is used from the next time on.

/** The texts whose late numbers are remembered. */
const MAX_KNOWN = 500;

/** The texts whose numbers are pending. Further texts are estimated in the meantime. */
const MAX_LATE = 500;

/** How many counters of the isolate are asked right now, one inside of another. */
let depth = 0;

/** Whether a counter is asked right now: the core is in the middle of its work then. */
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
    // A counter that runs operations would be asked by them for the same text, without end.
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

  /** Once: texts are counted by the hundred. */
  #logFailure(error: unknown): void {
    if (!this.#hasFailed) console.error("session-agent: `countTokens` failed, and tokens are estimated", error);
    this.#hasFailed = true;
  }
}

/** A number of tokens that the core can add up, or nothing. */
function whole(count: unknown): number | undefined {
  return typeof count === "number" && count >= 0 && count <= Number.MAX_SAFE_INTEGER ? Math.ceil(count) : undefined;
}
