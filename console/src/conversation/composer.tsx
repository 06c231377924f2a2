// The composer: writes and sends messages, and stops the running turn.

import { signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { Button, Field } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import { MODELS } from "../models.ts";
import { may, rights } from "../rights.ts";
import type { Conversation } from "./conversation.ts";

/** The model of the next turns of this page. Empty: the agent's own. */
const model = signal("");

export function Composer({ conversation }: { conversation: Conversation }) {
  const [text, setText] = useState("");
  const area = useRef<HTMLTextAreaElement>(null);
  const state = conversation.state.value;
  const isAnswering = state === "answering" || state === "stopping";
  const send = async () => {
    if (text.trim() === "") return;
    setText("");
    area.current?.focus();
    const chosen = model.peek().trim();
    const isAccepted = await conversation.send(text, chosen ? { model: chosen } : {});
    // If the agent didn't accept the message, the composer restores its text.
    if (!isAccepted) setText((newer) => (newer === "" ? text : `${text}\n\n${newer}`));
  };
  if (!may("chat")) return <p class="composer hint">Your token can read this conversation but not write to it.</p>;
  const models = rights.value.models;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void send();
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <textarea
        ref={area}
        aria-label="Message"
        placeholder="Write a message"
        rows={Math.min(8, Math.max(1, text.split("\n").length))}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div class="composer-line">
        {models?.length !== 0 && (
          <details class="fold model">
            <summary>
              <Icon name="settings" /> {model.value.trim() || "Agent's model"}
            </summary>
            <Field
              label="Model for messages sent from this page"
              value={model.value}
              onInput={(text) => (model.value = text)}
              list={models ?? MODELS}
              placeholder="Agent's model"
              hint="demo, or provider:model, for example openai:gpt-5-mini."
            />
          </details>
        )}
        <span class="hint">Press Enter to send, Shift+Enter for a new line.</span>
        {isAnswering && may("cancelTurn") && (
          <Button icon="stop" onClick={() => void conversation.stop()} disabled={state === "stopping"}>
            {state === "stopping" ? "Stopping" : "Stop"}
          </Button>
        )}
        {(!isAnswering || text.trim() !== "") && (
          <Button type="submit" kind="main" icon="send" disabled={text.trim() === ""}>
            {isAnswering ? "Send next" : "Send"}
          </Button>
        )}
      </div>
    </form>
  );
}
