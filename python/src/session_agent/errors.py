"""The errors of a call: a class for each code of the API, and one for an agent that did not respond."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "AlreadyExistsError",
    "BlockNotFoundError",
    "BlockOverBudgetError",
    "BlockReadOnlyError",
    "CorruptRowError",
    "ForbiddenError",
    "InvalidRequestError",
    "LeafMovedError",
    "MessageNotFoundError",
    "MethodNotAllowedError",
    "ModelFailedError",
    "ModelOverloadedError",
    "NetworkError",
    "NotConfiguredError",
    "PayloadTooLargeError",
    "RateLimitedError",
    "SessionAgentError",
    "SessionNotFoundError",
    "SkillNotFoundError",
    "StepLimitReachedError",
    "StorageFailedError",
    "TurnInProgressError",
    "UnauthorizedError",
    "UnknownOperationError",
    "UnsupportedMediaTypeError",
    "VersionConflictError",
]


class SessionAgentError(Exception):
    """Anything that went wrong with a call. The agent's own sentence is the message."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "network_failed",
        status: int | None = None,
        details: Mapping[str, Any] | None = None,
        operation: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        """`network_failed` is of this client; the others are the API's (`session_agent.types.ErrorCode`)."""
        self.status = status
        """The status of the HTTP answer. `None`: there was none."""
        self.details: dict[str, Any] = dict(details or {})
        self.operation = operation
        """The operation that was called."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Else an exception with keywords can't be carried between processes.
        return (_remade, (type(self), self.message, self.code, self.status, self.details, self.operation))


def _remade(
    kind: type[SessionAgentError],
    message: str,
    code: str,
    status: int | None,
    details: dict[str, Any],
    operation: str | None,
) -> SessionAgentError:
    return kind(message, code=code, status=status, details=details, operation=operation)


class NetworkError(SessionAgentError):
    """The agent did not respond: the connection failed or timed out, or something else answered."""


class InvalidRequestError(SessionAgentError):
    @property
    def field(self) -> str | None:
        return self.details.get("field")


class PayloadTooLargeError(SessionAgentError):
    @property
    def limit(self) -> int | None:
        return self.details.get("limit")

    @property
    def actual(self) -> int | None:
        return self.details.get("actual")


class BlockOverBudgetError(SessionAgentError):
    @property
    def tokens(self) -> int | None:
        return self.details.get("tokens")

    @property
    def max_tokens(self) -> int | None:
        return self.details.get("maxTokens")


class RateLimitedError(SessionAgentError):
    @property
    def retry_after(self) -> float | None:
        """Seconds until the next try may pass."""
        return self.details.get("retryAfter")


class NotConfiguredError(SessionAgentError):
    @property
    def binding(self) -> str | None:
        return self.details.get("binding")


class UnauthorizedError(SessionAgentError): ...


class ForbiddenError(SessionAgentError): ...


class BlockReadOnlyError(SessionAgentError): ...


class UnknownOperationError(SessionAgentError): ...


class SessionNotFoundError(SessionAgentError): ...


class MessageNotFoundError(SessionAgentError): ...


class BlockNotFoundError(SessionAgentError): ...


class SkillNotFoundError(SessionAgentError): ...


class MethodNotAllowedError(SessionAgentError): ...


class LeafMovedError(SessionAgentError): ...


class VersionConflictError(SessionAgentError): ...


class AlreadyExistsError(SessionAgentError): ...


class TurnInProgressError(SessionAgentError): ...


class StepLimitReachedError(SessionAgentError): ...


class UnsupportedMediaTypeError(SessionAgentError): ...


class ModelFailedError(SessionAgentError): ...


class ModelOverloadedError(SessionAgentError): ...


class StorageFailedError(SessionAgentError): ...


class CorruptRowError(SessionAgentError): ...


# A code that is newer than this client has no class of its own.
CLASSES: dict[str, type[SessionAgentError]] = {
    "invalid_request": InvalidRequestError,
    "unauthorized": UnauthorizedError,
    "forbidden": ForbiddenError,
    "block_read_only": BlockReadOnlyError,
    "unknown_operation": UnknownOperationError,
    "session_not_found": SessionNotFoundError,
    "message_not_found": MessageNotFoundError,
    "block_not_found": BlockNotFoundError,
    "skill_not_found": SkillNotFoundError,
    "method_not_allowed": MethodNotAllowedError,
    "leaf_moved": LeafMovedError,
    "version_conflict": VersionConflictError,
    "already_exists": AlreadyExistsError,
    "turn_in_progress": TurnInProgressError,
    "payload_too_large": PayloadTooLargeError,
    "unsupported_media_type": UnsupportedMediaTypeError,
    "step_limit_reached": StepLimitReachedError,
    "rate_limited": RateLimitedError,
    "block_over_budget": BlockOverBudgetError,
    "not_configured": NotConfiguredError,
    "model_failed": ModelFailedError,
    "model_overloaded": ModelOverloadedError,
    "storage_failed": StorageFailedError,
    "corrupt_row": CorruptRowError,
}


def error_from(error: Mapping[str, Any], *, status: int | None, operation: str) -> SessionAgentError:
    """The error of an answer's `error` object."""
    code = str(error.get("code"))
    return CLASSES.get(code, SessionAgentError)(
        str(error.get("message")), code=code, status=status, details=error.get("details"), operation=operation
    )
