// The parts of a message. They are untrusted: the page shows them as text, and never loads
// anything from a server that they name.

import { Button, Long } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import { CodeBlock, LONGEST, Markdown, webHostOf } from "../markdown/view.tsx";
import type { CallDecision } from "./state.ts";
import { later } from "../ui/later.tsx";
import { cut, shownInput, shownJson, shownName, shownText } from "../text.ts";

interface Props {
  part: any;
  /** All parts of its message. */
  parts: readonly any[];
  /** The agent's text is Markdown. */
  isMarkdown: boolean;
  decide: (call: CallDecision) => void;
  isBusy: boolean;
}

export function Part({ part, parts, isMarkdown, decide, isBusy }: Props) {
  if (part === null || typeof part !== "object") return <Raw value={part} />;
  const type = String(part.type);
  if (type === "text" && typeof part.text === "string")
    return isMarkdown && part.text.length <= LONGEST ? <Markdown text={part.text} /> : <Prose text={part.text} />;
  if (type === "reasoning" && typeof part.text === "string") return <Reasoning text={part.text} />;
  if (type === "step-start") return null;
  if (type === "file") return <File part={part} />;
  if (type === "source-url") return <Link url={part.url} text={part.title ?? part.url} />;
  if (type.startsWith("tool-") || type === "dynamic-tool") return <Call part={part} decide={decide} isBusy={isBusy} />;
  if (type === "data-input-request") {
    const { toolCallId, isClosed } = part.data ?? {};
    const isOpen = !isClosed && parts.some((one) => one?.toolCallId === toolCallId && one.state === "input-available");
    return isOpen ? <Question data={part.data} decide={decide} isBusy={isBusy} /> : null;
  }
  return <Raw value={part} />;
}

const Question = later((from) => from.Question);

const FENCE = /^```([^\n`]*)\n([\s\S]*?)(?:^```[ \t]*$|$(?![\s\S]))/gm;

/** A text with its fenced code blocks. */
export function Prose({ text }: { text: string }) {
  const pieces = [];
  let at = 0;
  // A truncated text is not parsed for code.
  if (text.length < 200_000) {
    for (const found of text.matchAll(FENCE)) {
      pieces.push(<Paragraphs key={at} text={text.slice(at, found.index)} />);
      pieces.push(<CodeBlock key={`c${at}`} language={found[1]!.trim()} text={found[2] ?? ""} />);
      at = found.index + found[0].length;
    }
  }
  return <>{[...pieces, <Paragraphs key="end" text={text.slice(at)} />]}</>;
}

function Paragraphs({ text }: { text: string }) {
  const trimmed = text.replace(/^\n+|\n+$/g, "");
  return trimmed === "" ? null : (
    <p class="prose" dir="auto">
      <Long text={shownText(trimmed)} />
    </p>
  );
}

export function Code({ text }: { text: string }) {
  return (
    <pre class="code" tabIndex={0}>
      <Long text={shownText(text)} />
    </pre>
  );
}

function Reasoning({ text }: { text: string }) {
  return (
    <details class="fold">
      <summary>
        <Icon name="spark" /> Reasoning
      </summary>
      <Prose text={text} />
    </details>
  );
}

const STATES: Record<string, string> = {
  "input-streaming": "preparing",
  "input-available": "running",
  "approval-requested": "needs approval",
  "approval-responded": "answered",
  "output-available": "done",
  "output-error": "failed",
  "output-denied": "declined",
};

function Call({ part, decide, isBusy }: Omit<Props, "isMarkdown" | "parts">) {
  const name = part.type === "dynamic-tool" ? String(part.toolName) : String(part.type).slice("tool-".length);
  const state = String(part.state);
  const isOpen = state === "approval-requested";
  const approve = (approved: boolean) => decide({ approvalId: part.approval?.id, approved });
  return (
    <details class={`fold call ${state}`} open={isOpen}>
      <summary>
        <Icon name="tool" /> <bdi class="name">{shownName(name)}</bdi>
        <span class="glance">{glance(part.input)}</span>
        <span class={`state ${state}`}>{STATES[state] ?? shownName(state)}</span>
      </summary>
      <p class="part-name">Input</p>
      <Code text={shownInput(part.input)} />
      {part.output !== undefined && <p class="part-name">Output</p>}
      {part.output !== undefined && <Code text={shownJson(part.output)} />}
      {typeof part.errorText === "string" && <p class="part-name">Error</p>}
      {typeof part.errorText === "string" && <Code text={part.errorText} />}
      {isOpen && (
        <div class="actions approval">
          <Button kind="main" icon="check" disabled={isBusy} onClick={() => approve(true)}>
            Approve
          </Button>
          <Button kind="danger" icon="close" disabled={isBusy} onClick={() => approve(false)}>
            Decline
          </Button>
        </div>
      )}
    </details>
  );
}

/** The beginning of a call's input, on the same line as the tool's name. */
function glance(input: unknown): string {
  if (input === undefined || input === null) return "";
  const text = typeof input === "string" ? input : JSON.stringify(input);
  return shownName(shownInput(cut(text, 80)));
}

function File({ part }: { part: any }) {
  const name = shownName(String(part.filename ?? part.mediaType ?? "file"));
  const url = String(part.url ?? "");
  if (!url.startsWith("data:")) return <Link url={url} text={name} />;
  const type = url.slice("data:".length).split(/[;,]/, 1)[0] ?? "";
  if (type.startsWith("image/")) {
    return (
      <figure class="media">
        <img src={url} alt={name} loading="lazy" decoding="async" />
        <figcaption>{name}</figcaption>
      </figure>
    );
  }
  if (type.startsWith("audio/")) return <audio class="media" controls src={url} aria-label={name} />;
  if (type.startsWith("video/")) return <video class="media" controls src={url} aria-label={name} />;
  return (
    <a class="button" href={url} download={name}>
      <Icon name="download" /> {name}
    </a>
  );
}

/** An untrusted link: it opens only on a click, and only if it is a web address. */
function Link({ url, text }: { url: unknown; text: unknown }) {
  const shown = shownName(String(text));
  const host = typeof url === "string" ? webHostOf(url) : null;
  if (typeof url !== "string" || host === null) return <p class="prose">{shown}</p>;
  return (
    <p class="prose">
      <a href={url} target="_blank" rel="noopener noreferrer nofollow">
        {shown}
      </a>{" "}
      <span class="note">{shownName(host)}</span>
    </p>
  );
}

function Raw({ value }: { value: any }) {
  return (
    <details class="fold">
      <summary>
        <Icon name="more" /> {shownName(String(value?.type ?? "part"))}
      </summary>
      <Code text={shownJson(value)} />
    </details>
  );
}
