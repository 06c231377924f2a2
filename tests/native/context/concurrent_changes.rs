//! Changes to a session while its compaction waits for the model.

use serde_json::json;

use super::compaction::{Scripted, compact, numbered};
use crate::Alice;
use context::compaction::act::CompactionReason;
use models::TokenUsage;

#[test]
fn a_purged_sessions_summary_is_not_written_into_a_new_session() {
    let alice = numbered(20);
    alice.ok("configureCompaction", json!({"tailTokenBudget": 0}));
    let file = alice.export("s").unwrap().replace("m7", "[redacted]");
    // The new session has the same ids and positions as the purged one.
    let during_call = || {
        alice.ok("deleteSession", json!({"sessionId": "s", "purge": true}));
        alice.import("s", &file).unwrap();
    };
    let scripted = Scripted {
        during_call: Some(&during_call),
        ..Scripted::default()
    };
    let outcome = compact(&alice, &scripted, None, false);
    assert!(scripted.prompts.borrow()[0].contains("m7"));
    assert_eq!(outcome.reason, CompactionReason::ChangedMeanwhile);
    let listed = alice.ok("getCompactions", json!({"sessionId": "s"}));
    assert_eq!(listed["compactions"], json!([]));
}

#[test]
fn a_change_between_two_parts_ends_the_compaction() {
    // Each message is a part. The fourth is the first that is not protected.
    for (deleted, case) in [(4, "the last event of part 2"), (3, "the event above it")] {
        let alice = Alice::with_session();
        let long = "word ".repeat(6_000);
        let ids = alice.append_texts(&[long.as_str(); 10]);
        let input = json!({"sessionId": "s", "messageIds": [ids[deleted]]});
        let during_call = || drop(alice.ok("deleteMessages", input.clone()));
        let scripted = Scripted {
            during_call: Some(&during_call),
            usage: TokenUsage {
                input_tokens: 7,
                ..TokenUsage::default()
            },
            ..Scripted::default()
        };
        let outcome = compact(&alice, &scripted, None, false);
        assert_eq!(outcome.reason, CompactionReason::ChangedMeanwhile, "{case}");
        assert!(outcome.error.is_none(), "{case}");
        assert_eq!(scripted.prompts.borrow().len(), 1, "{case}");
        let session = alice.ok("getSession", json!({"sessionId": "s"}));
        assert_eq!(session["usage"]["inputTokens"], 7, "{case}");
        // Nothing failed, so automatic compaction does not pause.
        assert!(session.get("lastCompactionError").is_none(), "{case}");
    }
}
