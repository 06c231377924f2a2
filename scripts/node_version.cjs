// Checks the Node version for the scripts, and finds the one for wrangler and the workerd tests.
//
// The syntax works in Node 12, so that an old Node prints what to install instead of a
// SyntaxError.
"use strict";

var SCRIPTS = [20, 0];
var WRANGLER = [22, 12];

function isAtLeast(version, wanted) {
  var parts = version.split(".").map(Number);
  return parts[0] > wanted[0] || (parts[0] === wanted[0] && parts[1] >= wanted[1]);
}

/** One sentence for a Node version that is too old; `null` for a supported one. */
function problemWithNode(version) {
  if (isAtLeast(version, SCRIPTS)) {
    return null;
  }
  return (
    "Session Agent needs Node 20 or newer and this is Node " +
    version +
    ": install a current one from https://nodejs.org, then run this again."
  );
}

function runsWrangler(version) {
  return isAtLeast(version, WRANGLER);
}

module.exports = { problemWithNode: problemWithNode, runsWrangler: runsWrangler };
