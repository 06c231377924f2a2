//! How a table is described: its name, the owner of its rows, and what happens to them when a
//! session is cleared, deleted, forked, exported or imported, when a block is purged, and when a
//! text is searched. The crate that owns a table has its description, in a file `tables.rs`.
//! `lifecycle/tables.rs` collects them.

/// One table, and what happens to its rows.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub owner: RowOwner,
    pub deletion: Deletion,
    /// The column that names a memory block, if the rows are a block's content:
    /// `removeBlock` with `purge` deletes them.
    pub block: Option<&'static str>,
    pub fork: ForkRule,
    pub file: ExportRule,
    /// The text in the rows, for deletions that purge.
    pub purge: PurgeRule,
    pub agent_file: AgentFileRule,
    pub mentions: InMentions,
}

impl Table {
    /// SQL: whether a row belongs to this session, or to the scope, which is SQL itself. `None`: a
    /// statement on only this table can't find the rows.
    pub fn condition(&self, scope: &str) -> Option<String> {
        match self.owner {
            RowOwner::Session(column) => Some(format!("{column} = {scope}")),
            RowOwner::Through(column, numbers) => Some(format!("{column} IN ({numbers} {scope})")),
            RowOwner::Agent | RowOwner::Event | RowOwner::View => None,
        }
    }
}

/// The owner of the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOwner {
    /// The agent owns the rows, even if a column names a session.
    Agent,
    /// A session owns the row: this column contains the session's id. In a row of the agent, a
    /// column `scope` is empty.
    Session(&'static str),
    /// A row of another table owns the row: this column contains the other's number, which this SQL
    /// selects. A scope follows.
    Through(&'static str, &'static str),
    /// An event owns the row, which is found by the number of the session.
    /// `conversation/index/mod.rs` deletes these rows before the events are deleted.
    Event,
    /// A view of the table before it. A view has no rows of its own.
    View,
}

/// When all rows of a session are deleted. Some operations also delete single rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// `clearMessages` and `deleteSession` delete the rows.
    WithLog,
    /// The same two delete the rows; `clearMessages` does so even if the log is empty.
    WithContext,
    /// `deleteSession` alone deletes the rows.
    WithSession,
    /// No deleted session has rows in this table. The text is the reason.
    Never(&'static str),
}

/// The rows that a fork receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkRule {
    /// A copy of every row: these columns and the owner's. The omitted columns contain row numbers,
    /// which the table assigns.
    Copy { columns: &'static str },
    /// Rows that the file of this name writes, since they differ from the original's
    /// rows.
    Made(&'static str),
    /// Nothing. The text is the reason.
    Nothing(&'static str),
}

/// The rows that the file of an exported session contains, and those that an import
/// writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportRule {
    /// The content of the rows. Every file has some of it, and every caller who may
    /// export may read it.
    Always,
    /// The content of the rows. If the session has such rows, the caller who exports it
    /// must also be allowed the operation of this name.
    ShownBy(&'static str),
    /// Nothing: the import makes new rows while it writes the others. The text names
    /// their source.
    Rebuilt(&'static str),
    /// Nothing, and an import writes no rows. The text is the reason.
    Nothing(&'static str),
}

/// The rows that the file of the whole agent contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentFileRule {
    /// The rows that the files of the sessions contain, see [`ExportRule`]; rows of the agent
    /// alike.
    AsInSessions,
    /// The content of the rows, in lines of this type.
    Lines(&'static str),
    /// Nothing, and an import writes no rows. The text is the reason.
    Nothing(&'static str),
}

/// Whether `findMentions` searches the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InMentions {
    Searched(MentionRows),
    /// Not searched. The text is the reason.
    Nothing(&'static str),
}

/// How rows are searched for mentions, as SQL on a row `t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MentionRows {
    /// The columns of the primary key, in order.
    pub key: &'static [&'static str],
    /// SQL: the texts of a row.
    pub texts: &'static [&'static str],
    /// Whether an index finds the rows of one session. If not, a caller limited to one session
    /// finds none.
    pub has_index: bool,
    /// Whether a row is shown only if its session exists: a pending import writes rows before its
    /// session.
    pub follows_session: bool,
    /// SQL: the location of a row, as JSON without its snippet.
    pub location: &'static str,
    /// SQL: whether a row derives from events. `?p` is a JSON array of [id, `seq`].
    pub comes_from: Option<&'static str>,
}

/// The defaults for rows of sessions.
pub const MENTIONS_OF_SESSION: MentionRows = MentionRows {
    key: &[],
    texts: &[],
    has_index: true,
    follows_session: true,
    location: "",
    comes_from: None,
};

/// A table of the agent: no operation on a session changes it. `holds` describes its rows.
pub const fn of_the_agent(
    name: &'static str,
    holds: &'static str,
    agent_file: AgentFileRule,
) -> Table {
    Table {
        name,
        purge: PurgeRule::Nothing(holds),
        owner: RowOwner::Agent,
        deletion: Deletion::Never("the rows are the agent's"),
        block: None,
        fork: ForkRule::Nothing("the rows are the agent's"),
        file: ExportRule::Nothing("the rows are the agent's"),
        agent_file,
        mentions: InMentions::Nothing(holds),
    }
}

/// A view, which has no rows.
pub const fn view(name: &'static str) -> Table {
    Table {
        owner: RowOwner::View,
        deletion: Deletion::Never("a view has no rows"),
        fork: ForkRule::Nothing("a view has no rows"),
        file: ExportRule::Nothing("a view has no rows"),
        ..of_the_agent(
            name,
            "a view has no rows",
            AgentFileRule::Nothing("a view has no rows"),
        )
    }
}

/// What text the rows contain, for deletions of a purge (`store/erasing.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeRule {
    /// These columns contain text. They are overwritten before their rows are deleted. A
    /// receipt counts the rows as `counted`; `None`: the rows belong to other rows that are
    /// counted.
    Overwritten {
        counted: Option<&'static str>,
        texts: &'static [&'static str],
    },
    /// Like `Overwritten`, but several rows are parts of one text, and only the part
    /// `first` is counted.
    Parts {
        counted: &'static str,
        first: i64,
        texts: &'static [&'static str],
    },
    /// A full-text index: it is merged after rows are deleted, because it contains their
    /// words until then.
    Merged,
    /// The rows contain no user text. The string describes what they contain.
    Nothing(&'static str),
}

/// Rows with text in these columns, counted under this name.
pub const fn overwritten(counted: &'static str, texts: &'static [&'static str]) -> PurgeRule {
    PurgeRule::Overwritten {
        counted: Some(counted),
        texts,
    }
}

/// Rows with text in these columns, which belong to rows that are counted.
pub const fn uncounted(texts: &'static [&'static str]) -> PurgeRule {
    PurgeRule::Overwritten {
        counted: None,
        texts,
    }
}

/// Parts of texts, of which the one with this number is counted.
pub const fn parts(counted: &'static str, first: i64, texts: &'static [&'static str]) -> PurgeRule {
    PurgeRule::Parts {
        counted,
        first,
        texts,
    }
}
