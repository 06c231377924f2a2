// The state of a request in a view: loading, loaded, or failed with an error.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { reconnections } from "./connection.ts";

export interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  isLoading: boolean;
  reload(): void;
}

/** Loads once for each `key`, and again after `reload` or a reconnection. */
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: unknown; isLoading: boolean }>({
    key,
    isLoading: true,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const back = reconnections.value;
  useEffect(() => {
    const aborting = new AbortController();
    // The previous answer stays until the new one arrives, unless the key changed.
    setState((before) => ({
      key,
      isLoading: true,
      ...(before.key === key && before.data !== undefined && { data: before.data }),
    }));
    latest.current(aborting.signal).then(
      (data) => !aborting.signal.aborted && setState({ key, data, isLoading: false }),
      (error) => !aborting.signal.aborted && setState((before) => ({ ...before, key, error, isLoading: false })),
    );
    return () => aborting.abort();
  }, [key, turn, back]);
  const reload = useCallback(() => setTurn((turn) => turn + 1), []);
  const isOfKey = state.key === key;
  return {
    data: isOfKey ? state.data : undefined,
    error: isOfKey ? state.error : undefined,
    isLoading: !isOfKey || state.isLoading,
    reload,
  };
}

/** Runs `work` periodically, while the page is visible. */
export function useEvery(ms: number, work: () => void, isOn = true): void {
  const latest = useRef(work);
  latest.current = work;
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(() => document.visibilityState === "visible" && latest.current(), ms);
    return () => clearInterval(timer);
  }, [ms, isOn]);
}
