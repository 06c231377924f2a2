// Receipts of erasures. A receipt has counts and no content, so this browser can store it.

import { signal } from "@preact/signals";
import { Button, Name } from "../ui/basics.tsx";
import { counted, erasedText, shownTime } from "../text.ts";
import { save } from "./files.ts";

const STORED = "session-agent.receipts";
const MAX_RECEIPTS = 100;

export interface Receipt {
  agent: string;
  operation: string;
  at: number;
  digest: string;
  erased: Readonly<Record<string, number>>;
  signature?: string | null;
}

function load(): Receipt[] {
  try {
    const list: unknown = JSON.parse(localStorage.getItem(STORED) ?? "[]");
    return Array.isArray(list) ? list.filter((one) => typeof one?.digest === "string" && one.erased !== null) : [];
  } catch {
    return [];
  }
}

export const receipts = signal<readonly Receipt[]>(load());

/** `answer`: an answer with a receipt. The answer's other fields are not part of the receipt. */
export function keepReceipt(answer: object): Receipt {
  const { found: _, deleted: __, destroyed: ___, ...receipt } = answer as Receipt & Record<string, unknown>;
  receipts.value = [receipt as Receipt, ...receipts.peek()].slice(0, MAX_RECEIPTS);
  try {
    localStorage.setItem(STORED, JSON.stringify(receipts.value));
  } catch {
    // The page still shows it, and the user can save it.
  }
  return receipt as Receipt;
}

export function Receipts({ agent }: { agent: string }) {
  const shown = receipts.value.filter((receipt) => receipt.agent === agent);
  if (shown.length === 0) return null;
  return (
    <section aria-labelledby="receipts">
      <h2 class="part" id="receipts">
        Receipts{" "}
        <span class="note">
          {counted(shown.length, "receipt")} stored in this browser. They contain counts, no content.
        </span>
      </h2>
      <ul class="rows">
        {shown.map((receipt) => (
          <li key={receipt.digest} class="card entry">
            <header>
              <b>{shownTime(receipt.at)}</b>
              <span class="note">
                <Name text={receipt.operation} />,{" "}
                {receipt.signature ? "signed" : "not signed: the Worker has no secret"}
              </span>
              <div class="actions">
                <Button
                  icon="download"
                  onClick={() => save(`receipt-${receipt.digest.slice(0, 12)}.json`, JSON.stringify(receipt, null, 2))}
                >
                  Save receipt
                </Button>
              </div>
            </header>
            <p>Erased: {erasedText(receipt.erased)}.</p>
          </li>
        ))}
      </ul>
    </section>
  );
}
