//! The tables of this crate.

use base::tables::{
    AgentFileRule, Deletion, ExportRule, ForkRule, InMentions, MENTIONS_OF_SESSION, MentionRows,
    RowOwner, Table, of_the_agent, overwritten,
};

/// All of them.
pub const TABLES: &[&Table] = &[MIGRATIONS, CONFIG, CALLBACKS];

pub const MIGRATIONS: &Table = &of_the_agent(
    "cf_agents_migrations",
    "the names of migrations",
    AgentFileRule::Nothing("the build that opens the object writes them"),
);

pub const CONFIG: &Table = &of_the_agent(
    "cf_agents_config",
    "settings",
    AgentFileRule::Lines("settings"),
);

pub const CALLBACKS: &Table = &Table {
    name: "cf_agents_callbacks",
    purge: overwritten("callbacks", &["report", "reason"]),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithContext,
    block: None,
    fork: ForkRule::Nothing("callbacks are sent once, by the original"),
    file: ExportRule::Nothing("callbacks are sent once, by the original"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Searched(MentionRows {
        key: &["number"],
        texts: &["t.report"],
        location: "json_object('kind', 'report', 'sessionId', nullif(t.session_id, ''), 'id', t.id)",
        // There is no index of rows by session.
        has_index: false,
        ..MENTIONS_OF_SESSION
    }),
};
