//! What happens to a table's rows: the types that `tables.rs` uses for each table.

use crate::erased::InPurge;

/// One table, and what happens to its rows.
pub struct SessionTable {
    pub name: &'static str,
    pub owner: RowOwner,
    pub deletion: Deletion,
    /// The column that names a memory block, if the rows are a block's content:
    /// `removeBlock` with `purge` deletes them.
    pub block: Option<&'static str>,
    pub fork: InFork,
    pub file: InFile,
    /// The text in the rows, for deletions that purge.
    pub purge: InPurge,
    pub agent_file: InAgentFile,
}

/// The owner of the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOwner {
    /// The agent owns the rows, even if a column names a session.
    Agent,
    /// A session owns the row: this column contains the session's id. In a row of the agent, a
    /// column `scope` is empty.
    Session(&'static str),
    /// An entry owns the row: this column contains the number of a row of `cf_agents_entries`.
    Entry(&'static str),
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
    /// No deleted session has rows in this table. The text says why.
    Never(&'static str),
}

/// The rows that a fork receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFork {
    /// A copy of every row: these columns and the owner's. The omitted columns contain row numbers,
    /// which the table assigns.
    Copy { columns: &'static str },
    /// Rows that the file of this name writes, since they differ from the original's
    /// rows.
    Made(&'static str),
    /// Nothing. The text says why.
    Nothing(&'static str),
}

/// The rows that the file of an exported session contains, and those that an import
/// writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFile {
    /// The content of the rows. Every file has some of it, and every caller who may
    /// export may read it.
    Always,
    /// The content of the rows. If the session has such rows, the caller who exports it
    /// must also be allowed the operation of this name.
    ShownBy(&'static str),
    /// Nothing: the import makes new rows while it writes the others. The text names
    /// their source.
    MadeAnew(&'static str),
    /// Nothing, and an import writes no rows. The text says why.
    Nothing(&'static str),
}

/// The rows that the file of the whole agent contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InAgentFile {
    /// The rows that the files of the sessions contain, see [`InFile`]; rows of the agent alike.
    AsInSessions,
    /// The content of the rows, in lines of this type.
    Lines(&'static str),
    /// Nothing, and an import writes no rows. The text says why.
    Nothing(&'static str),
}

/// A table of the agent: no operation on a session changes it. `holds` describes its rows.
pub(crate) const fn of_the_agent(
    name: &'static str,
    holds: &'static str,
    agent_file: InAgentFile,
) -> SessionTable {
    SessionTable {
        name,
        purge: InPurge::Nothing(holds),
        owner: RowOwner::Agent,
        deletion: Deletion::Never("the rows are the agent's"),
        block: None,
        fork: InFork::Nothing("the rows are the agent's"),
        file: InFile::Nothing("the rows are the agent's"),
        agent_file,
    }
}

/// A table of the word index, whose rows belong to events.
pub(crate) const fn of_the_index(name: &'static str, purge: InPurge) -> SessionTable {
    SessionTable {
        name,
        purge,
        owner: RowOwner::Event,
        deletion: Deletion::WithLog,
        block: None,
        fork: InFork::Made("conversation/index/build.rs"),
        file: InFile::Nothing("a session is indexed when its row is written"),
        agent_file: InAgentFile::Nothing("the first search builds the index"),
    }
}

/// A view, which has no rows.
pub(crate) const fn view(name: &'static str) -> SessionTable {
    SessionTable {
        owner: RowOwner::View,
        deletion: Deletion::Never("a view has no rows"),
        fork: InFork::Nothing("a view has no rows"),
        file: InFile::Nothing("a view has no rows"),
        ..of_the_agent(
            name,
            "a view has no rows",
            InAgentFile::Nothing("a view has no rows"),
        )
    }
}
