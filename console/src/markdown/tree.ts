// The syntax tree of a Markdown text. Views render it as elements, never as HTML text.

export type Inline =
  | { type: "text"; text: string }
  | { type: "break" }
  | { type: "code"; text: string }
  | { type: "strong" | "em" | "del"; children: readonly Inline[] }
  /** An image is shown as a link, so nothing is loaded from other servers. */
  | { type: "link"; url: string; isImage: boolean; children: readonly Inline[] };

export type Align = "start" | "center" | "end";

export interface Item {
  /** Whether a task is done. `null`: the item is not a task. */
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
