"""The client of Session Agent: durable memory for AI agents on Cloudflare."""

from ._async.agent import AsyncSessionAgent
from ._async.session import AsyncModelInput, AsyncSessionClient
from ._chat import ChatChunk
from ._options import NO_RETRY, NOT_GIVEN, CallOptions, NotGiven, Retry
from ._sync.agent import SessionAgent
from ._sync.session import ModelInput, SessionClient
from ._transfer import ExportLine, ImportFile, Progress
from ._version import VERSION as __version__
from .errors import (
    AlreadyExistsError,
    BlockNotFoundError,
    BlockOverBudgetError,
    BlockReadOnlyError,
    CorruptRowError,
    ForbiddenError,
    InvalidRequestError,
    LeafMovedError,
    MessageNotFoundError,
    MethodNotAllowedError,
    ModelFailedError,
    ModelOverloadedError,
    NetworkError,
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
)

__all__ = [
    "AlreadyExistsError",
    "AsyncModelInput",
    "AsyncSessionAgent",
    "AsyncSessionClient",
    "BlockNotFoundError",
    "BlockOverBudgetError",
    "BlockReadOnlyError",
    "CallOptions",
    "ChatChunk",
    "CorruptRowError",
    "ExportLine",
    "ForbiddenError",
    "ImportFile",
    "InvalidRequestError",
    "LeafMovedError",
    "MessageNotFoundError",
    "MethodNotAllowedError",
    "ModelFailedError",
    "ModelInput",
    "ModelOverloadedError",
    "NOT_GIVEN",
    "NO_RETRY",
    "NetworkError",
    "NotConfiguredError",
    "NotGiven",
    "PayloadTooLargeError",
    "Progress",
    "RateLimitedError",
    "Retry",
    "SessionAgent",
    "SessionAgentError",
    "SessionClient",
    "SessionNotFoundError",
    "SkillNotFoundError",
    "StepLimitReachedError",
    "StorageFailedError",
    "TurnInProgressError",
    "UnauthorizedError",
    "UnknownOperationError",
    "UnsupportedMediaTypeError",
    "VersionConflictError",
    "__version__",
    "async_session_agent",
    "session_agent",
]

session_agent = SessionAgent
async_session_agent = AsyncSessionAgent
