// The positions of a long list's rows. Rendered rows have their measured height; the others have an
// estimate.

export class Rows {
  #measured = new Map<string, number>();
  #keys: string[] = [];
  #index = new Map<string, number>();
  /** The offset of each row, and of the end of the list. */
  #offsets = new Float64Array(1);

  /** The items that were set last. Scrolling changes neither the items nor a height. */
  #items: readonly unknown[] | null = null;

  setItems<T>(items: readonly T[], keyOf: (item: T) => string, estimate: (item: T) => number): void {
    if (this.#items === items) return;
    this.#items = items;
    this.#keys = items.map(keyOf);
    this.#index = new Map(this.#keys.map((key, index) => [key, index]));
    this.#offsets = new Float64Array(items.length + 1);
    let top = 0;
    for (let index = 0; index < items.length; index += 1) {
      this.#offsets[index] = top;
      top += this.#measured.get(this.#keys[index]!) ?? estimate(items[index] as T);
    }
    this.#offsets[items.length] = top;
  }

  get height(): number {
    return this.#offsets[this.#keys.length] ?? 0;
  }

  /** Whether the height has changed. */
  measure(key: string, height: number): boolean {
    if (this.#measured.get(key) === height) return false;
    this.#measured.set(key, height);
    this.#items = null;
    return true;
  }

  /** The keys of all rows, as they were set last. */
  get keys(): readonly string[] {
    return this.#keys;
  }

  keyAt(index: number): string | undefined {
    return this.#keys[index];
  }

  topOf(index: number): number {
    return this.#offsets[index] ?? 0;
  }

  indexOf(key: string): number | undefined {
    return this.#index.get(key);
  }

  /** The row that covers `y`: the first row above the list, the last row below it. */
  indexAt(y: number): number {
    let [low, high] = [0, this.#keys.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.topOf(middle) <= y) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }
}
