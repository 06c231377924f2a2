// The tree of a text in Markdown. Views make elements of it, never markup.

export type Inline =
  | { type: "text"; text: string }
  | { type: "break" }
  | { type: "code"; text: string }
  | { type: "strong" | "em" | "del"; children: readonly Inline[] }
  /** An image is shown as a link, so that nothing is fetched from elsewhere. */
  | { type: "link"; url: string; isImage: boolean; children: readonly Inline[] };

export type Align = "start" | "center" | "end";

export interface Item {
  /** Of a list of tasks. `null`: the item is none. */
  isDone: boolean | null;
  blocks: readonly Block[];
}

export type Block =
  | { type: "heading"; level: number; children: readonly Inline[] }
  | { type: "paragraph"; children: readonly Inline[] }
  | { type: "code"; language: string; text: string }
  | { type: "quote"; blocks: readonly Block[] }
  /** `start`: the first number. `null`: the items have none. */
  | { type: "list"; start: number | null; items: readonly Item[] }
  | {
      type: "table";
      aligns: readonly Align[];
      head: readonly (readonly Inline[])[];
      rows: readonly (readonly (readonly Inline[])[])[];
    }
  | { type: "rule" };
