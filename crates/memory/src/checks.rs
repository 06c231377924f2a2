//! The rules for each row of memory: blocks, entries, documents, versions, counts, proposals.

use base::checks::{Check, FindingCode as Code, OF_AGENT, OF_SESSION, RowRule, RowsOwner};
use base::is_invalid_json;

/// A block's entries are counted by reading them, so a page has few blocks.
const FEW_ROWS: i64 = 20;

const BLOCK: &str = "json_object('sessionId', nullif(t.scope, ''), 'label', t.key)";
const ITEM: &str = "json_object('sessionId', nullif(t.scope, ''), 'label', t.block, 'key', t.key)";
const OF_BLOCK: &str = "json_object('sessionId', nullif(t.scope, ''), 'label', t.block)";

/// SQL: an earlier version of the item `t` has the number of its newest version or a higher
/// one. A key that is both an entry's and a document's has versions of both.
macro_rules! is_not_newest {
    ($other:literal) => {
        concat!(
            "(coalesce(iif(json_valid(t.note), t.note ->> '$.version', 1), 1)
                <= (SELECT max(past.version)
                      FROM cf_agents_item_versions AS past
                     WHERE past.scope = t.scope
                       AND past.block = t.block
                       AND past.key = t.key)
              AND NOT EXISTS (SELECT 1
                                FROM ",
            $other,
            " AS other
                               WHERE other.scope = t.scope
                                 AND other.block = t.block
                                 AND other.key = t.key))"
        )
    };
}

pub const CHECKS: &[Check] = &[
    Check {
        table: "cf_agents_blocks",
        key: &["number"],
        owner: RowsOwner::Column("scope"),
        location: BLOCK,
        rules: &[RowRule(
            Code::BlockDamaged,
            concat!(
                "(",
                is_invalid_json!("t.source"),
                " OR ",
                is_invalid_json!("t.retention"),
                ")"
            ),
        )],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_block_versions",
        key: &["scope", "key", "version"],
        owner: RowsOwner::Column("scope"),
        location: "json_object('sessionId', nullif(t.scope, ''), 'label', t.key, 'version', t.version)",
        rules: &[RowRule(Code::VersionNumberWrong, "t.version < 1")],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_entries",
        key: &["number"],
        owner: RowsOwner::Column("scope"),
        location: ITEM,
        length: "coalesce(octet_length(t.note), 0)",
        rules: &[
            RowRule(Code::NoteDamaged, is_invalid_json!("t.note")),
            RowRule(
                Code::IndexMissing,
                "NOT EXISTS (SELECT 1 FROM cf_agents_entries_search_docsize AS d WHERE d.id = t.number)",
            ),
            RowRule(
                Code::EntryNumberWrong,
                "(t.number >= :own_numbers
                  AND NOT EXISTS (SELECT 1
                                    FROM cf_agents_item_counts AS c
                                   WHERE c.scope = t.scope
                                     AND c.block = t.block
                                     AND c.first_number > 0
                                     AND t.number BETWEEN c.first_number
                                                      AND c.first_number + :numbers - 1))",
            ),
            RowRule(
                Code::CountsWrong,
                "NOT EXISTS (SELECT 1
                               FROM cf_agents_item_counts AS c
                              WHERE c.scope = t.scope
                                AND c.block = t.block)",
            ),
            RowRule(
                Code::ReplacementMissing,
                "EXISTS (SELECT 1
                           FROM json_each(iif(json_valid(t.note), t.note, '{}'), '$.supersedes') AS replaced
                          WHERE NOT EXISTS (SELECT 1
                                              FROM cf_agents_replacements AS r
                                             WHERE r.scope = t.scope
                                               AND r.block = t.block
                                               AND r.key = replaced.value
                                               AND r.replacer = t.key))",
            ),
            RowRule(Code::VersionNotNewest, is_not_newest!("cf_agents_skills")),
        ],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_entries_search_docsize",
        key: &["id"],
        location: "json_object('seq', t.id)",
        rules: &[RowRule(
            Code::IndexStray,
            "NOT EXISTS (SELECT 1 FROM cf_agents_entries AS e WHERE e.number = t.id)",
        )],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_entry_vectors",
        key: &["number"],
        location: "json_object('seq', t.number)",
        rules: &[RowRule(
            Code::VectorStray,
            "NOT EXISTS (SELECT 1 FROM cf_agents_entries AS e WHERE e.number = t.number)",
        )],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_skills",
        key: &["scope", "block", "key"],
        owner: RowsOwner::Column("scope"),
        location: ITEM,
        length: "coalesce(octet_length(t.note), 0)",
        rules: &[
            RowRule(Code::NoteDamaged, is_invalid_json!("t.note")),
            RowRule(Code::VersionNotNewest, is_not_newest!("cf_agents_entries")),
        ],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_item_versions",
        key: &["scope", "block", "key", "slot"],
        owner: RowsOwner::Column("scope"),
        location: "json_object('sessionId', nullif(t.scope, ''), 'label', t.block, 'key', t.key, 'version', t.version)",
        length: "octet_length(t.note)",
        rules: &[
            RowRule(Code::NoteDamaged, is_invalid_json!("t.note")),
            RowRule(Code::VersionNumberWrong, "t.version < 1"),
            // An entry keeps 20 earlier versions, and a document 10.
            RowRule(
                Code::VersionMisplaced,
                "t.slot NOT IN (t.version % 20, t.version % 10)",
            ),
        ],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_replacements",
        key: &["scope", "block", "key", "replacer"],
        owner: RowsOwner::Column("scope"),
        location: ITEM,
        rules: &[RowRule(
            Code::ReplacementStray,
            "NOT EXISTS (SELECT 1
                           FROM cf_agents_entries AS e
                          CROSS JOIN json_each(iif(json_valid(e.note), e.note, '{}'), '$.supersedes') AS replaced
                          WHERE e.scope = t.scope
                            AND e.block = t.block
                            AND e.key = t.replacer
                            AND replaced.value = t.key)",
        )],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_item_counts",
        key: &["scope", "block"],
        owner: RowsOwner::Column("scope"),
        location: OF_BLOCK,
        // Some 400 bytes of the index for each entry and each version that is counted.
        length: "400 * ((SELECT count(*)
                           FROM cf_agents_entries AS e
                          WHERE e.scope = t.scope
                            AND e.block = t.block) + t.deleted)",
        page_rows: FEW_ROWS,
        rules: &[RowRule(Code::CountsWrong, COUNTS_WRONG)],
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_skill_listings",
        key: &["scope", "block"],
        owner: RowsOwner::Column("scope"),
        location: OF_BLOCK,
        ..OF_AGENT
    },
    Check {
        table: "cf_agents_loaded_skills",
        key: &["session_id", "block", "key"],
        location: "json_object('sessionId', t.session_id, 'label', t.block, 'key', t.key)",
        ..OF_SESSION
    },
    Check {
        table: "cf_agents_prompts",
        key: &["scope"],
        owner: RowsOwner::Column("scope"),
        location: "json_object('sessionId', nullif(t.scope, ''))",
        length: "octet_length(t.sections)",
        rules: &[RowRule(Code::PromptDamaged, is_invalid_json!("t.sections"))],
        ..OF_AGENT
    },
    // There is no index of proposals by session.
    Check {
        table: "cf_agents_proposals",
        key: &["number"],
        location: "json_object('id', CAST(t.number AS TEXT))",
        length: "octet_length(t.note) + octet_length(t.changes)",
        rules: &[RowRule(
            Code::ProposalDamaged,
            concat!(
                "(",
                is_invalid_json!("t.note"),
                " OR ",
                is_invalid_json!("t.changes"),
                ")"
            ),
        )],
        ..OF_AGENT
    },
];

/// SQL: the block's row counts other than its rows, as `memory/counts.rs` reads it.
const COUNTS_WRONG: &str = "(t.deleted <> (SELECT count(*)
                    FROM cf_agents_item_versions AS v
                   WHERE v.scope = t.scope
                     AND v.block = t.block
                     AND v.content IS NULL)
    OR (SELECT count(*)
          FROM cf_agents_entries AS e
         WHERE e.scope = t.scope
           AND e.block = t.block)
       <> t.entries + iif(t.first_number = 0, 0,
            1 - t.first_number
            + coalesce((SELECT max(e.number)
                          FROM cf_agents_entries AS e
                         WHERE e.number BETWEEN t.first_number AND t.first_number + :numbers - 1),
                       t.first_number - 1)))";
