//! The tables of this crate, except those of turns, which are sessions' (`conversation/tables.rs`).

use base::tables::{
    AgentFileRule, Deletion, ExportRule, ForkRule, InMentions, RowOwner, Table, of_the_agent, parts,
};

/// All of them.
pub const TABLES: &[&Table] = &[TOOLS, TOOL_AUTHORIZATIONS, EARLY_ANSWERS];

pub const TOOLS: &Table = &of_the_agent(
    "cf_agents_tools",
    "definitions of tools",
    AgentFileRule::Lines("tool"),
);

pub const TOOL_AUTHORIZATIONS: &Table = &of_the_agent(
    "cf_agents_tool_authorizations",
    "encrypted tokens",
    AgentFileRule::Nothing("tokens are for this deployment, and are never shown"),
);

pub const EARLY_ANSWERS: &Table = &Table {
    name: "cf_agents_early_answers",
    purge: parts("waitingMessages", 1, &["text"]),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithLog,
    block: None,
    fork: ForkRule::Nothing("an answer belongs to its turn"),
    file: ExportRule::Nothing("an answer belongs to its turn"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("an answer becomes an event"),
};
