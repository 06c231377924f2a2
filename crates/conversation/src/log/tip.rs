//! The end of a session's log: the facts that the next append needs, read by one
//! statement whose cost does not depend on the log's length.

use std::rc::Rc;
use std::sync::LazyLock;

use super::totals::{PathEnd, path_end};
use crate::session::activity::IS_OUTSIDE_WINDOW;
use base::columns::{Found, find, find_value};
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;
use base::{row, sql};
use store::stored::{AGENT, COMPACTION, OF_KEY, SEARCH};

#[derive(Clone, Debug)]
pub struct LogTip {
    /// The newest event's `seq`; 0 in an empty log.
    pub newest_seq: i64,
    /// No new event gets this `seq` or a lower `seq`.
    pub seq_floor: i64,
    /// The highest `seq` that was imported or copied by a fork. Open calls in such events are data;
    /// no turn of this session waits for them.
    pub copied_seq: i64,
    /// When the newest event was written; 0 in an empty log.
    pub written_at: i64,
    /// The last event of the default branch.
    pub leaf: Option<Leaf>,
}

impl LogTip {
    /// The highest `seq` that an event of this session has ever had.
    pub fn last_seq(&self) -> i64 {
        self.newest_seq.max(self.seq_floor)
    }
}

row! {
    /// The columns of the event `event`.
    #[derive(Clone, Debug)]
    pub struct Leaf(event: &str) {
        pub seq: i64 = format!("{event}.seq"),
        pub id: String = format!("{event}.id"),
    }
}

/// A session's row with its newest event and the event that was chosen as the leaf. The
/// session is the first parameter.
const END_OF_LOG: &str = "
     FROM cf_agents_sessions AS s
     LEFT JOIN cf_agents_events AS newest
       ON newest.session_id = s.id
      AND newest.seq = (SELECT max(seq) FROM cf_agents_events WHERE session_id = s.id)
     LEFT JOIN cf_agents_events AS chosen
       ON chosen.session_id = s.id
      AND chosen.seq = s.leaf_seq
    WHERE s.id = +?1";

/// SQL: whether the event `newest`, the newest of the session `s`, is the session's leaf.
pub const IS_NEWEST_LEAF: &str =
    "(coalesce(s.leaf_chosen_at, 0) < newest.seq OR s.leaf_seq = newest.seq)";

static TIP: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {} {END_OF_LOG}", LogTip::columns()));

/// The end of the log. Its leaf is the newest event, unless a branch was chosen later.
pub fn get_tip(db: &dyn Database, session_id: &Id) -> Result<LogTip> {
    if let Some(cached) = find_cached::<AppendTip>(db, session_id) {
        return Ok(cached.tip.clone());
    }
    if let Some(cached) = find_cached(db, session_id) {
        return Ok(LogTip::clone(&cached));
    }
    let tip: LogTip = find(db, &TIP, &[session_id.as_str().into()])?
        .ok_or_else(|| Error::session_not_found(session_id.as_str()))?;
    cache(db, session_id, tip.clone());
    Ok(tip)
}

fn find_cached<T: 'static>(db: &dyn Database, session_id: &Id) -> Option<Rc<T>> {
    db.read_cache()?.get(session_id.as_str())
}

fn cache<T: 'static>(db: &dyn Database, session_id: &Id, tip: T) {
    if let Some(cache) = db.read_cache() {
        cache.put(session_id.as_str(), tip);
    }
}

row! {
    /// The settings of the session `s` and of the agent for the work after an append, as JSON.
    #[derive(Clone, Debug, Default)]
    pub struct StoredSettings {
        /// The agent's settings.
        pub agents: Option<String> = sql!("(SELECT value ", OF_KEY, "'", COMPACTION, "')"),
        /// The session's journal, with its own settings.
        pub journal: Option<String> = "s.compaction",
        /// The agent's own setting of learning; JSON `null` if it is disabled.
        pub learn: Option<String> = sql!("(SELECT value -> '$.learn' ", OF_KEY, "'", AGENT, "')"),
    }
}

/// All that an append needs before it writes, and for the work after it.
#[derive(Clone, Debug)]
pub struct AppendTip {
    pub tip: LogTip,
    /// The newest event, and the one that was chosen as the leaf.
    pub ends: Vec<PathEnd>,
    /// Whether a summary ends at the newest event.
    pub has_summary: bool,
    /// The session's number.
    pub number: i64,
    /// Whether the append must record that the session is active
    /// (`conversation/session/activity.rs`).
    pub is_settled: bool,
    /// When the session is due for a learning pass.
    pub learn_due_at: Option<i64>,
    /// The `seq` of the event with the requested id, if the id is in the index.
    pub known_seq: Option<i64>,
    /// Whether the requested id was not looked up.
    pub is_id_unchecked: bool,
    /// The progress of the search index, as JSON.
    pub search: Option<String>,
    pub settings: Rc<StoredSettings>,
}

/// SQL: the `seq` of the event with the id ?2, of the session `$session`.
macro_rules! known_seq {
    ($session:literal) => {
        concat!(
            "(SELECT e.seq
                FROM cf_agents_events AS e
               WHERE e.session_id = ",
            $session,
            "
                 AND e.id = ?2
                 AND e.id_indexed = 1)"
        )
    };
}

/// The `seq` of the event with this id, if the id is in the index.
pub fn find_indexed_seq(db: &dyn Database, session_id: &Id, id: &Id) -> Result<Option<i64>> {
    let found: Option<Option<i64>> = find_value(
        db,
        concat!("SELECT ", known_seq!("+?1")),
        &[session_id.as_str().into(), id.as_str().into()],
    )?;
    Ok(found.flatten())
}

// Made once, because each append runs it.
static APPEND_TIP: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {} {END_OF_LOG}", AppendTip::columns()));

/// The end of the log for an append: what the last append kept, or else by one statement. `id`: an
/// id that the append names and from which its row can't be derived. The statement looks it up.
pub fn get_append_tip(db: &dyn Database, session_id: &Id, id: Option<&Id>) -> Result<AppendTip> {
    if let Some(cached) = find_cached::<AppendTip>(db, session_id) {
        return Ok(AppendTip {
            is_id_unchecked: id.is_some(),
            ..AppendTip::clone(&cached)
        });
    }
    find(
        db,
        &APPEND_TIP,
        &[session_id.as_str().into(), id.map(Id::as_str).into()],
    )?
    .ok_or_else(|| Error::session_not_found(session_id.as_str()))
}

impl AppendTip {
    /// Keeps the end of the log after an append that changed nothing else of it. `leaf` and `end`: the
    /// newest event.
    pub fn cache_after_append(
        self,
        db: &dyn Database,
        session_id: &Id,
        (leaf, end): (Leaf, PathEnd),
        written_at: i64,
    ) {
        let tip = LogTip {
            newest_seq: leaf.seq,
            leaf: Some(leaf),
            written_at,
            ..self.tip
        };
        let after = Self {
            tip,
            ends: vec![end],
            has_summary: false,
            known_seq: None,
            is_id_unchecked: false,
            ..self
        };
        cache(db, session_id, after);
    }
}

row! {
    /// The columns of a session `s`, with its events `newest` and `chosen`. ?2: the requested id.
    for AppendTip() {
        tip: LogTip = LogTip::columns(),
        number: i64 = "s.number",
        learn_due_at: Option<i64> = "s.learn_due_at",
        known_seq: Option<i64> = known_seq!("s.id"),
        search: Option<String> = sql!("(SELECT value ", OF_KEY, "'", SEARCH, "')"),
        settings: StoredSettings = StoredSettings::COLUMNS,
        is_settled: Option<i64> = IS_OUTSIDE_WINDOW,
        has_summary: bool = "EXISTS (SELECT 1
                                       FROM cf_agents_compactions AS cut
                                      WHERE cut.session_id = s.id
                                        AND cut.to_seq = newest.seq)",
        newest: Found<PathEnd> = path_end!("newest"),
        chosen: Found<PathEnd> = path_end!("chosen"),
    }
    Ok(Self {
        tip,
        ends: newest.0.into_iter().chain(chosen.0).collect(),
        has_summary,
        number,
        is_settled: is_settled == Some(1),
        learn_due_at,
        known_seq,
        is_id_unchecked: false,
        search,
        settings: Rc::new(settings),
    })
}

row! {
    /// The columns of a session `s`, with its events `newest` and `chosen`.
    for LogTip() {
        seq_floor: i64 = "s.seq_floor",
        leaf_chosen_at: Option<i64> = "s.leaf_chosen_at",
        newest: Found<Leaf> = Leaf::columns("newest"),
        chosen: Found<Leaf> = Leaf::columns("chosen"),
        copied_seq: i64 = "s.copied_seq",
        written_at: Option<i64> = "newest.written_at",
    }
    {
        let newest_seq = newest.0.as_ref().map_or(0, |newest| newest.seq);
        let is_chosen = leaf_chosen_at.is_some_and(|chosen_at| newest_seq <= chosen_at);
        let chosen = chosen.0.filter(|_| is_chosen);
        Ok(Self {
            newest_seq,
            seq_floor,
            copied_seq,
            written_at: written_at.unwrap_or(0),
            leaf: chosen.or(newest.0),
        })
    }
}
