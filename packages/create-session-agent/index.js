#!/usr/bin/env node
// `npm create session-agent@latest`. Checks the version of Node before loading anything that an old one
// can't parse.

// Wrangler's, as in the project's package.json.
const OLDEST_NODE = "22.12.0";

const [major, minor] = process.versions.node.split(".").map(Number);
const [oldestMajor, oldestMinor] = OLDEST_NODE.split(".").map(Number);
if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) {
  import("./create.js");
} else {
  console.error(
    "Session Agent is served and deployed by wrangler, which needs Node " +
      OLDEST_NODE +
      " or later, and this is Node " +
      process.versions.node +
      ". Under an older Node, npm also chooses old versions of wrangler and of `ai`. Install a current Node from https://nodejs.org, then run this again.",
  );
  process.exitCode = 1;
}
