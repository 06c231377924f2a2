// Names of models: `demo`, or `provider:name`.

/** The suggestions of a field for a model. */
export const MODELS = ["demo", "anthropic:", "openai:", "workers-ai:"];
