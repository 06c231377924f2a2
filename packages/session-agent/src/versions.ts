// The versions that this package supports. The README, the guides, the templates and each package.json
// repeat them: tests/scripts/versions.test.mjs compares them with this file.

export const VERSIONS = {
  /** `worker`: required by the oldest supported wrangler. */
  node: { client: "20.0.0", worker: "22.12.0" },
  wrangler: { oldest: "4.124.0", newest: "4.164.0" },
  /** The oldest: since this date, a Worker that binds an object can call its methods. */
  compatibilityDate: { oldest: "2024-04-03", newest: "2026-11-17" },
  /** The AI SDK: majors of the package `ai`, and the specification of the models that come with each. */
  ai: { majors: { "5": "v2", "6": "v3", "7": "v4" }, newest: "7.0.173" },
} as const;
