//! The tables of this crate: sessions, their events, and what belongs to them. For each of them,
//! its description defines what becomes of its rows (`base/tables.rs`).

use base::tables::{
    AgentFileRule, Deletion, ExportRule, ForkRule, InMentions, MENTIONS_OF_SESSION, MentionRows,
    PurgeRule, RowOwner, Table, of_the_agent, overwritten, parts, uncounted, view,
};

/// All of them, a session's row last.
pub const TABLES: &[&Table] = &[
    USAGE_DAYS,
    METERED,
    EVENTS_SEARCH,
    SEARCH_WORDS,
    SEARCH_PARTS,
    SEARCH_PROGRESS,
    EVENT_VECTORS,
    EVENTS,
    SLICES,
    COMPACTIONS,
    MEDIA,
    MEDIA_USES,
    WAITING,
    CHANGES,
    USAGE_CALLS,
    LAST_TURNS,
    FAILED_TURNS,
    PATH_DIGESTS,
    SESSIONS,
];

pub const USAGE_DAYS: &Table = &of_the_agent(
    "cf_agents_usage_days",
    "numbers",
    AgentFileRule::Lines("usage"),
);

pub const METERED: &Table = &of_the_agent(
    "cf_agents_metered",
    "numbers",
    AgentFileRule::Nothing("limits count what was spent where it was spent"),
);

/// The full-text index of the events.
pub const EVENTS_SEARCH: &Table = &of_the_index("cf_agents_search", PurgeRule::Merged);

pub const SEARCH_WORDS: &Table = &view("cf_agents_search_words");

pub const SEARCH_PARTS: &Table =
    &of_the_index("cf_agents_search_parts", PurgeRule::Nothing("numbers"));

pub const SEARCH_PROGRESS: &Table =
    &of_the_index("cf_agents_search_progress", PurgeRule::Nothing("numbers"));

pub const EVENT_VECTORS: &Table = &Table {
    fork: ForkRule::Nothing("searches make them"),
    ..of_the_index(
        "cf_agents_event_vectors",
        overwritten("vectors", &["vector"]),
    )
};

pub const EVENTS: &Table = &Table {
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
    fork: ForkRule::Made("lifecycle/fork.rs"),
    file: ExportRule::Always,
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Searched(MentionRows {
        key: &["session_id", "seq"],
        texts: &["t.content", "t.message", "t.tool", "t.metadata", "t.note"],
        location: "json_object('kind', 'event', 'sessionId', t.session_id, 'id', t.id)",
        comes_from: Some("t.id IN (SELECT value ->> 0 FROM json_each(?p))"),
        ..MENTIONS_OF_SESSION
    }),
};

/// SQL: a slice and the start of the next one, because a match may cross the boundary: 200
/// characters, each of which may take up to twelve in JSON.
const SLICE: &str = "(t.text || coalesce((SELECT substr(next.text, 1, 2400)
                                            FROM cf_agents_slices AS next
                                           WHERE next.session_id = t.session_id
                                             AND next.seq = t.seq
                                             AND next.field = t.field
                                             AND next.part = t.part + 1), ''))";

pub const SLICES: &Table = &Table {
    name: "cf_agents_slices",
    purge: uncounted(&["text"]),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithLog,
    block: None,
    fork: ForkRule::Made("lifecycle/fork.rs"),
    file: ExportRule::Rebuilt("long events"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Searched(MentionRows {
        key: &["session_id", "seq", "field", "part"],
        texts: &[SLICE],
        location: "json_object('kind', 'event', 'sessionId', t.session_id, 'id',
                            (SELECT e.id
                               FROM cf_agents_events AS e
                              WHERE e.session_id = t.session_id
                                AND e.seq = t.seq))",
        ..MENTIONS_OF_SESSION
    }),
};

pub const COMPACTIONS: &Table = &Table {
    name: "cf_agents_compactions",
    purge: overwritten("summaries", &["summary"]),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithLog,
    block: None,
    fork: ForkRule::Made("conversation/messages/tree/overlay_writes.rs"),
    file: ExportRule::ShownBy("getCompactions"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Searched(MentionRows {
        key: &["session_id", "to_seq", "from_seq", "number"],
        texts: &["t.summary"],
        location: "json_object('kind', 'summary', 'sessionId', t.session_id, 'id', t.id)",
        // Matches on other branches are filtered out afterward.
        comes_from: Some(
            "EXISTS (SELECT 1
                       FROM json_each(?p) AS wanted
                      WHERE coalesce((SELECT e.seq
                                        FROM cf_agents_events AS e
                                       WHERE e.session_id = t.session_id
                                         AND e.seq = wanted.value ->> 1
                                         AND e.id = wanted.value ->> 0),
                                     (SELECT e.seq
                                        FROM cf_agents_events AS e
                                       WHERE e.session_id = t.session_id
                                         AND e.id = wanted.value ->> 0
                                         AND e.id_indexed = 1))
                            BETWEEN t.from_seq AND t.to_seq)",
        ),
        ..MENTIONS_OF_SESSION
    }),
};

pub const MEDIA: &Table = &Table {
    name: "cf_agents_media",
    purge: parts("media", 0, &["text"]),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithLog,
    block: None,
    fork: ForkRule::Made("conversation/log/media.rs"),
    file: ExportRule::Always,
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("payloads, and no words"),
};

pub const MEDIA_USES: &Table = &Table {
    name: "cf_agents_media_uses",
    purge: PurgeRule::Nothing("hashes of media"),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithLog,
    block: None,
    fork: ForkRule::Made("conversation/log/media.rs"),
    file: ExportRule::Always,
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("hashes of media"),
};

pub const WAITING: &Table = &Table {
    name: "cf_agents_waiting",
    purge: parts("waitingMessages", 1, &["text", "message_ids"]),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithContext,
    block: None,
    fork: ForkRule::Nothing("a queued message is answered by the original"),
    file: ExportRule::Nothing("a queued message is answered by the original"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("a queued message becomes an event"),
};

pub const CHANGES: &Table = &Table {
    name: "cf_agents_changes",
    purge: PurgeRule::Nothing("ids of events and summaries"),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithSession,
    block: None,
    fork: ForkRule::Nothing("a fork's feed begins with the fork"),
    file: ExportRule::ShownBy("getChanges"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("ids of events and summaries"),
};

pub const USAGE_CALLS: &Table = &Table {
    name: "cf_agents_usage_calls",
    purge: PurgeRule::Nothing("ids of calls"),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithSession,
    block: None,
    fork: ForkRule::Nothing("a fork's usage starts at zero"),
    file: ExportRule::Nothing("the rows are for retries, not for copies"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("ids of calls"),
};

pub const LAST_TURNS: &Table = &Table {
    name: "cf_agents_last_turns",
    purge: overwritten("turns", &["state"]),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithSession,
    block: None,
    fork: ForkRule::Nothing("a turn continues in the original, and a fork's usage starts at zero"),
    file: ExportRule::Nothing("a turn continues in the original; the session's line has the usage"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("the events are searched"),
};

pub const FAILED_TURNS: &Table = &Table {
    name: "cf_agents_failed_turns",
    purge: overwritten("turns", &["record"]),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithLog,
    block: None,
    fork: ForkRule::Nothing("the record of a turn belongs to the original"),
    file: ExportRule::Nothing("records are only for turns that ran here"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("records are without content"),
};

pub const PATH_DIGESTS: &Table = &Table {
    name: "cf_agents_path_digests",
    purge: PurgeRule::Nothing("digests of paths"),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::WithLog,
    block: None,
    fork: ForkRule::Nothing("a history continues in its original session"),
    file: ExportRule::Nothing("a history continues in its original session"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("digests of paths"),
};

pub const SESSIONS: &Table = &Table {
    name: "cf_agents_sessions",
    purge: overwritten(
        "sessions",
        &["name", "metadata", "compaction", "tags", "learn_failure"],
    ),
    owner: RowOwner::Session("id"),
    deletion: Deletion::WithSession,
    block: None,
    fork: ForkRule::Made("lifecycle/fork.rs"),
    file: ExportRule::Always,
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Searched(MentionRows {
        key: &["number"],
        texts: &["t.name", "t.metadata", "t.tags"],
        location: "json_object('kind', 'session', 'sessionId', t.id)",
        follows_session: false,
        ..MENTIONS_OF_SESSION
    }),
};

/// A table of the word index, whose rows belong to events.
const fn of_the_index(name: &'static str, purge: PurgeRule) -> Table {
    Table {
        name,
        purge,
        owner: RowOwner::Event,
        deletion: Deletion::WithLog,
        block: None,
        fork: ForkRule::Made("conversation/index/build.rs"),
        file: ExportRule::Nothing("a session is indexed when its row is written"),
        agent_file: AgentFileRule::Nothing("the first search builds the index"),
        mentions: InMentions::Nothing("events are searched, not their index"),
    }
}
