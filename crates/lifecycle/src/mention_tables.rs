//! The tables that `findMentions` searches, and how a row of each becomes a place.

/// A table with user text.
pub struct MentionTable {
    pub name: &'static str,
    /// The columns of the primary key, in order.
    pub key: &'static [&'static str],
    /// SQL: the text columns of a row `t`.
    texts: &'static [&'static str],
    /// The column with the session that the row belongs to. `None`: rows belong to the
    /// agent, and a caller limited to one session finds none.
    pub owner: Option<&'static str>,
    /// SQL: the place of a row `t`, as JSON without its snippet.
    pub place: &'static str,
    /// SQL: whether a row `t` may be shown.
    pub is_there: &'static str,
    /// SQL: whether a row `t` derives from events. `?p` is a JSON array of [id, `seq`].
    pub comes_from: Option<&'static str>,
}

impl MentionTable {
    /// SQL: the bytes of a row's texts.
    pub fn length(&self) -> String {
        let lengths = self
            .texts
            .iter()
            .map(|column| format!("coalesce(octet_length({column}), 0)"));
        lengths.collect::<Vec<_>>().join(" + ")
    }

    /// SQL: whether a text of the row contains one of the forms `?p`.
    pub fn holds_text(&self) -> String {
        let holds = self
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
        let cuts: Vec<String> = self.texts.iter().map(cut).collect();
        match cuts.as_slice() {
            [cut] => cut.clone(),
            cuts => format!("coalesce({})", cuts.join(", ")),
        }
    }
}

/// SQL: whether an event in a note is one of the events `?p`.
const NOTE_COMES_FROM: &str = "(json_valid(t.note)
    AND (t.note ->> '$.eventId' IN (SELECT value ->> 0 FROM json_each(?p))
         OR EXISTS (SELECT 1
                      FROM json_each(t.note, '$.events') AS named
                     WHERE named.value IN (SELECT value ->> 0 FROM json_each(?p)))))";

/// SQL: the custom data of an item.
const NOTE_METADATA: &str = "iif(json_valid(t.note), t.note -> '$.metadata', NULL)";
const NOTE_TAGS: &str = "iif(json_valid(t.note), t.note -> '$.tags', NULL)";

/// SQL: whether the session exists. A pending import writes rows before its session.
macro_rules! session_is_there {
    ($column:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM cf_agents_sessions AS s WHERE s.id = t.",
            $column,
            ")"
        )
    };
}

/// SQL: whether the scope is the agent or an existing session.
const SCOPE_IS_THERE: &str =
    "(t.scope = '' OR EXISTS (SELECT 1 FROM cf_agents_sessions AS s WHERE s.id = t.scope))";

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

/// SQL: a slice and the start of the next one, because a match may cross the boundary: 200
/// characters, each of which may take up to twelve in JSON.
const SLICE: &str = "(t.text || coalesce((SELECT substr(next.text, 1, 2400)
                                            FROM cf_agents_slices AS next
                                           WHERE next.session_id = t.session_id
                                             AND next.seq = t.seq
                                             AND next.field = t.field
                                             AND next.part = t.part + 1), ''))";

pub const MENTION_TABLES: &[MentionTable] = &[
    MentionTable {
        name: "cf_agents_events",
        key: &["session_id", "seq"],
        texts: &["t.content", "t.message", "t.tool", "t.metadata", "t.note"],
        owner: Some("session_id"),
        place: "json_object('kind', 'event', 'sessionId', t.session_id, 'id', t.id)",
        is_there: session_is_there!("session_id"),
        comes_from: Some("t.id IN (SELECT value ->> 0 FROM json_each(?p))"),
    },
    MentionTable {
        name: "cf_agents_slices",
        key: &["session_id", "seq", "field", "part"],
        texts: &[SLICE],
        owner: Some("session_id"),
        place: "json_object('kind', 'event', 'sessionId', t.session_id, 'id',
                            (SELECT e.id
                               FROM cf_agents_events AS e
                              WHERE e.session_id = t.session_id
                                AND e.seq = t.seq))",
        is_there: session_is_there!("session_id"),
        comes_from: None,
    },
    MentionTable {
        name: "cf_agents_compactions",
        key: &["session_id", "to_seq", "from_seq", "number"],
        texts: &["t.summary"],
        owner: Some("session_id"),
        place: "json_object('kind', 'summary', 'sessionId', t.session_id, 'id', t.id)",
        is_there: session_is_there!("session_id"),
        // Matches on other branches are filtered out afterwards.
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
    },
    MentionTable {
        name: "cf_agents_sessions",
        key: &["number"],
        texts: &["t.name", "t.metadata", "t.tags"],
        owner: Some("id"),
        place: "json_object('kind', 'session', 'sessionId', t.id)",
        is_there: "1",
        comes_from: None,
    },
    MentionTable {
        name: "cf_agents_blocks",
        key: &["number"],
        texts: &["t.description", "t.default_content", "t.metadata", "t.tags"],
        owner: Some("scope"),
        place: "json_object('kind', 'definition', 'sessionId', nullif(t.scope, ''), 'label', t.key)",
        is_there: SCOPE_IS_THERE,
        comes_from: None,
    },
    MentionTable {
        name: "cf_agents_block_versions",
        key: &["scope", "key", "version"],
        texts: &["t.content", "t.reason"],
        owner: Some("scope"),
        place: concat!(
            "json_object('kind', iif(",
            is_newest!(),
            ", 'block', 'version'), 'sessionId', nullif(t.scope, ''), 'label', t.key, 'version', t.version)"
        ),
        is_there: SCOPE_IS_THERE,
        comes_from: Some("t.event_id IN (SELECT value ->> 0 FROM json_each(?p))"),
    },
    MentionTable {
        name: "cf_agents_entries",
        key: &["number"],
        texts: &["t.key", "t.title", "t.content", NOTE_METADATA, NOTE_TAGS],
        owner: Some("scope"),
        place: "json_object('kind', 'entry', 'sessionId', nullif(t.scope, ''), 'label', t.block, 'key', t.key)",
        is_there: SCOPE_IS_THERE,
        comes_from: Some(NOTE_COMES_FROM),
    },
    MentionTable {
        name: "cf_agents_skills",
        key: &["scope", "block", "key"],
        texts: &[
            "t.key",
            "t.description",
            "t.content",
            NOTE_METADATA,
            NOTE_TAGS,
        ],
        owner: Some("scope"),
        place: "json_object('kind', 'document', 'sessionId', nullif(t.scope, ''), 'label', t.block, 'key', t.key)",
        is_there: SCOPE_IS_THERE,
        comes_from: Some(NOTE_COMES_FROM),
    },
    MentionTable {
        name: "cf_agents_item_versions",
        key: &["scope", "block", "key", "slot"],
        texts: &["t.key", "t.title", "t.content", NOTE_METADATA, NOTE_TAGS],
        owner: Some("scope"),
        place: "json_object('kind', 'version', 'sessionId', nullif(t.scope, ''), 'label', t.block, 'key', t.key, 'version', t.version)",
        is_there: SCOPE_IS_THERE,
        comes_from: Some(NOTE_COMES_FROM),
    },
    MentionTable {
        name: "cf_agents_loaded_skills",
        key: &["session_id", "block", "key"],
        texts: &["t.key", "t.content"],
        owner: Some("session_id"),
        place: "json_object('kind', 'loadedDocument', 'sessionId', t.session_id, 'label', t.block, 'key', t.key)",
        is_there: session_is_there!("session_id"),
        comes_from: None,
    },
    MentionTable {
        name: "cf_agents_prompts",
        key: &["scope"],
        texts: &["t.prompt"],
        owner: Some("scope"),
        place: "json_object('kind', 'prompt', 'sessionId', nullif(t.scope, ''))",
        is_there: SCOPE_IS_THERE,
        comes_from: None,
    },
    MentionTable {
        name: "cf_agents_proposals",
        key: &["number"],
        texts: &["t.changes"],
        // There is no index of rows by session, and they concern the agent's memory.
        owner: None,
        place: "json_object('kind', 'proposal', 'sessionId', nullif(t.session_id, ''), 'id', cast(t.number AS TEXT))",
        is_there: "1",
        comes_from: Some(
            "EXISTS (SELECT 1
                       FROM json_each(t.changes) AS change,
                            json_each(change.value, '$.events') AS event
                      WHERE event.value ->> '$.id' IN (SELECT value ->> 0 FROM json_each(?p)))",
        ),
    },
    MentionTable {
        name: "cf_agents_callbacks",
        key: &["number"],
        texts: &["t.report"],
        // There is no index of rows by session.
        owner: None,
        place: "json_object('kind', 'report', 'sessionId', nullif(t.session_id, ''), 'id', t.id)",
        is_there: "(t.session_id = '' OR EXISTS (SELECT 1 FROM cf_agents_sessions AS s WHERE s.id = t.session_id))",
        comes_from: None,
    },
];
