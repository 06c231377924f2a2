//! What the export of a session reads from the session's row before it begins.

use super::lines::{
    FORMAT, FileTime, LineKind, SessionLine, SessionLineUsage, SettingsPart, count,
};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, Count};
use base::row;
use base::tags::Tags;
use context::compaction::journal::read_journal;
use context::compaction::settings::OwnSettings;
use conversation::log::heads::{CHOSEN_LEAF, NEWEST_SEQ};
use conversation::log::sessions::ACTIVE_AT;
use conversation::messages::tree::overlays::HAS_OVERLAYS;
use conversation::session::changes::LAST_CURSOR;
use conversation::session::last_turns::{
    USED_CACHED_TOKENS, USED_COST, USED_INPUT_TOKENS, USED_OUTPUT_TOKENS,
};
use memory::whole_rows::has_memory_sql;
use store::retention::{Retention, read_retention};

row! {
    /// A session `s` with its last turn.
    pub(super) struct SessionRow {
        pub(super) number: i64 = "s.number",
        pub(super) agent_id: String = "s.agent_id",
        pub(super) name: Option<String> = "s.name",
        pub(super) parent_session_id: Option<String> = "s.parent_session_id",
        pub(super) metadata: Option<String> = "s.metadata",
        pub(super) created_at: i64 = "s.created_at",
        pub(super) active_at: i64 = ACTIVE_AT,
        pub(super) input_tokens: i64 = USED_INPUT_TOKENS,
        pub(super) output_tokens: i64 = USED_OUTPUT_TOKENS,
        pub(super) cost: f64 = USED_COST,
        pub(super) cached_input_tokens: i64 = USED_CACHED_TOKENS,
        pub(super) retention: Option<String> = "s.retention",
        pub(super) is_pinned: bool = "s.pinned",
        pub(super) tags: Option<String> = "s.tags",
    }
}

/// Everything that the export of a session must know before it begins.
pub(super) struct HeadRow {
    pub(super) session: SessionRow,
    pub(super) id: Id,
    pub(super) compaction: Option<String>,
    pub(super) learned_seq: Option<i64>,
    pub(super) seq_floor: i64,
    pub(super) newest_seq: i64,
    pub(super) last_cursor: i64,
    /// The event that a caller chose as the leaf, and that still is.
    pub(super) chosen_leaf: Option<String>,
    pub(super) has_summaries: bool,
    pub(super) has_memory: bool,
}

row! {
    pub(super) for HeadRow() {
        session: SessionRow = SessionRow::COLUMNS,
        id: String = "s.id",
        compaction: Option<String> = "s.compaction",
        learned_seq: Option<i64> = "nullif(s.learned_seq, 0)",
        seq_floor: i64 = "s.seq_floor",
        newest_seq: i64 = NEWEST_SEQ,
        last_cursor: i64 = LAST_CURSOR,
        chosen_leaf: Option<String> = CHOSEN_LEAF,
        has_summaries: bool = HAS_OVERLAYS,
        has_memory: bool = has_memory_sql("s.id"),
    }
    Ok(Self {
        session,
        id: Id::parse(id).map_err(Error::storage)?,
        compaction,
        learned_seq,
        seq_floor,
        newest_seq,
        last_cursor,
        chosen_leaf,
        has_summaries,
        has_memory,
    })
}

impl HeadRow {
    /// The session's line.
    pub(super) fn line(&self) -> Result<SessionLine> {
        let row = &self.session;
        let session_id = self.id.as_str();
        let damaged = |what| Error::corrupt_row(session_id, what);
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
            tags: Tags::read(row.tags.as_deref(), session_id)?,
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
            retention: Some(read_retention(row.retention.as_deref(), session_id)?)
                .filter(|own| *own != Retention::default()),
            pinned: Some(row.is_pinned).filter(|is_pinned| *is_pinned),
            learned_seq: self.learned_seq.map(Count),
        })
    }
}
