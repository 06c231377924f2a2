// The error class of each error code of the API.

import {
  AlreadyExistsError,
  BlockNotFoundError,
  BlockOverBudgetError,
  BlockReadOnlyError,
  CorruptRowError,
  type ErrorFields,
  ForbiddenError,
  InvalidRequestError,
  LeafMovedError,
  MessageNotFoundError,
  MethodNotAllowedError,
  ModelFailedError,
  ModelOverloadedError,
  NotConfiguredError,
  PayloadTooLargeError,
  RateLimitedError,
  SessionAgentError,
  SessionNotFoundError,
  SkillNotFoundError,
  StepLimitReachedError,
  StorageFailedError,
  TurnInProgressError,
  UnauthorizedError,
  UnknownOperationError,
  UnsupportedMediaTypeError,
  VersionConflictError,
} from "./errors.js";
import type { ErrorCode } from "./operations.js";

type ErrorClass = new (message: string, more?: ErrorFields) => SessionAgentError;

/** The classes by error code. A code that is newer than this client has none. */
const CLASSES: { [Code in ErrorCode]: ErrorClass } = {
  invalid_request: InvalidRequestError,
  unauthorized: UnauthorizedError,
  forbidden: ForbiddenError,
  block_read_only: BlockReadOnlyError,
  unknown_operation: UnknownOperationError,
  session_not_found: SessionNotFoundError,
  message_not_found: MessageNotFoundError,
  block_not_found: BlockNotFoundError,
  skill_not_found: SkillNotFoundError,
  method_not_allowed: MethodNotAllowedError,
  leaf_moved: LeafMovedError,
  version_conflict: VersionConflictError,
  already_exists: AlreadyExistsError,
  turn_in_progress: TurnInProgressError,
  payload_too_large: PayloadTooLargeError,
  unsupported_media_type: UnsupportedMediaTypeError,
  step_limit_reached: StepLimitReachedError,
  rate_limited: RateLimitedError,
  block_over_budget: BlockOverBudgetError,
  not_configured: NotConfiguredError,
  model_failed: ModelFailedError,
  model_overloaded: ModelOverloadedError,
  storage_failed: StorageFailedError,
  corrupt_row: CorruptRowError,
};

/** The error of an answer's `error` object, or of an error that Workers RPC threw. */
export function errorFrom(
  { code, message, details }: { code: string; message: string; details?: { [field: string]: any } },
  { status, operation }: { status?: number | undefined; operation: string },
): SessionAgentError {
  const Class = Object.hasOwn(CLASSES, code) ? CLASSES[code as ErrorCode] : SessionAgentError;
  return new Class(message, { code, status, details: details ?? {}, operation });
}
