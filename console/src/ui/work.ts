// The work of a form or a button that takes a while: it is busy meanwhile, and a failure is told.

import { useState } from "preact/hooks";
import { tellError } from "../notices.ts";

/** Whether work is under way, and what begins it. */
export function useWork(): [isBusy: boolean, begin: (work: () => Promise<void>) => void] {
  const [isBusy, setBusy] = useState(false);
  const begin = async (work: () => Promise<void>) => {
    setBusy(true);
    try {
      await work();
    } catch (error) {
      tellError(error);
    }
    setBusy(false);
  };
  return [isBusy, (work) => void begin(work)];
}
