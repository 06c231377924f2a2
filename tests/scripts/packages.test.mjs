import assert from "node:assert/strict";
import { test } from "node:test";
import { isComplete } from "../../scripts/setup/packages.mjs";

const LINUX = { platform: "linux", arch: "x64" };
const wanted = {
  packages: {
    "": { name: "session-agent" },
    "node_modules/wrangler": { version: "2.0.0" },
    "node_modules/runtime-linux": { version: "1.0.0", optional: true, os: ["linux"], cpu: ["x64"] },
    "node_modules/runtime-mac": { version: "1.0.0", optional: true, os: ["darwin"], cpu: ["arm64"] },
    "node_modules/nice-to-have": { version: "1.0.0", optional: true },
  },
};
const installed = (packages) => ({ packages });

test("packages_for_this_platform_are_sufficient", () => {
  const both = { "node_modules/wrangler": { version: "2.0.0" }, "node_modules/runtime-linux": { version: "1.0.0" } };
  assert.equal(isComplete(wanted, installed(both), LINUX), true);
  assert.equal(isComplete(wanted, installed(both), { platform: "darwin", arch: "arm64" }), false);
});

test("another_version_or_a_missing_platform_package_is_insufficient", () => {
  const old = { "node_modules/wrangler": { version: "1.9.0" }, "node_modules/runtime-linux": { version: "1.0.0" } };
  assert.equal(isComplete(wanted, installed(old), LINUX), false);
  assert.equal(isComplete(wanted, installed({ "node_modules/wrangler": { version: "2.0.0" } }), LINUX), false);
});
