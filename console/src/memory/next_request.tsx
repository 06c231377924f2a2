// The exact request that the next turn sends to its model.

import { useState } from "preact/hooks";
import type { Provider } from "session-agent";
import { Loading, Problem, Select } from "../ui/basics.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { Icon } from "../ui/icons.tsx";
import type { Conversation } from "../conversation/conversation.ts";
import { Code } from "../conversation/parts.tsx";
import { useLoad } from "../load.ts";
import { shownJson } from "../text.ts";

const OWN = "own";

const FORMATS: ReadonlyArray<readonly [Provider, string]> = [
  ["anthropic", "Anthropic"],
  ["openai", "OpenAI"],
  ["workers-ai", "Workers AI"],
];

/** `isWhole`: the credential allows reading all tools. Otherwise only the messages are shown. */
export function NextRequest({ conversation, isWhole }: { conversation: Conversation; isWhole: boolean }) {
  const formats = isWhole ? [[OWN, "Agent's model"] as const, ...FORMATS] : FORMATS;
  const [format, setFormat] = useState<string>(formats[0]![0]);
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <h3>Next request</h3>
      <details class="card fold" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <Icon name="send" /> <b>{isWhole ? "Full request" : "Messages in the provider's format"}</b>
        </summary>
        {isOpen && <Select label="Format" value={format} options={formats} onChange={setFormat} />}
        {isOpen && <Built key={format} conversation={conversation} format={format} isWhole={isWhole} />}
      </details>
    </>
  );
}

function Built({ conversation, format, isWhole }: { conversation: Conversation; format: string; isWhole: boolean }) {
  const { session, id } = conversation;
  const of = format === OWN ? {} : { format: format as Provider };
  const { data, error, reload } = useLoad(`${id}/${format}`, (signal) =>
    session.buildWorkingContext({ ...of, ...(isWhole && { asTurn: true }) }, { signal }),
  );
  if (error !== undefined) return <Problem error={error} retry={reload} />;
  if (data === undefined) return <Loading what="the request" />;
  const text = shownJson(data.modelInput);
  return (
    <>
      <p class="note">
        {isWhole
          ? "Includes the instructions, all tools, and the messages that fit. Your next message is added at the end."
          : "Your token can't list the agent's tools, so they are not shown."}
      </p>
      <CopyButton text={text} what="the request" />
      <Code text={text} />
    </>
  );
}
