//! The rules for each row of the log and of its tree, its media, its turns, and its index.

use crate::log::boundary::{IS_WRONG, TOTAL_IS_WRONG};
use base::checks::{
    Check, DeeperCheck, FindingCode as Code, OF_AGENT, OF_SESSION, RowRule, RowsOwner,
};
use base::{is_invalid_json, is_part_lost};

/// Finding a summary's path needs all branches of its session, so a page has few summaries.
const FEW_ROWS: i64 = 20;

const EVENT: &str = "json_object('sessionId', t.session_id, 'id', t.id, 'seq', t.seq)";
const PART_OF_EVENT: &str = "json_object('sessionId', t.session_id, 'seq', t.seq)";
const MEDIA: &str = "json_object('sessionId', t.session_id, 'id', t.hash)";

const NUMBERED: &str = "json_object('seq', t.id)";

pub const CHECKS: &[Check] = &[
    Check {
        table: "cf_agents_events",
        key: &["session_id", "seq"],
        location: EVENT,
        length: "coalesce(octet_length(t.metadata), 0) + coalesce(octet_length(t.tool), 0)
               + coalesce(octet_length(t.note), 0) + coalesce(octet_length(t.message), 0)
               + coalesce(octet_length(t.ends_turn), 0) + coalesce(octet_length(t.media), 0)",
        rules: &[
            RowRule(
                Code::EventUnreachable,
                "(t.id_indexed = 0
                  AND NOT (octet_length(t.id) = octet_length('e' || t.seq || '-') + 16
                           AND substr(t.id, 1, length('e' || t.seq || '-')) = 'e' || t.seq || '-'))",
            ),
            RowRule(
                Code::EventIdTwice,
                "(t.id_indexed = 0
                  AND EXISTS (SELECT 1
                                FROM cf_agents_events AS other
                               WHERE other.session_id = t.session_id
                                 AND other.id = t.id
                                 AND other.id_indexed = 1))",
            ),
            RowRule(
                Code::EventDamaged,
                concat!(
                    "(",
                    is_invalid_json!("t.metadata"),
                    " OR ",
                    is_invalid_json!("t.tool"),
                    " OR ",
                    is_invalid_json!("t.note"),
                    " OR ",
                    is_invalid_json!("t.ends_turn"),
                    " OR ",
                    is_invalid_json!("t.media"),
                    " OR (t.message <> '' AND NOT json_valid('{' || t.message || '}')))"
                ),
            ),
            RowRule(
                Code::ParentMissing,
                "(t.parent_seq <> 0
                  AND NOT EXISTS (SELECT 1
                                    FROM cf_agents_events AS parent
                                   WHERE parent.session_id = t.session_id
                                     AND parent.seq = t.parent_seq))",
            ),
            RowRule(
                Code::ParentNotBefore,
                "(t.parent_seq < 0 OR t.parent_seq >= t.seq)",
            ),
            RowRule(
                Code::ParentIdWrong,
                "CASE
                   WHEN t.parent_seq = 0 THEN t.parent_id IS NOT NULL
                   ELSE EXISTS (SELECT 1
                                  FROM cf_agents_events AS parent
                                 WHERE parent.session_id = t.session_id
                                   AND parent.seq = t.parent_seq
                                   AND parent.id IS NOT t.parent_id)
                 END",
            ),
            RowRule(
                Code::BranchUnmarked,
                "(t.is_branch = 0
                  AND t.parent_seq <> coalesce((SELECT max(before.seq)
                                                  FROM cf_agents_events AS before
                                                 WHERE before.session_id = t.session_id
                                                   AND before.seq < t.seq), 0))",
            ),
            RowRule(Code::BoundaryWrong, IS_WRONG),
            RowRule(Code::TotalsWrong, TOTAL_IS_WRONG),
            RowRule(Code::SlicesIncomplete, SLICES_INCOMPLETE),
            RowRule(Code::MediaMissing, MEDIA_MISSING),
            RowRule(Code::MediaUseMissing, MEDIA_USE_MISSING),
            RowRule(
                Code::IndexMissing,
                "EXISTS (SELECT 1
                           FROM cf_agents_sessions AS s
                          WHERE s.id = t.session_id
                            AND s.number <= 1048575
                            AND t.seq BETWEEN :from AND :max_seq
                            AND NOT EXISTS (SELECT 1
                                              FROM cf_agents_search_docsize AS d
                                             WHERE d.id = :row_number))",
            ),
        ],
        ..OF_SESSION
    },
    Check {
        table: "cf_agents_slices",
        key: &["session_id", "seq", "field", "part"],
        location: PART_OF_EVENT,
        rules: &[RowRule(
            Code::SliceStray,
            "NOT EXISTS (SELECT 1
                           FROM cf_agents_events AS e
                          WHERE e.session_id = t.session_id
                            AND e.seq = t.seq
                            AND e.sliced_bytes > 0)",
        )],
        ..OF_SESSION
    },
    Check {
        table: "cf_agents_media",
        key: &["session_id", "hash", "part"],
        location: MEDIA,
        length: "octet_length(t.text)",
        page_rows: FEW_ROWS,
        rules: &[
            RowRule(
                Code::MediaUnused,
                "(t.part = 0
                  AND NOT EXISTS (SELECT 1
                                    FROM cf_agents_media_uses AS u
                                   WHERE u.session_id = t.session_id
                                     AND u.hash = t.hash))",
            ),
            RowRule(
                Code::MediaDamaged,
                "(t.part > 0
                  AND NOT EXISTS (SELECT 1
                                    FROM cf_agents_media AS before
                                   WHERE before.session_id = t.session_id
                                     AND before.hash = t.hash
                                     AND before.part = t.part - 1))",
            ),
        ],
        deeper: Some(DeeperCheck::MediaHashes),
        ..OF_SESSION
    },
    Check {
        table: "cf_agents_media_uses",
        key: &["session_id", "hash", "seq"],
        location: "json_object('sessionId', t.session_id, 'id', t.hash, 'seq', t.seq)",
        rules: &[RowRule(
            Code::MediaUseStray,
            "NOT EXISTS (SELECT 1
                           FROM cf_agents_events AS e
                          CROSS JOIN json_each(iif(json_valid(e.media), e.media, '[]')) AS used
                          WHERE e.session_id = t.session_id
                            AND e.seq = t.seq
                            AND used.value ->> 1 = t.hash)",
        )],
        ..OF_SESSION
    },
    Check {
        table: "cf_agents_compactions",
        key: &["session_id", "to_seq", "from_seq", "number"],
        location: "json_object('sessionId', t.session_id, 'id', t.id)",
        length: "1000 * (SELECT count(*)
                           FROM cf_agents_events AS e INDEXED BY cf_agents_events_by_parent
                          WHERE e.session_id = t.session_id
                            AND e.is_branch = 1)",
        page_rows: FEW_ROWS,
        rules: &[
            RowRule(
                Code::OverlayEdgeMissing,
                "(NOT EXISTS (SELECT 1
                                FROM cf_agents_events AS e
                               WHERE e.session_id = t.session_id
                                 AND e.seq = t.from_seq
                                 AND e.id = t.from_id)
                  OR NOT EXISTS (SELECT 1
                                   FROM cf_agents_events AS e
                                  WHERE e.session_id = t.session_id
                                    AND e.seq = t.to_seq
                                    AND e.id = t.to_id))",
            ),
            RowRule(
                Code::OverlayAboveWrong,
                "EXISTS (SELECT 1
                           FROM cf_agents_events AS e
                          WHERE e.session_id = t.session_id
                            AND e.seq = t.from_seq
                            AND e.parent_seq <> t.above_seq)",
            ),
        ],
        deeper: Some(DeeperCheck::SummaryPaths),
        ..OF_SESSION
    },
    Check {
        table: "cf_agents_sessions",
        key: &["number"],
        owner: RowsOwner::Column("id"),
        location: "json_object('sessionId', t.id)",
        length: "coalesce(octet_length(t.metadata), 0) + coalesce(octet_length(t.compaction), 0)
               + coalesce(octet_length(t.usage_days), 0)",
        rules: &[
            RowRule(
                Code::SessionDamaged,
                concat!(
                    "(CASE
                        WHEN t.metadata IS NULL THEN 0
                        WHEN json_valid(t.metadata) THEN json_type(t.metadata) <> 'object'
                        ELSE 1
                      END OR ",
                    is_invalid_json!("t.compaction"),
                    " OR ",
                    is_invalid_json!("t.usage_days"),
                    " OR ",
                    is_invalid_json!("t.retention"),
                    ")"
                ),
            ),
            RowRule(
                Code::LeafMissing,
                "(t.leaf_seq IS NOT NULL
                  AND t.leaf_chosen_at >= coalesce((SELECT max(e.seq)
                                                      FROM cf_agents_events AS e
                                                     WHERE e.session_id = t.id), 0)
                  AND NOT EXISTS (SELECT 1
                                    FROM cf_agents_events AS e
                                   WHERE e.session_id = t.id
                                     AND e.seq = t.leaf_seq))",
            ),
        ],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_changes",
        key: &["session_id", "cursor"],
        location: "json_object('sessionId', t.session_id, 'id', t.id)",
        rules: &[RowRule(
            Code::ChangeAhead,
            "EXISTS (SELECT 1
                       FROM cf_agents_sessions AS s
                      WHERE s.id = t.session_id
                        AND t.cursor >= :cursors * (1 + max(s.seq_floor,
                              coalesce((SELECT max(e.seq)
                                          FROM cf_agents_events AS e
                                         WHERE e.session_id = s.id), 0))))",
        )],
        ..OF_SESSION
    },
    Check {
        table: "cf_agents_waiting",
        key: &["session_id", "number", "part"],
        location: "json_object('sessionId', t.session_id, 'id', t.turn_id)",
        rules: &[RowRule(
            Code::WaitingIncomplete,
            is_part_lost!("cf_agents_waiting"),
        )],
        ..OF_SESSION
    },
    Check {
        table: "cf_agents_last_turns",
        key: &["session_id"],
        location: "json_object('sessionId', t.session_id, 'id', t.turn_id)",
        length: "coalesce(octet_length(t.state), 0)",
        rules: &[RowRule(Code::TurnDamaged, is_invalid_json!("t.state"))],
        ..OF_SESSION
    },
    Check {
        table: "cf_agents_search_docsize",
        key: &["id"],
        owner: RowsOwner::Range(
            "t.id BETWEEN (SELECT s.number << 32 FROM cf_agents_sessions AS s WHERE s.id = ?s)
                      AND (SELECT (s.number << 32) + :max_seq FROM cf_agents_sessions AS s WHERE s.id = ?s)",
        ),
        location: NUMBERED,
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
        location: "json_object('seq', t.seq)",
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
        location: "json_object('seq', t.number)",
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
        location: "json_object('seq', t.place)",
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
    Check {
        table: "cf_agents_usage_calls",
        key: &["session_id", "id"],
        ..OF_SESSION
    },
    Check {
        table: "cf_agents_failed_turns",
        key: &["session_id", "slot"],
        location: "json_object('sessionId', t.session_id, 'seq', t.seq)",
        length: "octet_length(t.record)",
        rules: &[RowRule(Code::TurnDamaged, is_invalid_json!("t.record"))],
        ..OF_SESSION
    },
    Check {
        table: "cf_agents_path_digests",
        key: &["digest", "session_id"],
        location: "json_object('sessionId', t.session_id, 'seq', t.seq)",
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

/// SQL: slices are missing between others, or their bytes are not as many as the event records. A
/// message's `content` may be missing in both its row and its slices, since it follows from the
/// message: then the bytes of the slices are fewer.
const SLICES_INCOMPLETE: &str = "CASE
    WHEN t.sliced_bytes = 0 THEN 0
    WHEN EXISTS (SELECT 1
                   FROM cf_agents_slices AS x
                  WHERE x.session_id = t.session_id
                    AND x.seq = t.seq
                    AND x.part > 0
                    AND NOT EXISTS (SELECT 1
                                      FROM cf_agents_slices AS before
                                     WHERE before.session_id = x.session_id
                                       AND before.seq = x.seq
                                       AND before.field = x.field
                                       AND before.part = x.part - 1)) THEN 1
    WHEN t.message IS NOT NULL
         AND t.content IS NULL
         AND NOT EXISTS (SELECT 1
                           FROM cf_agents_slices AS x
                          WHERE x.session_id = t.session_id
                            AND x.seq = t.seq
                            AND x.field = 'content')
    THEN t.message = ''
         AND NOT EXISTS (SELECT 1
                           FROM cf_agents_slices AS x
                          WHERE x.session_id = t.session_id
                            AND x.seq = t.seq
                            AND x.field = 'message')
    ELSE t.sliced_bytes <> (SELECT coalesce(sum(octet_length(x.text)), 0)
                              FROM cf_agents_slices AS x
                             WHERE x.session_id = t.session_id
                               AND x.seq = t.seq)
  END";

/// SQL: some of the event's media is not stored.
const MEDIA_MISSING: &str = "(json_valid(t.media)
    AND EXISTS (SELECT 1
                  FROM json_each(iif(json_valid(t.media), t.media, '[]')) AS used
                 WHERE NOT EXISTS (SELECT 1
                                     FROM cf_agents_media AS m
                                    WHERE m.session_id = t.session_id
                                      AND m.hash = used.value ->> 1
                                      AND m.part = 0)))";

/// SQL: some of the event's media has no row that records that the event uses it.
const MEDIA_USE_MISSING: &str = "(json_valid(t.media)
    AND EXISTS (SELECT 1
                  FROM json_each(iif(json_valid(t.media), t.media, '[]')) AS used
                 WHERE NOT EXISTS (SELECT 1
                                     FROM cf_agents_media_uses AS u
                                    WHERE u.session_id = t.session_id
                                      AND u.hash = used.value ->> 1
                                      AND u.seq = t.seq)))";
