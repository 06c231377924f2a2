// The context of the session's next turn: the exact prompt, the messages, the tools, and the tokens
// of each.

import { useState } from "preact/hooks";
import type { Block } from "session-agent";
import { Shares } from "../ui/bar.tsx";
import { Button, Heading, Loading, Problem, Stored } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import type { Conversation } from "../conversation/conversation.ts";
import { useLoad } from "../load.ts";
import { notify, notifyError } from "../notices.ts";
import { may } from "../rights.ts";
import { count, counted, shownText, shownTime } from "../text.ts";
import { ContextTools } from "./context_tools.tsx";
import { NextRequest } from "./next_request.tsx";
import { Diff } from "./versions.tsx";
import { diff } from "./diff.ts";

export function Context({ conversation }: { conversation: Conversation }) {
  const { session, agent, id } = conversation;
  const ledger = useLoad(`${id}/ledger`, async (signal) => {
    const isWhole = may("listTools");
    const [estimate, own, shared, built, stored, registered] = await Promise.all([
      session.estimateTokens({}, { signal }),
      session.getBlocks({}, { signal }),
      agent.getBlocks({}, { signal }),
      isWhole ? session.buildWorkingContext({ asTurn: true }, { signal }) : session.getTools({}, { signal }),
      session.getSession({}, { signal }),
      isWhole ? agent.listTools({}, { signal }) : null,
    ]);
    // The estimate includes only the memory tools.
    const total = "tokensEstimate" in built ? built.tokensEstimate : estimate.total;
    const all = { ...estimate, total, tools: Math.max(0, total - estimate.messages - estimate.systemPrompt) };
    const tools = built.tools ?? [];
    return { estimate: all, blocks: [...shared, ...own], tools, usage: stored?.usage, registered };
  });
  const reload = ledger.reload;
  if (ledger.error !== undefined && ledger.data === undefined) return <Problem error={ledger.error} retry={reload} />;
  if (ledger.data === undefined) return <Loading what="the context" />;
  const { estimate, blocks, tools, usage, registered } = ledger.data;
  return (
    <section class="tab-page scrolls">
      <Heading title="Context" note={`The next turn will send about ${counted(estimate.total, "token")}.`}>
        <Button icon="redo" onClick={reload}>
          Reload
        </Button>
      </Heading>
      <div class="card">
        <Shares label="Tokens" shares={sharesOf(estimate, blocks)} />
        {usage && (
          <p class="note">
            This session has used {counted(usage.inputTokens, "input token")}
            {usage.cachedInputTokens ? `, ${count(usage.cachedInputTokens)} of them cached` : ", none of them cached"}.
          </p>
        )}
      </div>
      <Prompt conversation={conversation} />
      <ContextTools tools={tools} registered={registered} />
      <NextRequest conversation={conversation} isWhole={registered !== null} />
    </section>
  );
}

/** The blocks are part of the prompt; the remainder is its headers and rules. */
function sharesOf(
  { messages, systemPrompt, tools }: { messages: number; systemPrompt: number; tools: number },
  blocks: readonly Block[],
) {
  const named = blocks
    .filter(({ tokens }) => tokens > 0)
    .map(({ label, tokens }) => ({ name: `block ${label}`, value: tokens }));
  const inBlocks = named.reduce((sum, { value }) => sum + value, 0);
  return [
    { name: "block headers", value: Math.max(0, systemPrompt - inBlocks) },
    ...named,
    { name: "tools", value: tools },
    { name: "messages", value: messages },
  ];
}

function Prompt({ conversation: { session, id } }: { conversation: Conversation }) {
  const rendered = useLoad(`${id}/prompt`, (signal) => session.renderPrompt({}, { signal }));
  const [frozen, setFrozen] = useState<{ prompt: string; hash: string; frozenAt: number } | null>(null);
  const show = async (work: () => Promise<{ prompt: string; hash: string; frozenAt: number }>, notice?: string) => {
    try {
      setFrozen(await work());
      if (notice) notify(notice);
    } catch (error) {
      notifyError(error);
    }
  };
  const now = rendered.data?.prompt;
  return (
    <>
      <h3>
        System prompt{" "}
        {rendered.data && (
          <span class="note">{count(rendered.data.tokensEstimate)} tokens, from the current blocks</span>
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
        A session reuses the exact prompt of its first turn until you refresh it. This prompt is called the frozen
        prompt. If there is none yet, the button below creates it, as the next turn would.
      </p>
      <div class="actions">
        {may("freezePrompt") && (
          <Button onClick={() => void show(() => session.freezePrompt())}>Show frozen prompt</Button>
        )}
        {may("refreshPrompt") && (
          <Button icon="redo" onClick={() => void show(() => session.refreshPrompt(), "The prompt was refreshed.")}>
            Refresh prompt
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
              <Icon name="check" /> Same as the prompt above.
            </p>
          ) : (
            <Diff rows={diff(frozen.prompt, now ?? "")} />
          )}
        </div>
      )}
    </>
  );
}
