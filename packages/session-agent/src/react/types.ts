// The types of messages, with the tools of the page's own class.

import type { InputRequest } from "../input_request.js";
import type { UiMessage } from "../operations.js";

type Provided<Class> = Class extends abstract new (...given: any) => infer Instance ? Instance : Class;

/** The tools that a class's `tools()` returns: `ToolsOf<typeof Assistant>`, or of an instance's type. */
export type ToolsOf<Class> =
  Provided<Class> extends { tools(...given: any): infer Tools } ? Awaited<Tools> : { [name: string]: unknown };

/** The input of a tool. */
export type ToolInput<Tool> = Tool extends { execute?: infer Execute }
  ? NonNullable<Execute> extends (input: infer Input, ...given: any) => any
    ? Input
    : any
  : any;

/** The output of a tool; for a stream of outputs, the type of each. */
export type ToolOutput<Tool> = Tool extends { execute?: infer Execute }
  ? NonNullable<Execute> extends (...given: any) => infer Output
    ? Resolved<Output>
    : any
  : any;

type Resolved<Output> = Output extends AsyncIterable<infer Item> ? Item : Awaited<Output>;

/** Whether a person allowed a call. */
export interface ToolApproval {
  id: string;
  approved?: boolean;
  reason?: string;
}

/** A call of a tool. Stored calls may be older than the types, so validate values that you use. */
export type ToolCallPart<Name extends string, Input, Output> = {
  type: `tool-${Name}`;
  toolCallId: string;
} & (
  | { state: "input-streaming"; input?: unknown }
  | { state: "input-available"; input: Input }
  | { state: "approval-requested"; input: Input; approval: ToolApproval }
  | { state: "approval-responded"; input: Input; approval: ToolApproval }
  | { state: "output-available"; input: Input; output: Output; approval?: ToolApproval }
  | { state: "output-error"; input: Input; errorText: string; approval?: ToolApproval }
  | { state: "output-denied"; input: Input; approval?: ToolApproval }
);

type CallPartOf<Tools> = {
  [Name in keyof Tools & string]: ToolCallPart<Name, ToolInput<Tools[Name]>, ToolOutput<Tools[Name]>>;
}[keyof Tools & string];

/** A part of a message. */
export type ChatPart<Tools = { [name: string]: unknown }> =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string }
  | { type: "file"; url: string; mediaType: string; filename?: string }
  | { type: "step-start" }
  /** A tool's questions to the user: see `InputRequestForm`. */
  | { type: "data-input-request"; id: string; data: InputRequest }
  | CallPartOf<Tools>;

/** Why a turn failed. */
export interface ChatFailure {
  /** The error's code. `null`: not known yet. */
  code: string | null;
  /** The agent's error message. */
  message: string;
}

/** A message as `useSession` shows it. */
export interface ChatMessage<Tools = { [name: string]: unknown }> extends Omit<UiMessage, "parts"> {
  parts: ChatPart<Tools>[];
  /** `sending`: the agent may not have it yet. `waiting`: another turn runs. Absent: the agent has it. */
  delivery?: "sending" | "waiting";
  /** The turn that answers this message failed, or could not begin. `retry(id)` requests it again. */
  failure?: ChatFailure;
}
