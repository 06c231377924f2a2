// What the model gets in this session's next turn: the prompt to the letter, the messages,
// the tools, and how many tokens each of them takes.

import { useState } from "preact/hooks";
import type { Block, Provider } from "session-agent";
import { Shares } from "../ui/bar.tsx";
import { Button, Heading, Loading, Name, Problem, Select, Stored } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import { Code } from "../conversation/parts.tsx";
import type { Conversation } from "../conversation/conversation.ts";
import { useLoad } from "../load.ts";
import { tell, tellError } from "../notices.ts";
import { may } from "../rights.ts";
import { count, counted, shownJson, shownText, shownTime } from "../text.ts";
import { Diff } from "./versions.tsx";
import { diff } from "./diff.ts";

export function Context({ conversation }: { conversation: Conversation }) {
  const { session, agent, id } = conversation;
  const ledger = useLoad(`${id}/ledger`, async (signal) => {
    const [estimate, own, shared, tools, stored] = await Promise.all([
      session.estimateTokens({}, { signal }),
      session.getBlocks({}, { signal }),
      agent.getBlocks({}, { signal }),
      session.getTools({}, { signal }),
      session.getSession({}, { signal }),
    ]);
    return { estimate, blocks: [...shared, ...own], tools: tools.tools, usage: stored?.usage };
  });
  const reload = ledger.reload;
  if (ledger.error !== undefined && ledger.data === undefined) return <Problem error={ledger.error} retry={reload} />;
  if (ledger.data === undefined) return <Loading what="the context" />;
  const { estimate, blocks, tools, usage } = ledger.data;
  return (
    <section class="tab-page scrolls">
      <Heading title="What the model gets" note={`About ${counted(estimate.total, "token")} in the next turn.`}>
        <Button icon="redo" onClick={reload}>
          Reload
        </Button>
      </Heading>
      <div class="card">
        <Shares label="Tokens" shares={sharesOf(estimate, blocks)} />
        {usage && (
          <p class="note">
            So far, models have read {counted(usage.inputTokens, "token")} for this session
            {usage.cachedInputTokens
              ? `, of which ${count(usage.cachedInputTokens)} were cached`
              : ", none of them reported as cached"}
            .
          </p>
        )}
      </div>
      <Prompt conversation={conversation} />
      <h3>
        Tools{" "}
        <span class="note">
          {counted(tools.length, "tool")} of the memory, {count(estimate.tools)} tokens
        </span>
      </h3>
      {tools.length === 0 && <p class="note">No block calls for a tool.</p>}
      {tools.map(({ name, description, parameters }) => (
        <details class="card fold" key={name}>
          <summary>
            <Icon name="tool" />{" "}
            <b>
              <Name text={name} />
            </b>{" "}
            <span class="note">
              <Name text={description} />
            </span>
          </summary>
          <p class="prose">{shownText(description)}</p>
          <Code text={shownJson(parameters)} />
        </details>
      ))}
      <ModelInput conversation={conversation} />
    </section>
  );
}

/** The blocks are part of the prompt; what is left of it are its headers and rules. */
function sharesOf(
  { messages, systemPrompt, tools }: { messages: number; systemPrompt: number; tools: number },
  blocks: readonly Block[],
) {
  const named = blocks
    .filter(({ tokens }) => tokens > 0)
    .map(({ label, tokens }) => ({ name: `block ${label}`, value: tokens }));
  const inBlocks = named.reduce((sum, { value }) => sum + value, 0);
  return [
    { name: "prompt around the blocks", value: Math.max(0, systemPrompt - inBlocks) },
    ...named,
    { name: "tools", value: tools },
    { name: "messages", value: messages },
  ];
}

function Prompt({ conversation: { session, id } }: { conversation: Conversation }) {
  const rendered = useLoad(`${id}/prompt`, (signal) => session.renderPrompt({}, { signal }));
  const [frozen, setFrozen] = useState<{ prompt: string; hash: string; frozenAt: number } | null>(null);
  const show = async (work: () => Promise<{ prompt: string; hash: string; frozenAt: number }>, said?: string) => {
    try {
      setFrozen(await work());
      if (said) tell(said);
    } catch (error) {
      tellError(error);
    }
  };
  const now = rendered.data?.prompt;
  return (
    <>
      <h3>
        System prompt{" "}
        {rendered.data && (
          <span class="note">{count(rendered.data.tokensEstimate)} tokens, as the blocks stand now</span>
        )}
      </h3>
      {rendered.error !== undefined && <Problem error={rendered.error} retry={rendered.reload} />}
      {now !== undefined &&
        (now === "" ? (
          <p class="note">There are no blocks, so the prompt is empty.</p>
        ) : (
          <Stored label="System prompt" text={shownText(now)} />
        ))}
      <p class="hint">
        A conversation keeps the prompt of its first turn, to the byte, until it is refreshed. Without a frozen prompt,
        the first button freezes it, as the next turn would.
      </p>
      <div class="actions">
        {may("freezePrompt") && (
          <Button onClick={() => void show(() => session.freezePrompt())}>Show the frozen prompt</Button>
        )}
        {may("refreshPrompt") && (
          <Button
            icon="redo"
            onClick={() => void show(() => session.refreshPrompt(), "The prompt is rendered anew and frozen.")}
          >
            Refresh it
          </Button>
        )}
      </div>
      {frozen !== null && (
        <div class="card">
          <p class="note">
            Frozen {shownTime(frozen.frozenAt)}, SHA-256 <bdi class="mono">{frozen.hash}</bdi>
          </p>
          {frozen.prompt === now ? (
            <p>
              <Icon name="check" /> It is the same as the prompt above.
            </p>
          ) : (
            <Diff rows={diff(frozen.prompt, now ?? "")} />
          )}
        </div>
      )}
    </>
  );
}

const FORMATS: ReadonlyArray<readonly [Provider, string]> = [
  ["anthropic", "Anthropic"],
  ["openai", "OpenAI"],
  ["workers-ai", "Workers AI"],
];

function ModelInput({ conversation: { session, id } }: { conversation: Conversation }) {
  const [format, setFormat] = useState<Provider>("anthropic");
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="card fold" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="send" /> <b>The messages as a provider gets them</b>
      </summary>
      {isOpen && <Select label="Provider" value={format} options={FORMATS} onChange={setFormat} />}
      {isOpen && (
        <Built
          key={format}
          load={(signal) => session.buildWorkingContext({ format }, { signal })}
          id={`${id}/${format}`}
        />
      )}
    </details>
  );
}

function Built({ load, id }: { load: (signal: AbortSignal) => Promise<{ modelInput?: unknown }>; id: string }) {
  const { data, error, reload } = useLoad(id, load);
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (data === undefined) return <Loading what="the messages" />;
  return <Code text={shownJson(data.modelInput)} />;
}
