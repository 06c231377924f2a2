// Grades answers by comparing strings, and sums them up.

import { UNKNOWN } from "./oracle.mjs";

/** Words by which a model says that it does not know. */
const DOES_NOT_KNOW = /\b(unknown|(do|does)(n't| not) know|not (sure|mentioned|provided|told)|no information)\b/i;

/**
 * `right`, `wrong` or `unknown`. An answer with a forbidden value is wrong. Where nobody can know
 * it, saying so is right, and anything else wrong.
 */
export function grade({ expected, forbidden }, answer) {
  if (forbidden.some((value) => answer.includes(value))) return "wrong";
  if (expected !== null && answer.includes(expected)) return "right";
  const isUnsure = answer.trim() === "" || answer.includes(UNKNOWN) || DOES_NOT_KNOW.test(answer);
  if (expected === null) return isUnsure ? "right" : "wrong";
  return isUnsure ? "unknown" : "wrong";
}

/** Sums of answers, by kind and in all. */
export class Tally {
  kinds = new Map();
  tokens = 0;
  cost = 0;
  questions = 0;

  add(kind, outcome, { inputTokens, outputTokens, cost }) {
    const sums = this.kinds.get(kind) ?? { right: 0, wrong: 0, unknown: 0 };
    sums[outcome] += 1;
    this.kinds.set(kind, sums);
    this.questions += 1;
    this.tokens += inputTokens + outputTokens;
    this.cost += cost;
  }

  of(outcome) {
    return [...this.kinds.values()].reduce((sum, kind) => sum + kind[outcome], 0);
  }
}
