import type { Loaded } from "../load.ts";
import { Loading, Problem } from "./basics.tsx";

/** The placeholder for an answer: loading, or why it failed. */
export function Pending({ of, what }: { of: Loaded<unknown>; what: string }) {
  if (of.error !== undefined) return <Problem error={of.error} retry={of.reload} />;
  return of.data == null ? <Loading what={what} /> : null;
}
