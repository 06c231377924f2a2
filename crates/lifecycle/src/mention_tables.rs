//! The tables that `findMentions` searches, and how a row of each becomes a mention.

use super::tables::tables;
use base::tables::{InMentions, MentionRows, RowOwner, Table};

/// A table with user text.
pub struct MentionTable {
    pub table: &'static Table,
    pub rows: MentionRows,
}

/// The tables that are searched, in their order.
pub fn mention_tables() -> impl Iterator<Item = MentionTable> {
    tables().filter_map(MentionTable::of)
}

impl MentionTable {
    fn of(table: &'static Table) -> Option<Self> {
        match table.mentions {
            InMentions::Searched(rows) => Some(Self { table, rows }),
            InMentions::Nothing(_) => None,
        }
    }

    /// The column with the session that the row belongs to. `None`: a caller limited to one session
    /// finds none.
    pub fn owner(&self) -> Option<&'static str> {
        match self.table.owner {
            RowOwner::Session(column) if self.rows.has_index => Some(column),
            _ => None,
        }
    }

    /// SQL: whether a row `t` may be shown.
    pub fn is_visible(&self) -> String {
        match (self.table.owner, self.rows.follows_session) {
            (RowOwner::Session(column), true) => format!(
                "(t.{column} = '' OR EXISTS (SELECT 1 FROM cf_agents_sessions AS s WHERE s.id = t.{column}))"
            ),
            _ => "1".to_owned(),
        }
    }

    /// SQL: the bytes of a row's texts.
    pub fn length(&self) -> String {
        let lengths = self
            .rows
            .texts
            .iter()
            .map(|column| format!("coalesce(octet_length({column}), 0)"));
        lengths.collect::<Vec<_>>().join(" + ")
    }

    /// SQL: whether a text of the row contains one of the forms `?p`.
    pub fn contains_text(&self) -> String {
        let holds = self
            .rows
            .texts
            .iter()
            .map(|column| format!("instr(lower({column}), form.value)"));
        format!(
            "EXISTS (SELECT 1 FROM json_each(?p) AS form WHERE {})",
            holds.collect::<Vec<_>>().join(" OR ")
        )
    }

    /// SQL: the context of the first form that a text contains.
    pub fn snippet(&self) -> String {
        let cut = |column: &&str| {
            format!(
                "(SELECT substr({column}, max(1, instr(lower({column}), form.value) - 80), 240)
                    FROM json_each(?p) AS form
                   WHERE instr(lower({column}), form.value)
                   LIMIT 1)"
            )
        };
        let cuts: Vec<String> = self.rows.texts.iter().map(cut).collect();
        match cuts.as_slice() {
            [cut] => cut.clone(),
            cuts => format!("coalesce({})", cuts.join(", ")),
        }
    }
}
