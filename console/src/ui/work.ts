// Runs the action of a form or a button: shows that it is busy, and reports failures.

import { useState } from "preact/hooks";
import { notifyError } from "../notices.ts";

/** Whether the action is running, and a function that starts it. */
export function useWork(): [isBusy: boolean, begin: (work: () => Promise<void>) => void] {
  const [isBusy, setBusy] = useState(false);
  const begin = async (work: () => Promise<void>) => {
    setBusy(true);
    try {
      await work();
    } catch (error) {
      notifyError(error);
    }
    setBusy(false);
  };
  return [isBusy, (work) => void begin(work)];
}
