//! The verification rules for the rows of the full-text index, and of the vectors of
//! events.

use super::check::{Check, OF_AGENT, RowRule, RowsOwner};
use super::finding::FindingCode as Code;

const NUMBERED: &str = "json_object('seq', t.id)";

pub const INDEX_CHECKS: &[Check] = &[
    Check {
        table: "cf_agents_search_docsize",
        key: &["id"],
        owner: RowsOwner::Range(
            "t.id BETWEEN (SELECT s.number << 32 FROM cf_agents_sessions AS s WHERE s.id = ?s)
                      AND (SELECT (s.number << 32) + :max_seq FROM cf_agents_sessions AS s WHERE s.id = ?s)",
        ),
        place: NUMBERED,
        rules: &[RowRule(
            Code::IndexStray,
            "CASE
               WHEN t.id < :beyond
               THEN NOT EXISTS (SELECT 1
                                  FROM cf_agents_sessions AS s
                                 CROSS JOIN cf_agents_events AS e
                                 WHERE s.number = t.id >> 32
                                   AND e.session_id = s.id
                                   AND e.seq = t.id & :max_seq)
               ELSE NOT EXISTS (SELECT 1 FROM cf_agents_search_parts AS p WHERE p.rowid_ = t.id)
             END",
        )],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_search_parts",
        key: &["rowid_"],
        owner: RowsOwner::Range("t.number = (SELECT s.number FROM cf_agents_sessions AS s WHERE s.id = ?s)"),
        place: "json_object('seq', t.seq)",
        rules: &[
            RowRule(
                Code::IndexStray,
                "NOT EXISTS (SELECT 1
                               FROM cf_agents_sessions AS s
                              CROSS JOIN cf_agents_events AS e
                              WHERE s.number = t.number
                                AND e.session_id = s.id
                                AND e.seq = t.seq)",
            ),
            RowRule(
                Code::IndexMissing,
                "NOT EXISTS (SELECT 1 FROM cf_agents_search_docsize AS d WHERE d.id = t.rowid_)",
            ),
        ],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_search_progress",
        key: &["number"],
        owner: RowsOwner::Range("t.number = (SELECT s.number FROM cf_agents_sessions AS s WHERE s.id = ?s)"),
        place: "json_object('seq', t.number)",
        rules: &[RowRule(
            Code::IndexStray,
            "NOT EXISTS (SELECT 1 FROM cf_agents_sessions AS s WHERE s.number = t.number)",
        )],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_event_vectors",
        key: &["place"],
        owner: RowsOwner::Range(
            "t.place BETWEEN (SELECT s.number << 32 FROM cf_agents_sessions AS s WHERE s.id = ?s)
                         AND (SELECT (s.number << 32) + :max_seq FROM cf_agents_sessions AS s WHERE s.id = ?s)",
        ),
        place: "json_object('seq', t.place)",
        rules: &[RowRule(
            Code::VectorStray,
            "NOT EXISTS (SELECT 1
                           FROM cf_agents_sessions AS s
                          CROSS JOIN cf_agents_events AS e
                          WHERE s.number = t.place >> 32
                            AND e.session_id = s.id
                            AND e.seq = t.place & :max_seq)",
        )],
        ..OF_AGENT
    },
];
