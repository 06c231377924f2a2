// How a model is named: `demo`, or a provider and a colon before the model's own name.

/** The suggestions of a field for a model. */
export const MODELS = ["demo", "anthropic:", "openai:", "workers-ai:"];
