// The rights that decide what the page offers: those of the credential, as far as it names them.
// The Worker decides what is done.

import { computed } from "@preact/signals";
import { credential } from "./connection.ts";
import { allows, rightsOf } from "./token.ts";

export const rights = computed(() => rightsOf(credential.value));

export function may(operation: string): boolean {
  return allows(rights.value, operation);
}
