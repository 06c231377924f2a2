// What a form does when it is sent.

import { useState } from "preact/hooks";
import { tellError } from "../notices.ts";

/**
 * Whether work is under way, and what begins it. The form stays busy after work that went
 * well, because the form is then gone. A failure is told, and the form can be sent again.
 */
export function useWork(): [isBusy: boolean, begin: (work: () => Promise<void>) => void] {
  const [isBusy, setBusy] = useState(false);
  const begin = async (work: () => Promise<void>) => {
    setBusy(true);
    try {
      await work();
    } catch (error) {
      tellError(error);
      setBusy(false);
    }
  };
  return [isBusy, (work) => void begin(work)];
}
