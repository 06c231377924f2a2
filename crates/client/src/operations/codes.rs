//! The codes of errors.
//!
//! `node scripts/crate.mjs` writes this file.

words! {
    /// Why an agent refused. Codes are stable.
    pub enum Code {
        InvalidRequest = "invalid_request",
        Unauthorized = "unauthorized",
        Forbidden = "forbidden",
        BlockReadOnly = "block_read_only",
        UnknownOperation = "unknown_operation",
        SessionNotFound = "session_not_found",
        MessageNotFound = "message_not_found",
        BlockNotFound = "block_not_found",
        SkillNotFound = "skill_not_found",
        MethodNotAllowed = "method_not_allowed",
        LeafMoved = "leaf_moved",
        VersionConflict = "version_conflict",
        AlreadyExists = "already_exists",
        TurnInProgress = "turn_in_progress",
        PayloadTooLarge = "payload_too_large",
        UnsupportedMediaType = "unsupported_media_type",
        StepLimitReached = "step_limit_reached",
        RateLimited = "rate_limited",
        BlockOverBudget = "block_over_budget",
        NotConfigured = "not_configured",
        ModelFailed = "model_failed",
        ModelOverloaded = "model_overloaded",
        StorageFailed = "storage_failed",
        CorruptRow = "corrupt_row",
    }
}
