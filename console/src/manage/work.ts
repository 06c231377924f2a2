// What a button of a form that stays does: the form is busy meanwhile, and a failure is told.

import { useState } from "preact/hooks";
import { tellError } from "../notices.ts";

export function useBusy(): [isBusy: boolean, run: (work: () => Promise<void>) => void] {
  const [isBusy, setBusy] = useState(false);
  const run = async (work: () => Promise<void>) => {
    setBusy(true);
    try {
      await work();
    } catch (error) {
      tellError(error);
    }
    setBusy(false);
  };
  return [isBusy, (work) => void run(work)];
}
