// Shows the open view as a call of the API.

import { Dialog } from "../ui/dialog.tsx";
import { credential } from "../connection.ts";
import { CodeBlock } from "../markdown/view.tsx";
import type { Route } from "../route.ts";
import { snippetOf } from "./snippet.ts";

export function SnippetDialog({ at, onClose }: { at: Exclude<Route, { view: "home" }>; onClose: () => void }) {
  const { text, curl, client } = snippetOf(at, location.origin, credential.value !== null);
  return (
    <Dialog title="Use the API" onClose={onClose} isWide>
      <div class="dialog-body">
        <p>{text}.</p>
        <CodeBlock language="curl" text={curl} />
        <CodeBlock language="TypeScript" text={client} />
        <p class="hint">
          The <a href="/openapi.json">API reference</a> describes every operation and its fields.
        </p>
      </div>
    </Dialog>
  );
}
