// The errors of a call: a class for each code of the API, and one for an agent that could not be
// reached.

import type { ErrorCode } from "./operations.js";

export interface ErrorFields {
  code?: string | undefined;
  status?: number | undefined;
  details?: { [field: string]: any };
  operation?: string | undefined;
  cause?: unknown;
}

/** The error of a failed call. The message is the agent's. */
export class SessionAgentError extends Error {
  /** `network_failed` is the client's own code; the others are the API's. */
  readonly code: ErrorCode | "network_failed";
  /** The status of the HTTP answer. `undefined`: there was none. */
  readonly status: number | undefined;
  readonly details: { [field: string]: any };
  /** The operation that was called. */
  readonly operation: string | undefined;

  constructor(message: string, { code, status, details = {}, operation, cause }: ErrorFields = {}) {
    super(message, cause === undefined ? undefined : { cause });
    // Derived from the code, because minifiers rename classes. Not an own property, so that a terminal
    // prints the name once.
    Object.defineProperty(this, "name", { value: nameOf(code), configurable: true, writable: true });
    this.code = code as ErrorCode;
    this.status = status;
    this.details = details;
    this.operation = operation;
  }
}

/** The agent did not respond: the connection failed, or something other than a Session Agent answered. */
export class NetworkError extends SessionAgentError {
  constructor(message: string, more: ErrorFields = {}) {
    super(message, { ...more, code: "network_failed" });
  }
}

export class InvalidRequestError extends SessionAgentError {
  get field(): string {
    return this.details.field;
  }
}

export class PayloadTooLargeError extends SessionAgentError {
  get limit(): number {
    return this.details.limit;
  }

  get actual(): number | undefined {
    return this.details.actual;
  }
}

export class BlockOverBudgetError extends SessionAgentError {
  get tokens(): number {
    return this.details.tokens;
  }

  get maxTokens(): number {
    return this.details.maxTokens;
  }
}

export class RateLimitedError extends SessionAgentError {
  /** Seconds to wait before the next attempt. */
  get retryAfter(): number {
    return this.details.retryAfter;
  }
}

export class NotConfiguredError extends SessionAgentError {
  get binding(): string {
    return this.details.binding;
  }
}

export class UnauthorizedError extends SessionAgentError {}
export class ForbiddenError extends SessionAgentError {}
export class BlockReadOnlyError extends SessionAgentError {}
export class UnknownOperationError extends SessionAgentError {}
export class SessionNotFoundError extends SessionAgentError {}
export class MessageNotFoundError extends SessionAgentError {}
export class BlockNotFoundError extends SessionAgentError {}
export class SkillNotFoundError extends SessionAgentError {}
export class MethodNotAllowedError extends SessionAgentError {}
export class LeafMovedError extends SessionAgentError {}
export class VersionConflictError extends SessionAgentError {}
export class AlreadyExistsError extends SessionAgentError {}
export class TurnInProgressError extends SessionAgentError {}
export class StepLimitReachedError extends SessionAgentError {}
/** The body was compressed. */
export class UnsupportedMediaTypeError extends SessionAgentError {}
export class ModelFailedError extends SessionAgentError {}
export class ModelOverloadedError extends SessionAgentError {}
export class StorageFailedError extends SessionAgentError {}
export class CorruptRowError extends SessionAgentError {}

function nameOf(code: string | undefined): string {
  const words = String(code ?? "session_agent").split("_");
  return `${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("")}Error`.replace(
    "NetworkFailed",
    "Network",
  );
}
