//! The rules for each row of the small tables.

use base::checks::{Check, FindingCode as Code, OF_AGENT, RowRule, RowsOwner};
use base::is_invalid_json;

pub const CHECKS: &[Check] = &[
    Check {
        table: "cf_agents_callbacks",
        key: &["number"],
        // A call about the agent's own memory has no session.
        owner: RowsOwner::Unindexed("session_id"),
        location: "json_object('sessionId', t.session_id, 'seq', t.number)",
        length: "octet_length(t.report)",
        rules: &[RowRule(Code::CallbackDamaged, is_invalid_json!("t.report"))],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_config",
        key: &["key"],
        location: "json_object('id', t.key)",
        length: "octet_length(t.value)",
        rules: &[RowRule(Code::SettingDamaged, is_invalid_json!("t.value"))],
        ..OF_AGENT
    },
];
