//! The rows of a scope's memory, read whole and in pages for an export
//! (`lifecycle/transfer/memory/export.rs`).

use base::database::{Database, Row, SqlValue};
use base::error::Result;

/// A table whose rows a file contains, each in a line.
pub struct WholeRows {
    table: &'static str,
    /// The column with the session's id.
    owner: &'static str,
    /// The columns of [`LastRow`].
    keys: &'static str,
}

pub const BLOCK_VERSIONS: WholeRows = WholeRows {
    table: "cf_agents_block_versions",
    owner: "scope",
    keys: "key, version",
};

pub const ENTRIES: WholeRows = WholeRows {
    table: "cf_agents_entries",
    owner: "scope",
    keys: "block, key",
};

pub const SKILLS: WholeRows = WholeRows {
    table: "cf_agents_skills",
    owner: "scope",
    keys: "block, key",
};

pub const ITEM_VERSIONS: WholeRows = WholeRows {
    table: "cf_agents_item_versions",
    owner: "scope",
    keys: "block, key, slot",
};

pub const LOADED_SKILLS: WholeRows = WholeRows {
    table: "cf_agents_loaded_skills",
    owner: "session_id",
    keys: "block, key",
};

/// The tables that a scope with memory has rows in, and the columns with the session's id.
const TABLES: [(&str, &str); 7] = [
    ("cf_agents_blocks", "scope"),
    ("cf_agents_prompts", "scope"),
    (BLOCK_VERSIONS.table, BLOCK_VERSIONS.owner),
    (ENTRIES.table, ENTRIES.owner),
    (SKILLS.table, SKILLS.owner),
    (ITEM_VERSIONS.table, ITEM_VERSIONS.owner),
    (LOADED_SKILLS.table, LOADED_SKILLS.owner),
];

/// SQL: whether a scope has memory. `scope`: SQL that selects it.
pub fn has_memory_sql(scope: &str) -> String {
    let exists = TABLES
        .map(|(table, owner)| format!("EXISTS (SELECT 1 FROM {table} WHERE {owner} = {scope})"));
    exists.join("\n OR ")
}

impl WholeRows {
    /// The rows after this one, at most `limit`. `columns` start with those of [`LastRow`].
    pub fn load(
        &self,
        db: &dyn Database,
        scope: &str,
        columns: &str,
        after: &LastRow,
        limit: i64,
    ) -> Result<Vec<Row>> {
        let Self { table, owner, keys } = self;
        let sql = format!(
            "SELECT {columns}
               FROM {table}
              WHERE {owner} = ?1
                AND ({keys}) > ({})
              ORDER BY {keys}
              LIMIT ?3",
            if self.has_slots() {
                "?2, ?4, ?5"
            } else {
                "?2, ?4"
            }
        );
        let mut params: Vec<SqlValue> = vec![
            scope.into(),
            after.block.as_str().into(),
            limit.into(),
            after.key.clone(),
        ];
        if self.has_slots() {
            params.push(after.slot.into());
        }
        db.rows(&sql, &params)
    }

    /// The position of a row that [`Self::load`] returned. In a table without slots, the third
    /// column is another one.
    pub fn position_of(&self, row: &Row) -> Result<LastRow> {
        let (block, key, slot): (String, SqlValue, Option<i64>) = row.read()?;
        let slot = slot.filter(|_| self.has_slots()).unwrap_or(-1);
        Ok(LastRow { block, key, slot })
    }

    /// Whether a row's key has a slot.
    fn has_slots(&self) -> bool {
        self.keys.ends_with("slot")
    }
}

/// The last row that was read: its block's key, its own key or version, and its slot.
pub struct LastRow {
    block: String,
    key: SqlValue,
    slot: i64,
}

impl LastRow {
    /// Sorts before every row: no block's key is empty.
    pub fn start() -> Self {
        Self {
            block: String::new(),
            key: "".into(),
            slot: -1,
        }
    }
}
