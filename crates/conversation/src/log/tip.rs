//! The end of a session's log: the facts that the next append needs, read by one
//! statement whose cost does not depend on the log's length.

use std::sync::LazyLock;

use super::totals::{PathEnd, path_end};
use crate::session::activity::IS_OUTSIDE_WINDOW;
use base::columns::{FromRow, find};
use base::database::{Database, Row};
use base::error::{Error, Result};
use base::ids::Id;
use store::stored::{AGENT, COMPACTION, OF_KEY, SEARCH};

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

#[derive(Clone)]
pub struct Leaf {
    pub seq: i64,
    pub id: String,
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

/// The end of the log. Its leaf is the newest event, unless a branch was chosen later.
pub fn get_tip(db: &dyn Database, session_id: &Id) -> Result<LogTip> {
    let sql = format!("SELECT {} {END_OF_LOG}", LogTip::COLUMNS);
    find(db, &sql, &[session_id.as_str().into()])?
        .ok_or_else(|| Error::session_not_found(session_id.as_str()))
}

/// The session's and the agent's settings for the work after an append, as JSON.
#[derive(Debug, Default)]
pub struct StoredSettings {
    /// The agent's settings.
    pub agents: Option<String>,
    /// The session's journal, with its own settings.
    pub journal: Option<String>,
    /// The agent's own setting of learning; JSON `null` if it is disabled.
    pub learn: Option<String>,
}

/// All that an append needs before it writes, and for the work after it.
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
    /// The `seq` of the event with the requested id, if the id is in the index.
    pub known_seq: Option<i64>,
    /// The progress of the search index, as JSON.
    pub search: Option<String>,
    pub settings: StoredSettings,
}

/// Reads the end of the log for an append, by one statement. `id`: an id that the append names and
/// from which its row can't be derived.
pub fn get_append_tip(db: &dyn Database, session_id: &Id, id: Option<&Id>) -> Result<AppendTip> {
    // Made once, because each append runs it.
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {} {END_OF_LOG}", AppendTip::columns()));
    find(
        db,
        &SQL,
        &[session_id.as_str().into(), id.map(Id::as_str).into()],
    )?
    .ok_or_else(|| Error::session_not_found(session_id.as_str()))
}

impl AppendTip {
    /// The columns of a session `s`, with its events `newest` and `chosen`.
    fn columns() -> String {
        let [tip, named] = [
            LogTip::COLUMNS,
            "e.session_id = s.id AND e.id = ?2 AND e.id_indexed = 1",
        ];
        format!(
            "{tip}, s.number,
             (SELECT e.seq FROM cf_agents_events AS e WHERE {named}),
             (SELECT value {OF_KEY} '{SEARCH}'),
             (SELECT value {OF_KEY} '{COMPACTION}'),
             s.compaction,
             (SELECT value -> '$.learn' {OF_KEY} '{AGENT}'),
             {IS_OUTSIDE_WINDOW},
             EXISTS (SELECT 1
                       FROM cf_agents_compactions AS cut
                      WHERE cut.session_id = s.id
                        AND cut.to_seq = newest.seq),
             {}, {}",
            path_end!("newest"),
            path_end!("chosen"),
        )
    }
}

impl FromRow<'_> for AppendTip {
    fn from_row(row: &Row) -> Result<Self> {
        let text = |column| row.find_text(column).map(str::to_owned);
        Ok(Self {
            tip: LogTip::from_row(row)?,
            ends: [16, 16 + PathEnd::WIDTH]
                .into_iter()
                .filter_map(|column| PathEnd::find(row, column))
                .collect(),
            has_summary: row.integer(15)? == 1,
            number: row.integer(8)?,
            is_settled: row.find_integer(14) == Some(1),
            known_seq: row.find_integer(9),
            search: text(10),
            settings: StoredSettings {
                agents: text(11),
                journal: text(12),
                learn: text(13),
            },
        })
    }
}

impl LogTip {
    /// The columns of a session `s`, with its events `newest` and `chosen`.
    const COLUMNS: &str = "s.seq_floor, s.leaf_chosen_at, newest.seq, newest.id, chosen.seq, chosen.id, s.copied_seq, newest.written_at";
}

impl FromRow<'_> for LogTip {
    fn from_row(row: &Row) -> Result<Self> {
        let newest_seq = row.find_integer(2).unwrap_or(0);
        let leaf_at = |column: usize| {
            Some(Leaf {
                seq: row.find_integer(column)?,
                id: row.find_text(column + 1)?.to_owned(),
            })
        };
        let chosen = row
            .find_integer(1)
            .filter(|chosen_at| newest_seq <= *chosen_at)
            .and_then(|_| leaf_at(4));
        Ok(LogTip {
            newest_seq,
            seq_floor: row.integer(0)?,
            copied_seq: row.integer(6)?,
            written_at: row.find_integer(7).unwrap_or(0),
            leaf: chosen.or_else(|| leaf_at(2)),
        })
    }
}
