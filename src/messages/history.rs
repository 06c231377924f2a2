//! Pages of a path as messages: the newest messages that fit, in root→leaf order, and
//! the cursor of the page above. A page is bounded in messages and in bytes, whatever
//! the path's length.

use super::read::read_path_row;
use super::run::find_run_event;
use super::view::{Message, MessageGatherer};
use crate::base::budget::MAX_ANSWER_BYTES;
use crate::base::columns::find_value;
use crate::base::database::{Database, SqlValue};
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::log::row::{EventRow, STARTS_MESSAGE, ShortRow};
use crate::messages::tree::overlays::{Overlay, Overlays, find_covering};
use crate::messages::tree::path::{PathSegment, WalkStep, walk_path};

/// Bytes of a page if the request has no other limit.
pub const DEFAULT_MAX_BYTES: i64 = 4 << 20;

pub struct MessagePage {
    /// Oldest first.
    pub messages: Vec<Message>,
    /// Where the page above begins; `None`: this page begins with the root.
    pub cursor: Option<HistoryCursor>,
}

/// The oldest event of a page, and that event's parent. If either is deleted before
/// the next request, the other still leads to the next page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistoryCursor {
    first_seq: i64,
    parent_seq: i64,
}

impl HistoryCursor {
    pub fn parse(text: &str) -> Option<Self> {
        let (first_seq, parent_seq) = text.split_once('-')?;
        let cursor = Self {
            first_seq: first_seq.parse().ok()?,
            parent_seq: parent_seq.parse().ok()?,
        };
        (0 < cursor.parent_seq && cursor.parent_seq < cursor.first_seq).then_some(cursor)
    }

    fn render(self) -> String {
        format!("{}-{}", self.first_seq, self.parent_seq)
    }

    fn above(message: &Message) -> Option<Self> {
        (message.parent_seq != 0).then_some(Self {
            first_seq: message.first_seq,
            parent_seq: message.parent_seq,
        })
    }

    /// The last event of the page above; 0: there is no page above.
    pub fn resolve(self, db: &dyn Database, session_id: &Id) -> Result<i64> {
        if find_run_event(db, session_id, self.parent_seq)?.is_some() {
            return Ok(self.parent_seq);
        }
        match find_run_event(db, session_id, self.first_seq)? {
            Some(row) => Ok(row.parent_seq),
            None => Err(Error::invalid(
                "before",
                "The messages around `before` were deleted. Read the history again from its end.",
            )),
        }
    }
}

impl MessagePage {
    pub fn json(&self) -> String {
        let messages: Vec<&str> = self
            .messages
            .iter()
            .map(|message| message.json.as_str())
            .collect();
        let cursor = self.cursor.map_or_else(
            || "null".to_owned(),
            |cursor| format!("\"{}\"", cursor.render()),
        );
        let tail = format!(
            r#"],"truncated":{},"cursor":{cursor}}}"#,
            self.cursor.is_some()
        );
        let bytes: usize = messages.iter().map(|message| message.len() + 1).sum();
        let mut json = String::with_capacity(bytes + tail.len() + 16);
        json.push_str(r#"{"messages":["#);
        for (index, message) in messages.into_iter().enumerate() {
            if index > 0 {
                json.push(',');
            }
            json.push_str(message);
        }
        json.push_str(&tail);
        json
    }
}

/// What a walk up a path finds.
pub enum PathItem {
    Event(EventRow),
    /// A summary in place of the events that its overlay covers.
    Summary(Overlay),
}

/// Where a walk up a path begins.
pub enum WalkStart {
    At(i64),
    /// At an overlay, the first item. The walk continues above the overlay.
    With(Overlay),
}

impl WalkStart {
    /// Starts at `seq`, or at the overlay that hides `seq` on the path to `leaf_seq`.
    pub fn within(
        db: &dyn Database,
        session_id: &Id,
        seq: i64,
        leaf_seq: Option<i64>,
    ) -> Result<Self> {
        let covering = match leaf_seq {
            Some(leaf_seq) => find_covering(db, session_id, seq, leaf_seq)?,
            None => None,
        };
        Ok(covering.map_or(WalkStart::At(seq), WalkStart::With))
    }
}

/// The items of a path, bodies included, newest first.
pub fn walk_items(
    db: &dyn Database,
    session_id: &Id,
    start: WalkStart,
    expected: i64,
    visit: &mut dyn FnMut(PathItem) -> Result<WalkStep>,
) -> Result<()> {
    let from_seq = match start {
        WalkStart::At(seq) => seq,
        WalkStart::With(overlay) => {
            let above_seq = overlay.range.above_seq;
            let is_over = matches!(visit(PathItem::Summary(overlay))?, WalkStep::Stop);
            if is_over || above_seq == 0 {
                return Ok(());
            }
            above_seq
        }
    };
    let columns = ShortRow::columns();
    let mut overlays = Overlays::below(db, session_id, from_seq)?;
    // The first batch need not read the events that the next overlay covers.
    let before_overlay = from_seq - overlays.next_to_seq() + 1;
    let expected = expected.min(before_overlay);
    walk_path(
        db,
        session_id,
        from_seq,
        &columns,
        expected,
        &mut |place, row| {
            if let Some(overlay) = overlays.take_ending_at(place.seq)? {
                let above_seq = overlay.range.above_seq;
                return Ok(match visit(PathItem::Summary(overlay))? {
                    WalkStep::Stop => WalkStep::Stop,
                    WalkStep::On | WalkStep::Jump(_) => WalkStep::Jump(above_seq),
                });
            }
            visit(PathItem::Event(read_path_row(db, session_id, row)?))
        },
    )
}

/// The page whose newest message ends at `start`. `max_bytes` can't make the page
/// longer than an answer may be.
pub fn load_page(
    db: &dyn Database,
    session_id: &Id,
    start: WalkStart,
    limit: usize,
    max_bytes: usize,
) -> Result<MessagePage> {
    let mut gatherer = MessageGatherer::default();
    let mut page = PageBuilder {
        messages: Vec::new(),
        bytes: 0,
        limit,
        max_bytes: max_bytes.min(MAX_ANSWER_BYTES),
        is_full: false,
    };
    walk_items(db, session_id, start, limit as i64, &mut |item| {
        let messages = match item {
            PathItem::Event(row) => gatherer.take(row)?,
            PathItem::Summary(overlay) => {
                [gatherer.finish()?, Some(Message::from_overlay(&overlay)?)]
            }
        };
        for message in messages.into_iter().flatten() {
            page.add(message);
        }
        let is_full = page.is_full || (page.messages.len() >= limit && !gatherer.is_within_run());
        Ok(if is_full {
            WalkStep::Stop
        } else {
            WalkStep::On
        })
    })?;
    if let Some(message) = gatherer.finish()? {
        page.add(message);
    }
    let mut messages = page.messages;
    let cursor = messages.last().and_then(HistoryCursor::above);
    messages.reverse();
    Ok(MessagePage { messages, cursor })
}

/// Takes messages, newest first, while they fit a page. The first message always fits,
/// so that a message longer than a page can still be read.
struct PageBuilder {
    messages: Vec<Message>,
    bytes: usize,
    limit: usize,
    max_bytes: usize,
    is_full: bool,
}

impl PageBuilder {
    fn add(&mut self, message: Message) {
        let fits =
            self.messages.len() < self.limit && self.bytes + message.json.len() <= self.max_bytes;
        if self.is_full || !(fits || self.messages.is_empty()) {
            self.is_full = true;
            return;
        }
        self.bytes += message.json.len();
        self.messages.push(message);
    }
}

/// How many messages a path has. `segments` are the path's segments.
pub fn count_messages(db: &dyn Database, session_id: &Id, segments: &[PathSegment]) -> Result<i64> {
    let sql = format!(
        "SELECT count(*)
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.seq BETWEEN ?2 AND ?3
            AND {STARTS_MESSAGE}"
    );
    let mut length = 0;
    for segment in segments {
        let params: [SqlValue; 3] = [
            session_id.as_str().into(),
            segment.from_seq.into(),
            segment.to_seq.into(),
        ];
        length += find_value(db, &sql, &params)?.unwrap_or(0);
    }
    Ok(length)
}
