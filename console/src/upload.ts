// Sends a file with progress. `fetch` can't tell how much of a body is sent, and browsers
// refuse a stream as a body over HTTP/1.1, so this one request is an XMLHttpRequest.

import { SessionAgentError, type Imported } from "session-agent";
import { credential } from "./connection.ts";
import { begin, keep } from "./requests.ts";

export function upload(
  agent: string,
  session: string,
  file: Blob,
  onProgress: (sent: number) => void,
): Promise<Imported> {
  const url = `/agents/session-agent/${encodeURIComponent(agent)}/sessions/${encodeURIComponent(session)}/import`;
  const request = begin(url);
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open("POST", url);
    sending.setRequestHeader("content-type", "application/x-ndjson");
    const token = credential.peek();
    if (token !== null) sending.setRequestHeader("authorization", `Bearer ${token}`);
    sending.upload.onprogress = ({ loaded }) => onProgress(loaded);
    sending.onerror = () => fail("The connection failed during the upload. Nothing was stored.", "network_failed");
    sending.onload = () => {
      const answer = parsed(sending.responseText);
      if (sending.status === 200) {
        keep({ ...measuredNow(), error: null });
        return resolve(answer);
      }
      fail(answer?.error?.message ?? `The import failed with status ${sending.status}.`, answer?.error?.code);
    };
    sending.send(file);

    const measuredNow = () => ({
      ...request,
      ms: performance.now() - started,
      status: sending.status || null,
      rowsRead: header(sending, "x-rows-read"),
      rowsWritten: header(sending, "x-rows-written"),
    });
    const fail = (message: string, code?: string) => {
      keep({ ...measuredNow(), error: message });
      reject(
        new SessionAgentError(message, {
          ...(code !== undefined && { code }),
          status: sending.status,
          operation: "importSession",
        }),
      );
    };
  });
}

function header(sending: XMLHttpRequest, name: string): number | null {
  const text = sending.getResponseHeader(name);
  return text === null ? null : Number(text);
}

function parsed(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
