// The rights of the credential, as far as it names them. They determine what the page offers; the
// Worker enforces them.

import { computed } from "@preact/signals";
import { credential } from "./connection.ts";
import { allows, rightsOf } from "./token.ts";

export const rights = computed(() => rightsOf(credential.value));

export function may(operation: string): boolean {
  return allows(rights.value, operation);
}
