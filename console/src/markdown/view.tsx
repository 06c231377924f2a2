// Renders Markdown as elements: from a tree, never from HTML, so untrusted text is always text.
// Nothing is loaded from other servers: an image is a link.

import { useMemo } from "preact/hooks";
import { Long } from "../ui/basics.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { shownName, shownText } from "../text.ts";
import { parseMarkdown } from "./parse.ts";
import type { Block, Inline, Item } from "./tree.ts";

/** A longer text is shown unformatted. */
export const LONGEST = 100_000;

export function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => parseMarkdown(text), [text]);
  const levels = outlineOf(blocks);
  return (
    <div class="markdown" dir="auto">
      <Blocks blocks={blocks} levels={levels} />
    </div>
  );
}

/**
 * The heading levels for screen readers: below the page's own headings, and without gaps, whatever
 * level the text begins with.
 */
function outlineOf(blocks: readonly Block[]): ReadonlyMap<Block, number> {
  const above: number[] = [];
  const levels = new Map<Block, number>();
  for (const block of blocks) {
    if (block.type !== "heading") continue;
    while (above.length > 0 && above.at(-1)! >= block.level) above.pop();
    above.push(block.level);
    levels.set(block, Math.min(6, 1 + above.length));
  }
  return levels;
}

/** `levels`: those of the headings. Within lists and quotes, a heading is only bold. */
function Blocks({ blocks, levels }: { blocks: readonly Block[]; levels?: ReadonlyMap<Block, number> }) {
  return (
    <>
      {blocks.map((block, n) => (
        <One key={n} block={block} level={levels?.get(block)} />
      ))}
    </>
  );
}

function One({ block, level }: { block: Block; level: number | undefined }) {
  switch (block.type) {
    case "heading":
      return (
        <p
          class={`heading-${Math.min(block.level, 4)}`}
          role={level === undefined ? undefined : "heading"}
          aria-level={level}
        >
          <Inlines inlines={block.children} />
        </p>
      );
    case "paragraph":
      return (
        <p dir="auto">
          <Inlines inlines={block.children} />
        </p>
      );
    case "code":
      return <CodeBlock language={block.language} text={block.text} />;
    case "quote":
      return (
        <blockquote>
          <Blocks blocks={block.blocks} />
        </blockquote>
      );
    case "list":
      return <List start={block.start} items={block.items} />;
    case "table":
      return <Table block={block} />;
    case "rule":
      return <hr />;
  }
}

function List({ start, items }: { start: number | null; items: readonly Item[] }) {
  const all = items.map(({ isDone, blocks }, n) => (
    <li key={n} class={isDone === null ? undefined : "task"}>
      {isDone !== null && (
        <span class="task-mark" role="img" aria-label={isDone ? "done" : "to do"}>
          {isDone ? "☑" : "☐"}
        </span>
      )}
      <Blocks blocks={blocks} />
    </li>
  ));
  return start === null ? <ul>{all}</ul> : <ol start={start}>{all}</ol>;
}

function Table({ block: { aligns, head, rows } }: { block: Extract<Block, { type: "table" }> }) {
  return (
    <div class="table" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {head.map((cell, n) => (
              <th key={n} scope="col" class={`to-${aligns[n]}`}>
                <Inlines inlines={cell} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, n) => (
            <tr key={n}>
              {row.map((cell, n) => (
                <td key={n} class={`to-${aligns[n]}`}>
                  <Inlines inlines={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function CodeBlock({ language, text }: { language: string; text: string }) {
  return (
    <figure class="code-block">
      <figcaption>
        <span>{shownName(language || "code")}</span>
        <CopyButton text={text} what="this code" />
      </figcaption>
      <pre class="code" tabIndex={0}>
        <Long text={shownText(text)} />
      </pre>
    </figure>
  );
}

function Inlines({ inlines }: { inlines: readonly Inline[] }) {
  return (
    <>
      {inlines.map((inline, n) => (
        <OneInline key={n} inline={inline} />
      ))}
    </>
  );
}

function OneInline({ inline }: { inline: Inline }) {
  switch (inline.type) {
    case "text":
      return <>{shownText(inline.text)}</>;
    case "break":
      return <br />;
    case "code":
      return <code>{shownText(inline.text)}</code>;
    case "strong":
      return (
        <strong>
          <Inlines inlines={inline.children} />
        </strong>
      );
    case "em":
      return (
        <em>
          <Inlines inlines={inline.children} />
        </em>
      );
    case "del":
      return (
        <del>
          <Inlines inlines={inline.children} />
        </del>
      );
    case "link":
      return <Link url={inline.url} isImage={inline.isImage} inside={inline.children} />;
  }
}

/** A link to the web shows its address. Any other link is text. */
function Link({ url, isImage, inside }: { url: string; isImage: boolean; inside: readonly Inline[] }) {
  const text = inside.length === 0 ? [{ type: "text", text: url } as const] : inside;
  const host = webHostOf(url);
  if (host === null)
    return (
      <>
        <Inlines inlines={text} /> <span class="note">({shownName(url)})</span>
      </>
    );
  const isItsAddress = text.length === 1 && text[0]?.type === "text" && text[0].text === url;
  return (
    <>
      <a href={url} title={shownName(url)} target="_blank" rel="noopener noreferrer nofollow">
        {isImage && "Picture: "}
        <Inlines inlines={text} />
      </a>
      {!isItsAddress && <span class="note link-host"> {shownName(host)}</span>}
    </>
  );
}

/** `null`: the address does not lead to the web. */
export function webHostOf(url: string): string | null {
  if (!/^https?:\/\//i.test(url)) return null;
  try {
    return new URL(url).host;
  } catch {
    return null;
  }
}
