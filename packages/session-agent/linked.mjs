// Refuses `npm install ../path/to/packages/session-agent` and `npm link`, which npm answers
// with a link. Programs resolve what the adapters import from where the link leads, so
// `session-agent/langgraph` then finds the repository's packages, or none, in place of the
// project's. npm runs this file as `prepare`; the packed archive does not have it. A workspace
// is a link, too, but one inside the project: the project's packages are found. The examples of
// the repository use the client alone.

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
