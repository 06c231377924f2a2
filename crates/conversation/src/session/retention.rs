//! The retention rules in the rows of sessions.

use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json;
use store::retention::Retention;
use store::retention_progress::ask;

/// Whether blocks of this session have rules of their own (`memory/definitions.rs`).
pub type HasBlockRules = fn(&dyn Database, &Id) -> Result<bool>;

/// The retention of a session as a request sets it. An outer `None` leaves it unchanged; an inner
/// `None` removes it.
#[derive(Clone, Debug, Default)]
pub struct SessionRetentionChange {
    pub retention: Option<Option<Retention>>,
    pub pinned: Option<bool>,
}

impl SessionRetentionChange {
    pub fn is_nothing(&self) -> bool {
        self.retention.is_none() && self.pinned.is_none()
    }

    /// Whether the change sets rules, so that a retention run must start.
    pub fn asks(&self) -> bool {
        matches!(self.retention, Some(Some(_)))
    }

    /// Writes the change into the session's row. Part of a transaction.
    pub fn write(&self, db: &dyn Database, id: &Id, has_block_rules: HasBlockRules) -> Result<()> {
        if self.is_nothing() {
            return Ok(());
        }
        // A session whose blocks have rules of their own stays in the index.
        let given = match &self.retention {
            Some(Some(retention)) => Some(json::encode(retention)?),
            Some(None) if has_block_rules(db, id)? => Some(MARK.to_owned()),
            Some(None) | None => None,
        };
        db.run(
            "UPDATE cf_agents_sessions
                SET retention = iif(?2, ?3, retention),
                    pinned = coalesce(?4, pinned)
              WHERE id = ?1",
            &[
                id.as_str().into(),
                self.retention.is_some().into(),
                given.into(),
                self.pinned.map(i64::from).into(),
            ],
        )?;
        match &self.retention {
            Some(Some(_)) => ask(db),
            Some(None) | None => Ok(()),
        }
    }
}

/// The column `retention` of a session without rules of its own, one of whose blocks has some.
const MARK: &str = "{}";

/// Records that a block of this scope has rules of its own. Part of the transaction that defines
/// the block.
pub fn record_block_rules(db: &dyn Database, scope: &str) -> Result<()> {
    if !scope.is_empty() {
        db.run(
            "UPDATE cf_agents_sessions
                SET retention = ?2
              WHERE id = ?1
                AND retention IS NULL",
            &[scope.into(), MARK.into()],
        )?;
    }
    ask(db)
}
