// The client of Session Agent.

export { type AgentClient, type Health, sessionAgent } from "./agent.js";
export type { AiMessage, MemoryTool } from "./ai_sdk.js";
export type { AiTurnMessage, AiStep, AiTurn, Persisted, AppendPosition } from "./ai_sdk_turn.js";
export type * from "./bindings.js";
export { namespaceOf, serviceOf } from "./bindings.js";
export type { ChatChunk, ChatInput } from "./chat.js";
export * from "./compact.js";
export { buildWorkingContext, type ContextBuilderOptions, WorkingContext } from "./context.js";
export * from "./errors.js";
export {
  dehydrateEvent,
  EventAction,
  eventToMessage,
  hydrateEvent,
  type LoggedEvent,
  messageToEvent,
  type ModelMessage,
  type PlainEvent,
  type StoredEvent,
  type ModelEvent,
} from "./events.js";
export {
  accept as acceptInput,
  fieldsOf as inputFieldsOf,
  type InputAnswers,
  type InputField,
  type InputForm,
  type InputOption,
  type InputPage,
  type InputRequest,
  refuse as refuseInput,
  type FormField,
} from "./input_request.js";
export type * from "./operations.js";
export * from "./provider_formats.js";
export type { AgentOptions, CallOptions, RetryOptions, TraceCarrier } from "./options.js";
export type { ChangesOptions } from "./pages.js";
export type { ModelInput, ModelInputOptions, PersistOptions, SessionClient } from "./session.js";
export type { ExportLine, ImportFile, Progress, TransferOptions } from "./transfer.js";
export type { ExportAgentOptions, ImportAgentOptions } from "./whole.js";
export type { AppendMessages, SetBlock, SetEntry } from "./writes.js";
export { type ModelFormatAdapter, type WorkersAIChatMessage, workersAIAdapter } from "./workers_ai.js";
