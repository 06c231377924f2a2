//! The table of example requests, with examples of every operation. Tests of all operations run
//! these examples, and fail for an operation without one.
//!
//! The requests go to the agent of [`populated`]. The first example of an operation names session
//! `s` if the operation needs a session; openapi.json shows it.

use std::collections::BTreeSet;

pub use crate::shared::examples::{BACKUP, Example, READS, examples, populate, populated};
use api::table::OPERATIONS;

#[test]
fn every_operation_has_an_example_that_succeeds() {
    let examples = examples();
    let named: BTreeSet<&str> = examples.iter().map(|example| example.operation).collect();
    let all: BTreeSet<&str> = OPERATIONS.iter().map(|entry| entry.name).collect();
    let without: Vec<_> = all.difference(&named).collect();
    assert!(
        without.is_empty(),
        "without an example in examples.rs: {without:?}"
    );
    let unknown: Vec<_> = named.difference(&all).collect();
    assert!(unknown.is_empty(), "unknown operations: {unknown:?}");
    for operation in READS {
        assert!(all.contains(operation), "unknown operation: {operation}");
    }
    for example in examples {
        let outcome = populated().call(example.operation, example.body);
        if let Err(error) = outcome {
            panic!("{}: {error:?}", example.operation);
        }
    }
}
