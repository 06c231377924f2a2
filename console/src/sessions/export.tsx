// Downloads a session as a file.

import { useEffect, useState } from "preact/hooks";
import type { Progress as Passed } from "session-agent";
import { Button, Problem } from "../ui/basics.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import type { Conversation } from "../conversation/conversation.ts";
import { bytes, counted } from "../text.ts";
import { Progress } from "./import.tsx";

export function Export({
  conversation,
  name,
  onClose,
}: {
  conversation: Conversation;
  name: string;
  onClose: () => void;
}) {
  const [passed, setPassed] = useState<Passed>({ bytes: 0, lines: 0 });
  const [file, setFile] = useState<{ url: string; bytes: number } | null>(null);
  const [error, setError] = useState<unknown>(undefined);
  useEffect(() => {
    const stopping = new AbortController();
    let url: string | undefined;
    const read = async () => {
      const stream = await conversation.session.exportSession({ signal: stopping.signal, onProgress: setPassed });
      const blob = await new Response(stream).blob();
      url = URL.createObjectURL(blob);
      setFile({ url, bytes: blob.size });
    };
    read().catch((error) => !stopping.signal.aborted && setError(error));
    return () => {
      stopping.abort();
      if (url !== undefined) URL.revokeObjectURL(url);
    };
  }, []);
  return (
    <Dialog title="Export session" onClose={onClose}>
      <div class="dialog-body">
        {error !== undefined && <Problem error={error} />}
        {file === null && error === undefined && <Progress sent={passed.bytes} of={null} />}
        {file !== null && (
          <p role="status">
            The file is ready: {counted(passed.lines, "line")}, {bytes(file.bytes)}.
          </p>
        )}
      </div>
      <footer>
        <Button onClick={onClose}>Close</Button>
        {file !== null && (
          <a class="button main" href={file.url} download={`${fileName(name)}.ndjson`}>
            <Icon name="download" /> Save file
          </a>
        )}
      </footer>
    </Dialog>
  );
}

/** A name that is valid in every file system. */
function fileName(name: string): string {
  return name.replace(/[^\p{L}\p{N} ._-]+/gu, "_").slice(0, 80) || "session";
}
