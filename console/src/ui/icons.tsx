// The console's icons: strokes on a 20-pixel grid, in the color of the adjacent text.

const PATHS = {
  add: "M10 4v12M4 10h12",
  back: "M12 4l-6 6 6 6",
  branch: "M6 3v14M6 10c6 0 8-1 8-5M14 5l-2 2M14 5l2 2",
  bolt: "M11 2L4 12h5l-1 6 8-10h-5z",
  book: "M4 4h5c1 0 1 1 1 1v12s0-1-1-1H4zM16 4h-5c-1 0-1 1-1 1v12s0-1 1-1h5z",
  chart: "M4 17V9M10 17V4M16 17v-6",
  chat: "M4 4h12v9H9l-4 4v-4H4z",
  check: "M4 10l4 4 8-9",
  clock: "M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM10 6v4l3 2",
  close: "M5 5l10 10M15 5L5 15",
  code: "M7 6l-4 4 4 4M13 6l4 4-4 4",
  compact: "M10 2v5M7 5l3 3 3-3M10 18v-5M7 15l3-3 3 3M4 10h12",
  copy: "M7 7h9v9H7zM4 12V4h8",
  down: "M4 7l6 6 6-6",
  download: "M10 3v10M6 9l4 4 4-4M4 17h12",
  edit: "M4 16l1-4 8-8 3 3-8 8z",
  filter: "M3 5h14M6 10h8M9 15h2",
  fork: "M6 3v5c0 2 4 2 4 5v4M14 3v5c0 2-4 2-4 5",
  flow: "M3 5h8M6 10h8M9 15h8",
  key: "M8 12a4 4 0 1 1 2-2l7 7v-3M13 13l-2 2",
  keyboard: "M2 5h16v10H2zM5 8h.01M8 8h.01M11 8h.01M14 8h.01M5 11h.01M14 11h.01M8 12h4",
  left: "M12 5l-5 5 5 5",
  more: "M5 10h.01M10 10h.01M15 10h.01",
  redo: "M15 8a6 6 0 1 0 1 4M16 3v5h-5",
  right: "M8 5l5 5-5 5",
  search: "M9 3a6 6 0 1 1 0 12A6 6 0 0 1 9 3zM14 14l4 4",
  send: "M3 10l14-6-5 13-3-5z",
  settings: "M4 6h7M15 6h1M4 14h1M9 14h7M13 4v4M7 12v4",
  spark: "M10 3l2 5 5 2-5 2-2 5-2-5-5-2 5-2z",
  stop: "M6 6h8v8H6z",
  tool: "M12 4a4 4 0 0 0-4 5l-5 5 3 3 5-5a4 4 0 0 0 5-5l-3 2-2-2z",
  trash: "M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11",
  upload: "M10 13V3M6 7l4-4 4 4M4 17h12",
  warning: "M10 3l8 14H2zM10 8v4M10 15h.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 20 20"
      width="18"
      height="18"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      stroke-width="1.6"
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
