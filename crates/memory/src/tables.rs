//! The tables of this crate: blocks, their content, and what is made of it. For each of them, its
//! description defines what becomes of its rows (`base/tables.rs`).

use base::database::{Database, Delete, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::tables::{
    AgentFileRule, Deletion, ExportRule, ForkRule, InMentions, MENTIONS_OF_SESSION, MentionRows,
    PurgeRule, RowOwner, Table, overwritten, uncounted,
};

/// All of them, in the order in which rows are deleted and copied: a table whose rows are found
/// through another table precedes that table.
pub const TABLES: &[&Table] = &[
    ENTRIES_SEARCH,
    ENTRY_VECTORS,
    BLOCKS,
    BLOCK_VERSIONS,
    ENTRIES,
    SKILLS,
    ITEM_VERSIONS,
    REPLACEMENTS,
    ITEM_COUNTS,
    SKILL_LISTINGS,
    LOADED_SKILLS,
    PROMPTS,
    PROPOSALS,
];

/// SQL: the numbers of the entries of a scope, which follows.
const ENTRIES_OF: &str = "SELECT number FROM cf_agents_entries WHERE scope =";

/// SQL: whether an event in a note is one of the events `?p`.
const NOTE_COMES_FROM: &str = "(json_valid(t.note)
    AND (t.note ->> '$.eventId' IN (SELECT value ->> 0 FROM json_each(?p))
         OR EXISTS (SELECT 1
                      FROM json_each(t.note, '$.events') AS named
                     WHERE named.value IN (SELECT value ->> 0 FROM json_each(?p)))))";

/// SQL: the custom data of an item.
const NOTE_METADATA: &str = "iif(json_valid(t.note), t.note -> '$.metadata', NULL)";
const NOTE_TAGS: &str = "iif(json_valid(t.note), t.note -> '$.tags', NULL)";

/// SQL: whether the block's version `t` is the newest one, which is the block's current
/// text.
macro_rules! is_newest {
    () => {
        "t.version = (SELECT max(newer.version)
                        FROM cf_agents_block_versions AS newer
                       WHERE newer.scope = t.scope
                         AND newer.key = t.key)"
    };
}

/// The full-text index of the entries.
pub const ENTRIES_SEARCH: &Table = &Table {
    name: "cf_agents_entries_search",
    purge: PurgeRule::Merged,
    owner: RowOwner::Through("rowid", ENTRIES_OF),
    deletion: Deletion::WithSession,
    block: None,
    fork: ForkRule::Made("memory/entries.rs"),
    file: ExportRule::Rebuilt("entries"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("entries are searched, not their index"),
};

pub const ENTRY_VECTORS: &Table = &Table {
    name: "cf_agents_entry_vectors",
    purge: overwritten("vectors", &["vector"]),
    owner: RowOwner::Through("number", ENTRIES_OF),
    deletion: Deletion::WithSession,
    block: None,
    fork: ForkRule::Nothing("searches make them"),
    file: ExportRule::Nothing("searches make them"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("vectors"),
};

pub const BLOCKS: &Table = &Table {
    name: "cf_agents_blocks",
    purge: overwritten(
        "blocks",
        &[
            "description",
            "default_content",
            "source",
            "metadata",
            "tags",
        ],
    ),
    owner: RowOwner::Session("scope"),
    deletion: Deletion::WithSession,
    block: None,
    fork: ForkRule::Copy {
        columns: "key, label, kind, description, max_tokens, default_content, source, when_changed, is_removed, defined_at, model_writes, retention, metadata, tags, origin",
    },
    file: ExportRule::ShownBy("getBlocks"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Searched(MentionRows {
        key: &["number"],
        texts: &["t.description", "t.default_content", "t.metadata", "t.tags"],
        location: "json_object('kind', 'definition', 'sessionId', nullif(t.scope, ''), 'label', t.key)",
        ..MENTIONS_OF_SESSION
    }),
};

pub const BLOCK_VERSIONS: &Table = &Table {
    name: "cf_agents_block_versions",
    purge: overwritten("versions", &["content", "reason"]),
    owner: RowOwner::Session("scope"),
    deletion: Deletion::WithSession,
    block: Some("key"),
    fork: ForkRule::Copy {
        columns: "key, version, content, written_by, session_id, turn_id, reason, written_at, event_id, source",
    },
    file: ExportRule::ShownBy("getBlockVersions"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Searched(MentionRows {
        key: &["scope", "key", "version"],
        texts: &["t.content", "t.reason"],
        location: concat!(
            "json_object('kind', iif(",
            is_newest!(),
            ", 'block', 'version'), 'sessionId', nullif(t.scope, ''), 'label', t.key, 'version', t.version)"
        ),
        comes_from: Some("t.event_id IN (SELECT value ->> 0 FROM json_each(?p))"),
        ..MENTIONS_OF_SESSION
    }),
};

pub const ENTRIES: &Table = &Table {
    name: "cf_agents_entries",
    purge: overwritten("entries", &["title", "content", "note"]),
    owner: RowOwner::Session("scope"),
    deletion: Deletion::WithSession,
    block: Some("block"),
    fork: ForkRule::Made("memory/entries.rs"),
    file: ExportRule::ShownBy("listEntries"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Searched(MentionRows {
        key: &["number"],
        texts: &["t.key", "t.title", "t.content", NOTE_METADATA, NOTE_TAGS],
        location: "json_object('kind', 'entry', 'sessionId', nullif(t.scope, ''), 'label', t.block, 'key', t.key)",
        comes_from: Some(NOTE_COMES_FROM),
        ..MENTIONS_OF_SESSION
    }),
};

pub const SKILLS: &Table = &Table {
    name: "cf_agents_skills",
    purge: overwritten("documents", &["description", "content", "note"]),
    owner: RowOwner::Session("scope"),
    deletion: Deletion::WithSession,
    block: Some("block"),
    fork: ForkRule::Copy {
        columns: "block, key, description, content, updated_at, note",
    },
    file: ExportRule::ShownBy("loadSkill"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Searched(MentionRows {
        key: &["scope", "block", "key"],
        texts: &[
            "t.key",
            "t.description",
            "t.content",
            NOTE_METADATA,
            NOTE_TAGS,
        ],
        location: "json_object('kind', 'document', 'sessionId', nullif(t.scope, ''), 'label', t.block, 'key', t.key)",
        comes_from: Some(NOTE_COMES_FROM),
        ..MENTIONS_OF_SESSION
    }),
};

pub const ITEM_VERSIONS: &Table = &Table {
    name: "cf_agents_item_versions",
    purge: overwritten("versions", &["title", "content", "note"]),
    owner: RowOwner::Session("scope"),
    deletion: Deletion::WithSession,
    block: Some("block"),
    fork: ForkRule::Copy {
        columns: "block, key, slot, version, title, content, note, written_at",
    },
    file: ExportRule::ShownBy("getBlockVersions"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Searched(MentionRows {
        key: &["scope", "block", "key", "slot"],
        texts: &["t.key", "t.title", "t.content", NOTE_METADATA, NOTE_TAGS],
        location: "json_object('kind', 'version', 'sessionId', nullif(t.scope, ''), 'label', t.block, 'key', t.key, 'version', t.version)",
        comes_from: Some(NOTE_COMES_FROM),
        ..MENTIONS_OF_SESSION
    }),
};

pub const REPLACEMENTS: &Table = &Table {
    name: "cf_agents_replacements",
    purge: PurgeRule::Nothing("keys of entries"),
    owner: RowOwner::Session("scope"),
    deletion: Deletion::WithSession,
    block: Some("block"),
    fork: ForkRule::Copy {
        columns: "block, key, replacer",
    },
    file: ExportRule::ShownBy("listEntries"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("the entries with these keys are searched"),
};

pub const ITEM_COUNTS: &Table = &Table {
    name: "cf_agents_item_counts",
    purge: PurgeRule::Nothing("numbers"),
    owner: RowOwner::Session("scope"),
    deletion: Deletion::WithSession,
    block: Some("block"),
    fork: ForkRule::Made("memory/counts.rs"),
    file: ExportRule::Rebuilt("entries and deleted items"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("numbers"),
};

pub const SKILL_LISTINGS: &Table = &Table {
    name: "cf_agents_skill_listings",
    purge: uncounted(&["skills"]),
    owner: RowOwner::Session("scope"),
    deletion: Deletion::WithSession,
    block: Some("block"),
    fork: ForkRule::Nothing("a listing is a cache"),
    file: ExportRule::Nothing("a listing is a cache"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("a listing is a cache"),
};

pub const LOADED_SKILLS: &Table = &Table {
    name: "cf_agents_loaded_skills",
    purge: overwritten("loadedDocuments", &["content"]),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithContext,
    block: None,
    fork: ForkRule::Copy {
        columns: "block, key, label, content, loaded_at",
    },
    file: ExportRule::ShownBy("loadSkill"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Searched(MentionRows {
        key: &["session_id", "block", "key"],
        texts: &["t.key", "t.content"],
        location: "json_object('kind', 'loadedDocument', 'sessionId', t.session_id, 'label', t.block, 'key', t.key)",
        ..MENTIONS_OF_SESSION
    }),
};

pub const PROPOSALS: &Table = &Table {
    name: "cf_agents_proposals",
    purge: overwritten("proposals", &["label", "note", "changes"]),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithSession,
    block: None,
    fork: ForkRule::Nothing("what was learned from the original stays with it"),
    file: ExportRule::Nothing("proposals are about the agent's memory"),
    agent_file: AgentFileRule::Lines("proposal"),
    mentions: InMentions::Searched(MentionRows {
        key: &["number"],
        texts: &["t.changes"],
        location: "json_object('kind', 'proposal', 'sessionId', nullif(t.session_id, ''), 'id', cast(t.number AS TEXT))",
        comes_from: Some(
            "EXISTS (SELECT 1
                       FROM json_each(t.changes) AS change,
                            json_each(change.value, '$.events') AS event
                      WHERE event.value ->> '$.id' IN (SELECT value ->> 0 FROM json_each(?p)))",
        ),
        // There is no index of rows by session.
        has_index: false,
        follows_session: false,
    }),
};

pub const PROMPTS: &Table = &Table {
    name: "cf_agents_prompts",
    purge: overwritten("prompts", &["prompt", "sections"]),
    owner: RowOwner::Session("scope"),
    deletion: Deletion::WithSession,
    block: None,
    fork: ForkRule::Copy {
        columns: "prompt, hash, sections, frozen_at",
    },
    file: ExportRule::ShownBy("freezePrompt"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Searched(MentionRows {
        key: &["scope"],
        texts: &["t.prompt"],
        location: "json_object('kind', 'prompt', 'sessionId', nullif(t.scope, ''))",
        ..MENTIONS_OF_SESSION
    }),
};

/// Deletes a block's content in this object. `false`: the block had none. Must run in a
/// transaction.
pub fn delete_content(db: &dyn Database, scope: &str, block: &str) -> Result<bool> {
    let params: [SqlValue; 2] = [scope.into(), block.into()];
    let mut has_deleted = false;
    for table in TABLES {
        match (table.owner, table.block) {
            (RowOwner::Through(column, numbers), _) => {
                let condition = format!("{column} IN ({numbers} ?1 AND block = ?2)");
                Delete::from(table, &condition, &params).run(db)?;
            }
            (RowOwner::Session(owner), Some(column)) => {
                let condition = format!("{owner} = ?1 AND {column} = ?2");
                has_deleted |= Delete::from(table, &condition, &params).run(db)? > 0;
            }
            (RowOwner::Session(_), None)
            | (RowOwner::Agent | RowOwner::Event | RowOwner::View, _) => {}
        }
    }
    Ok(has_deleted)
}

/// Copies the rows that a fork takes over unchanged. Must run in the fork's transaction.
pub fn copy_session(db: &dyn Database, from: &Id, to: &Id) -> Result<()> {
    let params: [SqlValue; 2] = [from.as_str().into(), to.as_str().into()];
    for table in TABLES {
        let (RowOwner::Session(owner), ForkRule::Copy { columns }) = (table.owner, table.fork)
        else {
            continue;
        };
        // Numbered rows keep their order.
        let order = if *table == BLOCKS {
            " ORDER BY number"
        } else {
            ""
        };
        let sql = format!(
            "INSERT INTO {name} ({owner}, {columns})
             SELECT ?2, {columns} FROM {name} WHERE {owner} = ?1{order}",
            name = table.name
        );
        db.run(&sql, &params)?;
    }
    Ok(())
}
