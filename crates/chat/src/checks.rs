//! The rules for each row of this crate's tables.

use base::checks::{Check, FindingCode as Code, OF_AGENT, OF_SESSION, RowRule};
use base::{is_invalid_json, is_part_lost};

pub const CHECKS: &[Check] = &[
    Check {
        table: "cf_agents_early_answers",
        key: &["session_id", "number", "part"],
        rules: &[RowRule(
            Code::WaitingIncomplete,
            is_part_lost!("cf_agents_early_answers"),
        )],
        ..OF_SESSION
    },
    Check {
        table: "cf_agents_tools",
        key: &["name"],
        location: "json_object('id', t.name)",
        length: "octet_length(t.parameters) + coalesce(octet_length(t.server), 0)",
        rules: &[RowRule(
            Code::ToolDamaged,
            concat!(
                "(",
                is_invalid_json!("t.parameters"),
                " OR ",
                is_invalid_json!("t.headers"),
                " OR ",
                is_invalid_json!("t.server"),
                ")"
            ),
        )],
        ..OF_AGENT
    },
];
