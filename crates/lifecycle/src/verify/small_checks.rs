//! The verification rules for the rows of the small tables.

use super::check::{Check, OF_AGENT, OF_SESSION, RowRule};
use super::finding::FindingCode as Code;
use super::log_checks::is_no_json;

pub const SMALL_CHECKS: &[Check] = &[
    Check {
        table: "cf_agents_usage_calls",
        key: &["session_id", "id"],
        ..OF_SESSION
    },
    // There is no index of rows by session.
    Check {
        table: "cf_agents_callbacks",
        key: &["number"],
        place: "json_object('sessionId', t.session_id, 'seq', t.number)",
        length: "octet_length(t.report)",
        rules: &[
            RowRule(Code::CallbackDamaged, is_no_json!("t.report")),
            // A call about the agent's own memory has no session.
            RowRule(
                Code::RowsWithoutSession,
                "t.session_id <> ''
                 AND NOT EXISTS (SELECT 1 FROM cf_agents_sessions AS s WHERE s.id = t.session_id)",
            ),
        ],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_failed_turns",
        key: &["session_id", "slot"],
        place: "json_object('sessionId', t.session_id, 'seq', t.seq)",
        length: "octet_length(t.record)",
        rules: &[RowRule(Code::TurnDamaged, is_no_json!("t.record"))],
        ..OF_SESSION
    },
    // There is no index of proposals by session.
    Check {
        table: "cf_agents_proposals",
        key: &["number"],
        place: "json_object('id', CAST(t.number AS TEXT))",
        length: "octet_length(t.note) + octet_length(t.changes)",
        rules: &[RowRule(
            Code::ProposalDamaged,
            concat!(
                "(",
                is_no_json!("t.note"),
                " OR ",
                is_no_json!("t.changes"),
                ")"
            ),
        )],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_config",
        key: &["key"],
        place: "json_object('id', t.key)",
        length: "octet_length(t.value)",
        rules: &[RowRule(Code::SettingDamaged, is_no_json!("t.value"))],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_tools",
        key: &["name"],
        place: "json_object('id', t.name)",
        length: "octet_length(t.parameters) + coalesce(octet_length(t.server), 0)",
        rules: &[RowRule(
            Code::ToolDamaged,
            concat!(
                "(",
                is_no_json!("t.parameters"),
                " OR ",
                is_no_json!("t.headers"),
                " OR ",
                is_no_json!("t.server"),
                ")"
            ),
        )],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_path_digests",
        key: &["digest", "session_id"],
        place: "json_object('sessionId', t.session_id, 'seq', t.seq)",
        // The event may have been deleted. Its `seq` is never reused.
        rules: &[RowRule(
            Code::PathEndWrong,
            "(t.is_answer NOT IN (0, 1)
              OR t.seq NOT BETWEEN 1 AND (SELECT max(s.seq_floor, coalesce((SELECT max(e.seq)
                                                                               FROM cf_agents_events AS e
                                                                              WHERE e.session_id = s.id), 0))
                                            FROM cf_agents_sessions AS s
                                           WHERE s.id = t.session_id)
              OR EXISTS (SELECT 1
                           FROM cf_agents_events AS e
                          WHERE e.session_id = t.session_id
                            AND e.seq = t.seq
                            AND (e.action = :user_message AND t.is_answer = 1
                                 OR e.action IN (:agent_message, :tool_call_request) AND t.is_answer = 0)))",
        )],
        ..OF_SESSION
    },
];
