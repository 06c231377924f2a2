//! What becomes of a session while its compaction waits for the model.

use serde_json::json;

use super::compaction::{Scripted, compact, numbered};
use context::compaction::act::CompactionReason;

#[test]
fn the_summary_of_a_purged_session_is_not_written_into_a_later_one() {
    let alice = numbered(20);
    alice.ok("configureCompaction", json!({"tailTokenBudget": 0}));
    let file = alice.export("s").unwrap().replace("m7", "[redacted]");
    // The later session has the ids and the places of the one that was purged.
    let meanwhile = || {
        alice.ok("deleteSession", json!({"sessionId": "s", "purge": true}));
        alice.import("s", &file).unwrap();
    };
    let scripted = Scripted {
        meanwhile: Some(&meanwhile),
        ..Scripted::default()
    };
    let outcome = compact(&alice, &scripted, None, false);
    assert!(scripted.prompts.borrow()[0].contains("m7"));
    assert_eq!(outcome.reason, CompactionReason::ChangedMeanwhile);
    let listed = alice.ok("getCompactions", json!({"sessionId": "s"}));
    assert_eq!(listed["compactions"], json!([]));
}
