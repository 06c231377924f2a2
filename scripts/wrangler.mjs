// Runs wrangler: with a Node that it supports, quietly, and without telemetry.

import { join } from "node:path";
import { BIN, LOCAL, NODE_MODULES, withPackages } from "./paths.mjs";
import versions from "./node_version.cjs";

export const WRANGLER = join(NODE_MODULES, "wrangler", "bin", "wrangler.js");

/** The machine's own Node if it is new enough, otherwise the one among the packages. */
export const NODE = versions.runsWrangler(process.versions.node) ? process.execPath : join(BIN, "node");

export function quietEnv(env = process.env) {
  return {
    ...withPackages(env),
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_SEND_ERROR_REPORTS: "false",
    // Printing the banner makes wrangler look for a newer version in the npm registry.
    WRANGLER_HIDE_BANNER: "true",
    WRANGLER_LOG_PATH: join(LOCAL, "logs"),
    // Otherwise workerd's simulator fetches a sample of request properties.
    CLOUDFLARE_CF_FETCH_ENABLED: "false",
  };
}
