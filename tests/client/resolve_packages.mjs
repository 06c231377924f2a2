// Makes Node resolve `session-agent` and its subpaths to packages/session-agent/, and resolve the
// framework packages that they import from this folder, as they would be from a caller's.
//
// A test imports this file first, and passes it to other programs by `--import`.

import { registerHooks } from "node:module";
import { readFileSync } from "node:fs";

const CLIENT = new URL("../../packages/session-agent/", import.meta.url);
const { exports: entries } = JSON.parse(readFileSync(new URL("package.json", CLIENT), "utf8"));

registerHooks({
  resolve(name, context, next) {
    const entry = /^session-agent(\/.*)?$/.exec(name);
    if (entry !== null) return next(new URL(entries[`.${entry[1] ?? ""}`].default, CLIENT).href, context);
    const isOfClient = context.parentURL?.startsWith(new URL("dist/", CLIENT).href) && !name.startsWith(".");
    return next(name, isOfClient ? { ...context, parentURL: import.meta.url } : context);
  },
});
