//! The list of tables. For each table, it names the owner of the rows. It also defines what
//! happens to the rows when a session is cleared, deleted, forked, exported or imported,
//! and when a block is purged. The code of these operations uses this list.
//!
//! Invariant: no table is forgotten. A test compares the list with the tables that the
//! migrations create. Other tests run each of these operations on sessions that have rows
//! in every table (`tests/native/store/tables.rs`).
//!
//! When an agent is emptied, `schema::drop_all` drops every table by its prefix.

use crate::erased::{InPurge, overwritten, parts, uncounted};
use crate::table_fates::{
    Deletion, InAgentFile, InFile, InFork, RowOwner, SessionTable, of_the_agent, of_the_index, view,
};
use base::database::{Database, Delete, SqlValue, TableName};
use base::error::Result;
use base::ids::Id;

/// All tables, in the order in which rows are deleted and copied: a table whose rows are
/// found through another table precedes that table.
pub const TABLES: &[SessionTable] = &[
    of_the_agent(
        "cf_agents_migrations",
        "the names of migrations",
        InAgentFile::Nothing("the build that opens the object writes them"),
    ),
    of_the_agent(
        "cf_agents_config",
        "settings",
        InAgentFile::Lines("settings"),
    ),
    of_the_agent(
        "cf_agents_tools",
        "definitions of tools",
        InAgentFile::Lines("tool"),
    ),
    of_the_agent(
        "cf_agents_tool_authorizations",
        "encrypted tokens",
        InAgentFile::Nothing("tokens are for this deployment, and are never shown"),
    ),
    of_the_agent(
        "cf_agents_usage_days",
        "numbers",
        InAgentFile::Lines("usage"),
    ),
    of_the_agent(
        "cf_agents_metered",
        "numbers",
        InAgentFile::Nothing("limits count what was spent where it was spent"),
    ),
    of_the_index("cf_agents_search", InPurge::Merged),
    view("cf_agents_search_words"),
    of_the_index("cf_agents_search_parts", InPurge::Nothing("numbers")),
    of_the_index("cf_agents_search_progress", InPurge::Nothing("numbers")),
    SessionTable {
        fork: InFork::Nothing("searches make them"),
        ..of_the_index(
            "cf_agents_event_vectors",
            overwritten("vectors", &["vector"]),
        )
    },
    SessionTable {
        name: "cf_agents_events",
        purge: overwritten(
            "events",
            &[
                "content",
                "tool",
                "metadata",
                "message",
                "note",
                "media",
                "ends_turn",
            ],
        ),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithLog,
        block: None,
        fork: InFork::Made("lifecycle/fork.rs"),
        file: InFile::Always,
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_slices",
        purge: uncounted(&["text"]),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithLog,
        block: None,
        fork: InFork::Made("lifecycle/fork.rs"),
        file: InFile::MadeAnew("long events"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_compactions",
        purge: overwritten("summaries", &["summary"]),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithLog,
        block: None,
        fork: InFork::Made("conversation/messages/tree/overlay_writes.rs"),
        file: InFile::ShownBy("getCompactions"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_media",
        purge: parts("media", 0, &["text"]),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithLog,
        block: None,
        fork: InFork::Made("conversation/log/media.rs"),
        file: InFile::Always,
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_media_uses",
        purge: InPurge::Nothing("hashes of media"),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithLog,
        block: None,
        fork: InFork::Made("conversation/log/media.rs"),
        file: InFile::Always,
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_early_answers",
        purge: parts("waitingMessages", 1, &["text"]),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithLog,
        block: None,
        fork: InFork::Nothing("an answer belongs to its turn"),
        file: InFile::Nothing("an answer belongs to its turn"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_callbacks",
        purge: overwritten("callbacks", &["report", "reason"]),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithContext,
        block: None,
        fork: InFork::Nothing("callbacks are sent once, by the original"),
        file: InFile::Nothing("callbacks are sent once, by the original"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_waiting",
        purge: parts("waitingMessages", 1, &["text", "message_ids"]),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithContext,
        block: None,
        fork: InFork::Nothing("a queued message is answered by the original"),
        file: InFile::Nothing("a queued message is answered by the original"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_changes",
        purge: InPurge::Nothing("ids of events and summaries"),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithSession,
        block: None,
        fork: InFork::Nothing("a fork's feed begins with the fork"),
        file: InFile::ShownBy("getChanges"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_usage_calls",
        purge: InPurge::Nothing("ids of calls"),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithSession,
        block: None,
        fork: InFork::Nothing("a fork's usage starts at zero"),
        file: InFile::Nothing("the rows are for retries, not for copies"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_last_turns",
        purge: overwritten("turns", &["state"]),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithSession,
        block: None,
        fork: InFork::Nothing(
            "a turn continues in the original, and a fork's usage starts at zero",
        ),
        file: InFile::Nothing("a turn continues in the original; the session's line has the usage"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_failed_turns",
        purge: overwritten("turns", &["record"]),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithLog,
        block: None,
        fork: InFork::Nothing("the record of a turn belongs to the original"),
        file: InFile::Nothing("records are only for turns that ran here"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_path_digests",
        purge: InPurge::Nothing("digests of paths"),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithLog,
        block: None,
        fork: InFork::Nothing("a history continues in its original session"),
        file: InFile::Nothing("a history continues in its original session"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_imports",
        purge: InPurge::Nothing("tokens of imports"),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::Never("only a session that doesn't exist yet has such a row"),
        block: None,
        fork: InFork::Nothing("only a session that doesn't exist yet has such a row"),
        file: InFile::Nothing("only a session that doesn't exist yet has such a row"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_entries_search",
        purge: InPurge::Merged,
        owner: RowOwner::Entry("rowid"),
        deletion: Deletion::WithSession,
        block: None,
        fork: InFork::Made("memory/entries.rs"),
        file: InFile::MadeAnew("entries"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_entry_vectors",
        purge: overwritten("vectors", &["vector"]),
        owner: RowOwner::Entry("number"),
        deletion: Deletion::WithSession,
        block: None,
        fork: InFork::Nothing("searches make them"),
        file: InFile::Nothing("searches make them"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
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
        fork: InFork::Copy {
            columns: "key, label, kind, description, max_tokens, default_content, source, when_changed, is_removed, defined_at, model_writes, retention, metadata, tags, origin",
        },
        file: InFile::ShownBy("getBlocks"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_block_versions",
        purge: overwritten("versions", &["content", "reason"]),
        owner: RowOwner::Session("scope"),
        deletion: Deletion::WithSession,
        block: Some("key"),
        fork: InFork::Copy {
            columns: "key, version, content, written_by, session_id, turn_id, reason, written_at, event_id, source",
        },
        file: InFile::ShownBy("getBlockVersions"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_entries",
        purge: overwritten("entries", &["title", "content", "note"]),
        owner: RowOwner::Session("scope"),
        deletion: Deletion::WithSession,
        block: Some("block"),
        fork: InFork::Made("memory/entries.rs"),
        file: InFile::ShownBy("listEntries"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_skills",
        purge: overwritten("documents", &["description", "content", "note"]),
        owner: RowOwner::Session("scope"),
        deletion: Deletion::WithSession,
        block: Some("block"),
        fork: InFork::Copy {
            columns: "block, key, description, content, updated_at, note",
        },
        file: InFile::ShownBy("loadSkill"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_item_versions",
        purge: overwritten("versions", &["title", "content", "note"]),
        owner: RowOwner::Session("scope"),
        deletion: Deletion::WithSession,
        block: Some("block"),
        fork: InFork::Copy {
            columns: "block, key, slot, version, title, content, note, written_at",
        },
        file: InFile::ShownBy("getBlockVersions"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_replacements",
        purge: InPurge::Nothing("keys of entries"),
        owner: RowOwner::Session("scope"),
        deletion: Deletion::WithSession,
        block: Some("block"),
        fork: InFork::Copy {
            columns: "block, key, replacer",
        },
        file: InFile::ShownBy("listEntries"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_item_counts",
        purge: InPurge::Nothing("numbers"),
        owner: RowOwner::Session("scope"),
        deletion: Deletion::WithSession,
        block: Some("block"),
        fork: InFork::Made("memory/counts.rs"),
        file: InFile::MadeAnew("entries and deleted items"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_skill_listings",
        purge: uncounted(&["skills"]),
        owner: RowOwner::Session("scope"),
        deletion: Deletion::WithSession,
        block: Some("block"),
        fork: InFork::Nothing("a listing is a cache"),
        file: InFile::Nothing("a listing is a cache"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_loaded_skills",
        purge: overwritten("loadedDocuments", &["content"]),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithContext,
        block: None,
        fork: InFork::Copy {
            columns: "block, key, label, content, loaded_at",
        },
        file: InFile::ShownBy("loadSkill"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_proposals",
        purge: overwritten("proposals", &["label", "note", "changes"]),
        owner: RowOwner::Session("session_id"),
        deletion: Deletion::WithSession,
        block: None,
        fork: InFork::Nothing("what was learned from the original stays with it"),
        file: InFile::Nothing("proposals are about the agent's memory"),
        agent_file: InAgentFile::Lines("proposal"),
    },
    SessionTable {
        name: "cf_agents_prompts",
        purge: overwritten("prompts", &["prompt", "sections"]),
        owner: RowOwner::Session("scope"),
        deletion: Deletion::WithSession,
        block: None,
        fork: InFork::Copy {
            columns: "prompt, hash, sections, frozen_at",
        },
        file: InFile::ShownBy("freezePrompt"),
        agent_file: InAgentFile::AsInSessions,
    },
    SessionTable {
        name: "cf_agents_sessions",
        purge: overwritten(
            "sessions",
            &["name", "metadata", "compaction", "tags", "learn_failure"],
        ),
        owner: RowOwner::Session("id"),
        deletion: Deletion::WithSession,
        block: None,
        fork: InFork::Made("lifecycle/fork.rs"),
        file: InFile::Always,
        agent_file: InAgentFile::AsInSessions,
    },
];

impl SessionTable {
    /// The table's name for a typed deletion.
    pub const fn table(&self) -> TableName {
        TableName::named(self.name)
    }

    /// The condition for a row of the session `?1`. `None`: a statement on this table
    /// alone can't find the rows.
    fn condition(&self) -> Option<String> {
        self.condition_in("?1")
    }

    /// As [`Self::condition`], for the session or the scope that this SQL says.
    pub(crate) fn condition_in(&self, scope: &str) -> Option<String> {
        match self.owner {
            RowOwner::Session(column) => Some(format!("{column} = {scope}")),
            RowOwner::Entry(column) => Some(format!(
                "{column} IN (SELECT number FROM cf_agents_entries WHERE scope = {scope})"
            )),
            RowOwner::Agent | RowOwner::Event | RowOwner::View => None,
        }
    }

    /// Whether an import writes rows of this table before the session's own row.
    fn is_staged(&self) -> bool {
        // The session's own row ends the pending import.
        self.name != "cf_agents_sessions" && !matches!(self.file, InFile::Nothing(_))
    }
}

/// Deletes the session's log. Must run in a transaction, after `conversation/index/mod.rs`
/// has removed the events from the index.
pub fn delete_log(db: &dyn Database, session_id: &Id) -> Result<()> {
    delete(db, session_id.as_str(), |table| {
        table.deletion == Deletion::WithLog
    })
}

/// Deletes the session's context. `false`: the context was empty. Must run in a
/// transaction.
pub fn delete_context(db: &dyn Database, session_id: &Id) -> Result<bool> {
    let mut has_deleted = false;
    for table in TABLES {
        if let (Deletion::WithContext, Some(condition)) = (table.deletion, table.condition()) {
            let params = [session_id.as_str().into()];
            has_deleted |= Delete::from(table.table(), &condition, &params).run(db)? > 0;
        }
    }
    Ok(has_deleted)
}

/// Deletes the session's row and all rows of the session. Must run in a transaction, after
/// `conversation/index/mod.rs` has removed the events from the index.
pub fn delete_session(db: &dyn Database, session_id: &Id) -> Result<()> {
    delete(db, session_id.as_str(), |table| match table.deletion {
        Deletion::WithLog | Deletion::WithContext | Deletion::WithSession => true,
        Deletion::Never(_) => false,
    })
}

/// Deletes the rows of an import that never wrote the session's own row. Must run in a
/// transaction.
pub fn delete_staged(db: &dyn Database, session_id: &str) -> Result<()> {
    delete(db, session_id, SessionTable::is_staged)
}

fn delete(
    db: &dyn Database,
    session_id: &str,
    is_deleted: impl Fn(&SessionTable) -> bool,
) -> Result<()> {
    for table in TABLES.iter().filter(|table| is_deleted(table)) {
        if let Some(condition) = table.condition() {
            Delete::from(table.table(), &condition, &[session_id.into()]).run(db)?;
        }
    }
    Ok(())
}

/// Deletes a block's content in this object. `false`: the block had none. Must run in a
/// transaction.
pub fn delete_content(db: &dyn Database, scope: &str, block: &str) -> Result<bool> {
    let params: [SqlValue; 2] = [scope.into(), block.into()];
    let mut has_deleted = false;
    for table in TABLES {
        match (table.owner, table.block) {
            (RowOwner::Entry(column), _) => {
                let condition = format!(
                    "{column} IN (SELECT number
                                    FROM cf_agents_entries
                                   WHERE scope = ?1
                                     AND block = ?2)"
                );
                Delete::from(table.table(), &condition, &params).run(db)?;
            }
            (RowOwner::Session(owner), Some(column)) => {
                let condition = format!("{owner} = ?1 AND {column} = ?2");
                has_deleted |= Delete::from(table.table(), &condition, &params).run(db)? > 0;
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
    for SessionTable {
        name, owner, fork, ..
    } in TABLES
    {
        let (RowOwner::Session(owner), InFork::Copy { columns }) = (owner, fork) else {
            continue;
        };
        // Numbered rows keep their order.
        let order = match *name {
            "cf_agents_blocks" => " ORDER BY number",
            _ => "",
        };
        let sql = format!(
            "INSERT INTO {name} ({owner}, {columns})
             SELECT ?2, {columns} FROM {name} WHERE {owner} = ?1{order}"
        );
        db.run(&sql, &params)?;
    }
    Ok(())
}

/// The operations that a caller must be allowed to use before exporting this session, in
/// addition to those that every export requires. Each shows something that the file would
/// contain.
pub fn find_readers(db: &dyn Database, session_id: &Id) -> Result<Vec<&'static str>> {
    let mut readers = Vec::new();
    for table in TABLES {
        if let (InFile::ShownBy(reader), Some(condition)) = (table.file, table.condition()) {
            let sql = format!("SELECT 1 FROM {} WHERE {condition} LIMIT 1", table.name);
            if !db.rows(&sql, &[session_id.as_str().into()])?.is_empty() {
                readers.push(reader);
            }
        }
    }
    Ok(readers)
}
