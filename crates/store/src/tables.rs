//! The tables of this crate.

use base::tables::{
    Deletion, InAgentFile, InFile, InFork, RowOwner, Table, of_the_agent, overwritten,
};

/// All of them.
pub const TABLES: &[&Table] = &[MIGRATIONS, CONFIG, CALLBACKS];

pub const MIGRATIONS: &Table = &of_the_agent(
    "cf_agents_migrations",
    "the names of migrations",
    InAgentFile::Nothing("the build that opens the object writes them"),
);

pub const CONFIG: &Table = &of_the_agent(
    "cf_agents_config",
    "settings",
    InAgentFile::Lines("settings"),
);

pub const CALLBACKS: &Table = &Table {
    name: "cf_agents_callbacks",
    purge: overwritten("callbacks", &["report", "reason"]),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithContext,
    block: None,
    fork: InFork::Nothing("callbacks are sent once, by the original"),
    file: InFile::Nothing("callbacks are sent once, by the original"),
    agent_file: InAgentFile::AsInSessions,
};
