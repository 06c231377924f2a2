// Checks that the runtime, the model and the tools have supported versions. The error message names the version and
// the fix.

import { VERSIONS } from "../versions.js";

/** Without this flag of the runtime, no Worker can call a method of an object. */
const NEEDED = "rpc";

/** The problem of the Worker's date and flags, or `null`. Older runtimes don't report them. */
export function problemOfDate(
  flags: { [flag: string]: boolean } | undefined = (globalThis as any).Cloudflare?.compatibilityFlags,
): string | null {
  if (flags === undefined || flags[NEEDED] === true) return null;
  const { oldest, newest } = VERSIONS.compatibilityDate;
  return `The Worker's \`compatibility_date\` is older than ${oldest}, or it has the flag \`no_rpc\`. Write a date from ${oldest} to ${newest} into its wrangler.toml.`;
}

/** The problem of a language model's version, or `null`. */
export function problemOfModel({ specificationVersion }: { specificationVersion?: unknown }): string | null {
  const known: string[] = Object.values(VERSIONS.ai.majors);
  if (known.includes(specificationVersion as string)) return null;
  return `\`model\` returned a model of the specification ${JSON.stringify(specificationVersion)}. ${supportedVersions()} ${advice(specificationVersion !== "v1" && specificationVersion !== undefined)}`;
}

/** The problem of a tool's version, or `null`. Version 4 called its schema `parameters`. */
export function problemOfTool({
  inputSchema,
  parameters,
}: {
  inputSchema?: unknown;
  parameters?: unknown;
}): string | null {
  if (inputSchema !== undefined || parameters === undefined) return null;
  return `it has \`parameters\` and no \`inputSchema\`, as tools of \`ai\` 4. ${supportedVersions()} ${advice(false)}`;
}

const MAJORS = Object.keys(VERSIONS.ai.majors);

function supportedVersions(): string {
  return `Session Agent supports those of \`ai\` ${MAJORS.slice(0, -1).join(", ")} and ${MAJORS.at(-1)}.`;
}

function advice(isNewer: boolean): string {
  if (isNewer) return "Install a newer `session-agent`, or an older package of the provider.";
  return `Install \`ai@${MAJORS.at(-1)}\` and the provider's package for it, with Node ${VERSIONS.node.worker} or later: under Node 20, npm chooses old versions.`;
}
