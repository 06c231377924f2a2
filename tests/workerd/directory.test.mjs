// The directory of agents: a Worker that binds it, with and without a secret. Agents are
// killed between their first write and the directory, and in the middle of being destroyed.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startServer } from "./harness.mjs";
