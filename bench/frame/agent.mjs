// This Worker, as wrangler.toml deploys it: the module that `main` names.

export { default } from "../../build/index.js";
export * from "../../build/index.js";
