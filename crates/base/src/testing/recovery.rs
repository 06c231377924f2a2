//! The native test double of point-in-time recovery. A test sets from when on states exist.

use std::cell::{Cell, RefCell};

use crate::outbound::LocalBoxFuture;
use crate::recovery::{Recovery, RecoveryFailure};

#[derive(Default)]
pub struct RecordingRecovery {
    /// The time of the oldest state. `None`: the platform has no recovery.
    pub since_ms: Cell<Option<i64>>,
    /// The bookmarks whose restore was requested.
    pub restored: RefCell<Vec<String>>,
}

impl Recovery for RecordingRecovery {
    fn find_bookmark(
        &self,
        at_ms: Option<i64>,
    ) -> LocalBoxFuture<'_, Result<String, RecoveryFailure>> {
        Box::pin(async move {
            let since_ms = self.since_ms.get().ok_or(RecoveryFailure::Absent)?;
            match at_ms {
                Some(at_ms) if at_ms < since_ms => Err(RecoveryFailure::Refused {
                    cause: "before the first state".to_owned(),
                }),
                Some(at_ms) => Ok(format!("state-{at_ms}")),
                None => Ok("state-now".to_owned()),
            }
        })
    }

    fn restore_next<'a>(
        &'a self,
        bookmark: &'a str,
    ) -> LocalBoxFuture<'a, Result<String, RecoveryFailure>> {
        Box::pin(async move {
            self.since_ms.get().ok_or(RecoveryFailure::Absent)?;
            if !bookmark.starts_with("state-") {
                return Err(RecoveryFailure::Refused {
                    cause: "no such state".to_owned(),
                });
            }
            self.restored.borrow_mut().push(bookmark.to_owned());
            Ok("state-before".to_owned())
        })
    }
}
