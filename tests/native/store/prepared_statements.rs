//! Statements that SQLite prepares again for each run (see `Database::rows`), which takes several
//! times as long as running them.

use crate::Alice;
use crate::shared::examples::{Example, examples, populate};

/// Operations whose statements are all prepared once.
const COMMON_OPERATIONS: &[&str] = &[
    "createSession",
    "getSession",
    "appendEvents",
    "loadEvents",
    "buildWorkingContext",
    "persistWorkingContext",
    "appendMessage",
    "appendMessages",
    "updateMessage",
    "getMessage",
    "getHistory",
    "getLatestLeaf",
    "getPathLength",
    "getChanges",
    "estimateTokens",
    "getBlock",
    "getBlocks",
    "renderPrompt",
    "getTools",
    "getConfig",
];

/// An agent whose own connection has run many statements: a copy's has run none.
fn populated() -> Alice {
    let alice = Alice::default();
    populate(&alice);
    alice
}

#[test]
fn common_requests_reuse_prepared_statements() {
    let alice = populated();
    assert!(!alice.db.take_reprepared().is_empty());
    let mut run = 0;
    let mut reprepared_operations = Vec::new();
    for Example { operation, body } in examples() {
        if !COMMON_OPERATIONS.contains(&operation) {
            continue;
        }
        let alice = populated();
        alice.db.take_reprepared();
        alice.ok(operation, body);
        let reprepared = alice.db.take_reprepared();
        reprepared_operations.extend(reprepared.into_iter().map(|sql| (operation, sql)));
        run += 1;
    }
    assert!(
        reprepared_operations.is_empty(),
        "{reprepared_operations:#?}"
    );
    assert!(run >= COMMON_OPERATIONS.len(), "{run}");
}
