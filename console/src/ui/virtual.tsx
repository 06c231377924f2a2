// A virtual list: renders only the rows on and near the screen. The visible rows stay in place when rows
// above are added or measured. A list that is scrolled to its end stays there while it grows.

import { Component, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";
import { Rows } from "./rows.ts";

/** Pixels above and below the screen whose rows exist, too. */
const NEAR = 500;

/** Within this distance, the list counts as scrolled to its end. */
const AT_END = 24;

/** Elements that take the keys Home and End themselves when they have the focus. */
const SCROLLS_ITSELF = "input, textarea, select, audio, video, pre, .stored";

interface Props<T> {
  items: readonly T[];
  keyOf: (item: T) => string;
  /** Pixels of a row that was never on the screen. */
  estimate: (item: T) => number;
  /** Runs again when the item or its index is another, and by the signals that it reads. */
  render: (item: T, index: number) => ComponentChildren;
  label: string;
  /** Begins at the end, and stays there. */
  follows?: boolean;
  /** The reader is near the beginning, or near the end. */
  onTop?: (() => void) | undefined;
  onEnd?: (() => void) | undefined;
  /** A row that the list shows first. */
  show?: string | undefined;
}

export function Virtual<T>({ items, keyOf, estimate, render, label, follows = false, onTop, onEnd, show }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const [, redraw] = useReducer((turn: number) => turn + 1, 0);
  const { current: list } = useRef({
    rows: new Rows(),
    height: 800,
    anchor: null as Anchor | null,
    isAtEnd: follows,
    /** The scroll position that the list last read. */
    known: 0,
  });
  const { rows } = list;

  /** Adopts the user's scroll position. `false`: it is unchanged. */
  const takeScroll = (): boolean => {
    if (!scroller.current) return false;
    const { scrollTop, clientHeight, scrollHeight } = scroller.current;
    // A browser rounds what the list sets, and rounding must not add up.
    if (Math.abs(scrollTop - list.known) <= 1) return false;
    list.known = scrollTop;
    list.isAtEnd = follows && scrollTop + clientHeight >= scrollHeight - AT_END;
    // The first row that begins on the screen: a row that is partly above may still be measured.
    const covering = rows.indexAt(scrollTop);
    const isNextSeen = rows.keyAt(covering + 1) !== undefined && rows.topOf(covering + 1) < scrollTop + clientHeight;
    const index = rows.topOf(covering) < scrollTop && isNextSeen ? covering + 1 : covering;
    const key = rows.keyAt(index);
    list.anchor = key === undefined ? null : { key, above: scrollTop - rows.topOf(index) };
    return true;
  };
  // The browser reports a scroll in the next frame. A render before that must not undo it.
  takeScroll();
  const before = rows.keys;
  rows.setItems(items, keyOf, estimate);
  if (list.anchor !== null && rows.indexOf(list.anchor.key) === undefined) {
    const key = survivorOf(list.anchor.key, before, rows);
    list.anchor = key === undefined ? null : { key, above: 0 };
    if (key === undefined) list.isAtEnd = follows;
  }

  const shown = useRef<string | undefined>(undefined);
  if (show !== undefined && shown.current !== show && rows.indexOf(show) !== undefined) {
    shown.current = show;
    list.isAtEnd = false;
    list.anchor = { key: show, above: -16 };
  }

  const wanted = topOf(list);
  const first = rows.indexAt(wanted - NEAR);
  const last = items.length === 0 ? -1 : rows.indexAt(wanted + list.height + NEAR);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element || Math.abs(element.scrollTop - wanted) <= 1) return;
    element.scrollTop = wanted;
    list.known = element.scrollTop;
  });

  useEffect(() => {
    const element = scroller.current!;
    const resized = new ResizeObserver(() => {
      list.height = element.clientHeight;
      redraw(0);
    });
    resized.observe(element);
    return () => resized.disconnect();
  }, []);

  const measuring = useRef<ResizeObserver | null>(null);
  measuring.current ??= new ResizeObserver((entries) => {
    let hasChanged = false;
    for (const { target, borderBoxSize } of entries) {
      const key = (target as HTMLElement).dataset.key;
      const height = borderBoxSize[0]?.blockSize ?? 0;
      if (key !== undefined && target.isConnected && rows.measure(key, height)) hasChanged = true;
    }
    if (hasChanged) redraw(0);
  });
  useEffect(() => () => measuring.current?.disconnect(), []);

  const onScroll = () => {
    if (takeScroll()) redraw(0);
  };

  // The browser would scroll to the current end. Rows that become visible there are
  // measured, and the end moves on.
  const onKeyDown = (event: KeyboardEvent) => {
    const isEnd = event.key === "End";
    if ((!isEnd && event.key !== "Home") || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    if ((event.target as Element).closest(SCROLLS_ITSELF)) return;
    const key = rows.keyAt(isEnd ? items.length - 1 : 0);
    if (key === undefined) return;
    event.preventDefault();
    // A scroll before the key must not undo it when the list is drawn.
    takeScroll();
    list.isAtEnd = isEnd && follows;
    list.anchor = { key, above: isEnd ? "all that does not fit" : 0 };
    redraw(0);
  };

  const isNearTop = wanted < NEAR;
  const isNearEnd = wanted + list.height > rows.height - NEAR;
  useEffect(() => {
    if (isNearTop) onTop?.();
    if (isNearEnd) onEnd?.();
  });

  return (
    <div
      class="virtual"
      ref={scroller}
      onScroll={onScroll}
      onKeyDown={onKeyDown}
      tabIndex={0}
      role="region"
      aria-label={label}
    >
      <div class="virtual-all" role="list" style={{ height: `${rows.height}px` }}>
        {items.slice(first, last + 1).map((item, n) => (
          <Row
            key={keyOf(item)}
            id={keyOf(item)}
            top={rows.topOf(first + n)}
            index={first + n}
            item={item}
            render={render as any}
            measuring={measuring.current!}
          />
        ))}
      </div>
    </div>
  );
}

/** The row above a removed row, or the next one below it. */
function survivorOf(removed: string, before: readonly string[], rows: Rows): string | undefined {
  const index = before.indexOf(removed);
  const isThere = (key: string) => rows.indexOf(key) !== undefined;
  return before.slice(0, Math.max(0, index)).findLast(isThere) ?? before.slice(index + 1).find(isThere);
}

/** The topmost visible row, and how much of it is above the screen; negative if it begins below. */
interface Anchor {
  key: string;
  above: number | "all that does not fit";
}

/** The scroll position that keeps the topmost visible row in place. */
function topOf({
  rows,
  height,
  anchor,
  isAtEnd,
}: {
  rows: Rows;
  height: number;
  anchor: Anchor | null;
  isAtEnd: boolean;
}): number {
  const end = Math.max(0, rows.height - height);
  if (isAtEnd) return end;
  const index = anchor === null ? undefined : rows.indexOf(anchor.key);
  if (anchor === null || index === undefined) return 0;
  const top = typeof anchor.above === "number" ? rows.topOf(index) + anchor.above : rows.topOf(index + 1) - height;
  return Math.max(0, Math.min(end, top));
}

interface RowProps {
  id: string;
  top: number;
  index: number;
  item: unknown;
  render: (item: unknown, index: number) => ComponentChildren;
  measuring: ResizeObserver;
}

function Row({ id, top, index, item, render, measuring }: RowProps) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const row = element.current!;
    measuring.observe(row);
    return () => measuring.unobserve(row);
  }, []);
  return (
    <div class="virtual-row" role="listitem" data-key={id} ref={element} style={{ transform: `translateY(${top}px)` }}>
      <Content item={item} index={index} render={render} />
    </div>
  );
}

type ContentProps = Pick<RowProps, "item" | "index" | "render">;

/** Scrolling moves rows and changes none. */
class Content extends Component<ContentProps> {
  override shouldComponentUpdate({ item, index }: ContentProps) {
    return item !== this.props.item || index !== this.props.index;
  }

  override render({ item, index, render }: ContentProps) {
    return <>{render(item, index)}</>;
  }
}
