//! What the export of a session reads of the session's row before it begins.

use super::lines::{
    FORMAT, FileTime, LineKind, SessionLine, SessionLineUsage, SettingsPart, count,
};
use super::memory::export::has_memory_sql;
use base::columns::FromRow;
use base::database::Row;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, Count};
use base::tags::Tags;
use context::compaction::journal::read_journal;
use context::compaction::settings::OwnSettings;
use log::sessions::ACTIVE_AT;
use store::last_turns::{
    JOIN_LAST_TURN, USED_CACHED_TOKENS, USED_COST, USED_INPUT_TOKENS, USED_OUTPUT_TOKENS,
};
use store::retention::{Retention, read_retention};

pub(super) struct SessionRow {
    pub(super) number: i64,
    pub(super) agent_id: String,
    pub(super) name: Option<String>,
    pub(super) parent_session_id: Option<String>,
    pub(super) metadata: Option<String>,
    pub(super) created_at: i64,
    pub(super) active_at: i64,
    pub(super) input_tokens: i64,
    pub(super) output_tokens: i64,
    pub(super) cost: f64,
    pub(super) cached_input_tokens: i64,
    pub(super) retention: Option<String>,
    pub(super) tags: Option<String>,
    pub(super) is_pinned: bool,
}

impl SessionRow {
    /// The columns of a session `s` with its last turn.
    pub(super) fn columns() -> String {
        format!(
            "s.number, s.agent_id, s.name, s.parent_session_id, s.metadata, s.created_at, {ACTIVE_AT},
             {USED_INPUT_TOKENS}, {USED_OUTPUT_TOKENS}, {USED_COST}, {USED_CACHED_TOKENS},
             s.retention, s.pinned, s.tags"
        )
    }
}

impl FromRow<'_> for SessionRow {
    fn from_row(row: &Row) -> Result<Self> {
        let text = |column: usize| row.find_text(column).map(str::to_owned);
        Ok(Self {
            number: row.integer(0)?,
            agent_id: row.text(1)?.to_owned(),
            name: text(2),
            parent_session_id: text(3),
            metadata: text(4),
            created_at: row.integer(5)?,
            active_at: row.integer(6)?,
            input_tokens: row.integer(7)?,
            output_tokens: row.integer(8)?,
            cost: row.number(9)?,
            cached_input_tokens: row.integer(10)?,
            retention: text(11),
            is_pinned: row.integer(12)? == 1,
            tags: text(13),
        })
    }
}

/// All that the export of a session has to know before it begins.
pub(super) struct HeadRow {
    pub(super) session: SessionRow,
    pub(super) id: Id,
    pub(super) compaction: Option<String>,
    pub(super) learned_seq: Option<i64>,
    pub(super) seq_floor: i64,
    pub(super) newest_seq: i64,
    pub(super) last_cursor: i64,
    /// The event that somebody chose as the leaf, and that still is.
    pub(super) chosen_leaf: Option<String>,
    pub(super) has_summaries: bool,
    pub(super) has_memory: bool,
}

impl HeadRow {
    /// The statement, for the sessions of `from`.
    pub(super) fn select(from: &str) -> String {
        let newest = "coalesce((SELECT max(seq)
                                  FROM cf_agents_events
                                 WHERE session_id = s.id), 0)";
        format!(
            "SELECT {}, s.id, s.compaction, nullif(s.learned_seq, 0), s.seq_floor, {newest},
                    coalesce((SELECT max(cursor)
                                FROM cf_agents_changes
                               WHERE session_id = s.id), 0),
                    (SELECT chosen.id
                       FROM cf_agents_events AS chosen
                      WHERE chosen.session_id = s.id
                        AND chosen.seq = s.leaf_seq
                        AND s.leaf_chosen_at >= {newest}),
                    EXISTS (SELECT 1
                              FROM cf_agents_compactions
                             WHERE session_id = s.id),
                    {}
               FROM {from} AS s {JOIN_LAST_TURN}",
            SessionRow::columns(),
            has_memory_sql("s.id"),
        )
    }

    /// The session's line.
    pub(super) fn line(&self) -> Result<SessionLine> {
        let row = &self.session;
        let here = self.id.as_str();
        let damaged = |what| Error::corrupt_row(here, what);
        Ok(SessionLine {
            kind: LineKind::Session,
            format: Count(FORMAT),
            id: self.id.clone(),
            agent_id: Some(row.agent_id.clone()),
            name: row.name.clone(),
            parent_session_id: row
                .parent_session_id
                .clone()
                .and_then(|id| Id::parse(id).ok()),
            metadata: row
                .metadata
                .as_deref()
                .map(json::decode)
                .transpose()
                .map_err(|_| damaged("metadata"))?,
            tags: Tags::read(row.tags.as_deref(), here)?,
            created_at: FileTime::of(row.created_at),
            updated_at: FileTime::of(row.active_at),
            usage: SessionLineUsage {
                input_tokens: count(row.input_tokens),
                output_tokens: count(row.output_tokens),
                cost: row.cost,
                cached_input_tokens: Some(count(row.cached_input_tokens))
                    .filter(|count| count.0 > 0),
            },
            // Needed if the newest events are deleted before their page is read.
            seq_floor: count(self.newest_seq.max(self.seq_floor)),
            compaction: Some(read_journal(&self.id, self.compaction.as_deref())?.settings)
                .filter(|own| *own != OwnSettings::default())
                .map(SettingsPart::from),
            retention: Some(read_retention(row.retention.as_deref(), here)?)
                .filter(|own| *own != Retention::default()),
            pinned: Some(row.is_pinned).filter(|is_pinned| *is_pinned),
            learned_seq: self.learned_seq.map(Count),
        })
    }
}

impl FromRow<'_> for HeadRow {
    fn from_row(row: &Row) -> Result<Self> {
        let text = |column: usize| row.find_text(column).map(str::to_owned);
        Ok(Self {
            session: row.read()?,
            id: Id::parse(row.text(14)?.to_owned()).map_err(Error::storage)?,
            compaction: text(15),
            learned_seq: row.find_integer(16),
            seq_floor: row.integer(17)?,
            newest_seq: row.integer(18)?,
            last_cursor: row.integer(19)?,
            chosen_leaf: text(20),
            has_summaries: row.integer(21)? == 1,
            has_memory: row.integer(22)? == 1,
        })
    }
}
