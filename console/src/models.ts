// How a model is named: `demo`, or a provider and a colon before the model's own name.

/** What a field for a model offers to begin with. */
export const MODELS = ["demo", "anthropic:", "openai:", "workers-ai:"];
