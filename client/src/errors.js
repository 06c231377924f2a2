// What a call may fail with: a class for each code of the API, and one for an agent that
// could not be reached.

/** Anything that went wrong with a call. The agent's own sentence is the message. */
export class SessionAgentError extends Error {
  constructor(message, { code, status, details = {}, operation, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    // Made of the code, because a minifier renames classes. Not a field of its own, so
    // that a terminal shows the name once.
    Object.defineProperty(this, "name", { value: nameOf(code), configurable: true, writable: true });
    this.code = code;
    this.status = status;
    this.details = details;
    this.operation = operation;
  }
}

/** The agent gave no answer: the connection failed, or what answered was no Session Agent. */
export class NetworkError extends SessionAgentError {
  constructor(message, more = {}) {
    super(message, { ...more, code: "network_failed" });
  }
}

export class InvalidRequestError extends SessionAgentError {
  get field() {
    return this.details.field;
  }
}

export class PayloadTooLargeError extends SessionAgentError {
  get limit() {
    return this.details.limit;
  }

  get actual() {
    return this.details.actual;
  }
}

export class BlockOverBudgetError extends SessionAgentError {
  get tokens() {
    return this.details.tokens;
  }

  get maxTokens() {
    return this.details.maxTokens;
  }
}

export class RateLimitedError extends SessionAgentError {
  /** Seconds until the next try may pass. */
  get retryAfter() {
    return this.details.retryAfter;
  }
}

export class NotConfiguredError extends SessionAgentError {
  get binding() {
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
export class ModelFailedError extends SessionAgentError {}
export class ModelOverloadedError extends SessionAgentError {}
export class StorageFailedError extends SessionAgentError {}
export class CorruptRowError extends SessionAgentError {}

function nameOf(code) {
  const words = String(code ?? "session_agent").split("_");
  return `${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("")}Error`.replace("NetworkFailed", "Network");
}
