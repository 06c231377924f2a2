// Rejects `npm install ../path/to/packages/session-agent` and `npm link`, for which npm creates a
// symbolic link. Imports of the adapters are resolved at the link's target, so
// `session-agent/langgraph` would find the repository's packages, or none, instead of the project's.
// npm runs this file as `prepare`; the packed archive doesn't contain it. Workspaces are links, too,
// but inside the project, so the project's packages are found. The repository's examples use only the
// client.

import { join, relative, sep } from "node:path";

const { npm_command: command, npm_config_local_prefix: project = "" } = process.env;
const isUnder = (folder, inside) => relative(folder, inside).split(sep)[0] !== "..";
const repository = join(import.meta.dirname, "../..");
const isInside = project !== "" && (isUnder(project, import.meta.dirname) || isUnder(repository, project));

if (["install", "add", "link", "ci", "update"].includes(command) && !isInside) {
  console.error(
    "session-agent can't be installed as a link, because its adapters would not find your project's packages. " +
      "Create an archive and install that: `npm pack ./packages/session-agent` in the repository, then " +
      "`npm install ../path/to/session-agent-0.1.0.tgz` in your project. Or make the folder a workspace of your project.",
  );
  process.exit(1);
}
