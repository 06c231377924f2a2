// The entry point of every npm script: `node scripts/run.cjs start|test|build|lint|bench|example|create|release`.
//
// An old Node must parse this file to report its version, so this file and node_version.cjs only use syntax of Node 12.
// Everything else is in modules that are loaded afterward.
"use strict";

var TASKS = ["start", "test", "build", "lint", "bench", "example", "create", "release"];

// The hint for `npx wrangler dev` in the clone.
var INSTEAD =
  "\nTo try Session Agent on this machine, run `npm start`: it needs no account, and serves the console at http://localhost:8787. `wrangler dev` uses the production configuration: it needs a Cloudflare login for Workers AI, and a secret SESSION_AGENT_TOKEN in .dev.vars, without which every request is answered 401.\n";

var problem = require("./node_version.cjs").problemWithNode(process.versions.node);
if (problem === null && TASKS.indexOf(process.argv[2]) === -1) {
  problem = "Usage: node scripts/run.cjs " + TASKS.join("|");
}
if (problem !== null) {
  console.error(problem);
  process.exit(1);
}

import("./" + process.argv[2] + ".mjs")
  .then(function (task) {
    return task.main(process.argv.slice(3));
  })
  .then(
    function (code) {
      process.exitCode = code;
      // `wrangler dev` runs the build first. `npm start` does so too, and needs no hint.
      if (process.env.WRANGLER_COMMAND === "dev" && !process.env.SESSION_AGENT_START) console.error(INSTEAD);
    },
    function (error) {
      // The message of a `UserError` is for the reader; anything else is a bug.
      console.error(error.name === "UserError" ? error.message : error);
      process.exitCode = 1;
    },
  );
