// The client of Session Agent. index.d.ts beside this file has the types.

export { sessionAgent } from "./agent.js";
export * from "./errors.js";
export { EventAction, dehydrateEvent, eventToMessage, hydrateEvent, messageToEvent } from "./events.js";
export { WorkingContext, buildWorkingContext } from "./context.js";
export { workersAIAdapter } from "./workers_ai.js";
