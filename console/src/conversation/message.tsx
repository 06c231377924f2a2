// One message of a conversation, and its actions.

import { useState } from "preact/hooks";
import type { UiMessage } from "session-agent";
import { Button } from "../ui/basics.tsx";
import { Menu } from "../ui/menu.tsx";
import { Time } from "../ui/time.tsx";
import { notify } from "../notices.ts";
import { may } from "../rights.ts";
import { go } from "../route.ts";
import { shownTime } from "../text.ts";
import type { Conversation } from "./conversation.ts";
import { textOf } from "./messages.ts";
import { Overlay } from "./overlay.tsx";
import { Part } from "./parts.tsx";
import type { CallDecision } from "./state.ts";

const ROLES: Record<string, string> = { user: "User", assistant: "Agent", system: "System" };

export function isOverlay(message: UiMessage): boolean {
  return message.id.startsWith("compaction_");
}

interface Props {
  conversation: Conversation;
  message: UiMessage;
  fork: (atId: string) => void;
}

export function Message({ conversation, message, fork }: Props) {
  if (isOverlay(message)) return <Overlay conversation={conversation} message={message} />;
  const isEdited = conversation.edited.value === message.id;
  const decide = (call: CallDecision) => conversation.decide(message.id, call);
  // An answer to a call begins the next turn.
  const isBusy = conversation.state.value !== "idle" || conversation.decision.value !== null;
  const role = ROLES[message.role] ?? message.role;
  return (
    <article class={`message ${message.role}`} aria-label={`${role}, ${shownTime(message.createdAt)}`}>
      <header>
        <b>{role}</b>
        <Time at={message.createdAt} />
        <Siblings conversation={conversation} message={message} />
        {!isEdited && <Actions conversation={conversation} message={message} fork={fork} />}
      </header>
      {isEdited ? (
        <Editor conversation={conversation} message={message} />
      ) : (
        message.parts.map((part, n) => (
          <Part
            key={n}
            part={part}
            parts={message.parts}
            isMarkdown={message.role === "assistant"}
            decide={decide}
            isBusy={isBusy}
          />
        ))
      )}
    </article>
  );
}

function Actions({ conversation, message, fork }: Props) {
  const isBusy = conversation.state.value !== "idle";
  // No message precedes the first one, so its replacement is appended.
  const mayEdit = may("chat") && (may("appendMessage") || conversation.messages.value[0]?.id !== message.id);
  const copy = () =>
    navigator.clipboard.writeText(textOf(message)).then(
      () => notify("Copied."),
      () => notify("The browser blocked copying. Select the text and copy it manually.", "failed"),
    );
  const made = () =>
    go({
      view: "session",
      agent: conversation.agentName,
      session: conversation.id,
      tab: "turns",
      at: message.id,
    });
  return (
    <div class="message-actions">
      {message.role === "assistant" && may("chat") && (
        <Button
          kind="quiet"
          icon="redo"
          label="Regenerate"
          disabled={isBusy}
          onClick={() => void conversation.regenerate(message.id)}
        />
      )}
      {message.role === "user" && mayEdit && (
        <Button
          kind="quiet"
          icon="edit"
          label="Edit and resend"
          disabled={isBusy}
          onClick={() => (conversation.edited.value = message.id)}
        />
      )}
      <Menu
        label="More for this message"
        items={[
          { text: "Copy text", icon: "copy", run: () => void copy() },
          ...(message.role === "assistant"
            ? [{ text: "View turn", icon: "flow" as const, needs: "getTurns", run: made }]
            : []),
          { text: "Fork from here", icon: "fork", needs: "forkSession", run: () => fork(message.id) },
          {
            text: "Delete message",
            icon: "trash",
            needs: "deleteMessages",
            isDanger: true,
            run: () => void conversation.remove(message.id),
          },
        ]}
      />
    </div>
  );
}

/** Switches between alternative messages at this position. */
function Siblings({ conversation, message }: { conversation: Conversation; message: UiMessage }) {
  if (conversation.tree.nodes.value === null) return null;
  const siblings = conversation.tree.siblingsOf(message.id);
  if (siblings.length < 2) return null;
  const index = siblings.findIndex(({ id }) => id === message.id);
  const isBusy = conversation.state.value !== "idle";
  const to = (step: number) => void conversation.switchTo(siblings[index + step]!.id);
  return (
    <span class="siblings">
      {may("setLeaf") && (
        <Button
          kind="quiet"
          icon="left"
          label="Branch before"
          disabled={isBusy || index === 0}
          onClick={() => to(-1)}
        />
      )}
      <span aria-label={`Branch ${index + 1} of ${siblings.length}`} role="img">
        {index + 1} / {siblings.length}
      </span>
      {may("setLeaf") && (
        <Button
          kind="quiet"
          icon="right"
          label="Branch after"
          disabled={isBusy || index === siblings.length - 1}
          onClick={() => to(1)}
        />
      )}
    </span>
  );
}

function Editor({ conversation, message }: { conversation: Conversation; message: UiMessage }) {
  const [text, setText] = useState(textOf(message));
  const close = () => (conversation.edited.value = null);
  const resend = () => {
    close();
    void conversation.resend(message.id, text);
  };
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        resend();
      }}
    >
      <textarea
        aria-label="The message's new text"
        rows={Math.min(12, text.split("\n").length + 1)}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        ref={focus}
      />
      <div class="actions">
        <Button onClick={close}>Cancel</Button>
        <Button type="submit" kind="main" disabled={text.trim() === ""}>
          Resend
        </Button>
      </div>
      <p class="hint">The old message stays on its own branch.</p>
    </form>
  );
}

function focus(element: HTMLTextAreaElement | null): void {
  if (element && document.activeElement !== element && !element.dataset.met) {
    element.dataset.met = "yes";
    element.focus();
  }
}
