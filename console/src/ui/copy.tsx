// A button that copies a text.

import { useState } from "preact/hooks";
import { notify } from "../notices.ts";
import { Button } from "./basics.tsx";

const NOTICE_MS = 1500;

export function CopyButton({ text, what }: { text: string; what: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => {
        setCopied(true);
        setTimeout(() => setCopied(false), NOTICE_MS);
      },
      () => notify("The browser blocked copying. Select the text and copy it manually.", "failed"),
    );
  return (
    <Button kind="quiet" icon={isCopied ? "check" : "copy"} label={`Copy ${what}`} onClick={() => void copy()}>
      {isCopied ? "Copied" : "Copy"}
    </Button>
  );
}
