//! Pages of a path as messages: the newest messages that fit, in root→leaf order, and the
//! cursor of the page above. A page is bounded in messages and in bytes, however long the
//! path is.

use super::page::{HistoryCursor, PageForm, PageQuery};
use super::piece::{NewestPiece, Piece, PieceEvent};
use super::read::read_path_row;
use super::view::{Message, MessageGatherer};
use crate::log::event::IS_RUN_MEMBER;
use crate::log::row::{EventRow, INLINE_COLUMNS};
use crate::log::tip::{LogTip, get_tip};
use crate::messages::tree::overlays::{Overlay, Overlays, find_covering};
use crate::messages::tree::path::{PathSegment, WalkStep, walk_path};
use base::columns::find_value;
use base::database::{Database, SqlText, SqlValue};
use base::error::Result;
use base::ids::Id;

/// Bytes of a page if the request has no other limit.
pub const DEFAULT_MAX_BYTES: i64 = 4 << 20;

/// A page in the form in which it was built.
pub enum MessagePage {
    /// Built by SQLite, including the text around the messages.
    Whole(SqlText),
    /// Pieces built by SQLite, newest first. The oldest may be messages that were read one
    /// by one.
    Pieces {
        texts: Vec<SqlText>,
        cursor: Option<HistoryCursor>,
        form: PageForm,
    },
    Read(ReadPage),
}

/// A page whose messages were read one by one.
pub struct ReadPage {
    /// Oldest first.
    messages: Vec<PageMessage>,
    /// The beginning of the page above; `None`: this page begins with the root.
    cursor: Option<HistoryCursor>,
    form: PageForm,
}

/// A message's JSON and its position.
struct PageMessage {
    json: String,
    first_seq: i64,
    parent_seq: i64,
}

impl From<Message> for PageMessage {
    fn from(message: Message) -> Self {
        Self {
            json: message.json,
            first_seq: message.first_seq,
            parent_seq: message.parent_seq,
        }
    }
}

impl MessagePage {
    /// The page's text.
    pub fn into_json(self) -> SqlText {
        match self {
            Self::Whole(page) => page,
            Self::Pieces {
                texts: pieces,
                cursor,
                form,
            } => {
                let mut texts = vec![form.head().into()];
                for (index, piece) in pieces.into_iter().rev().enumerate() {
                    if index > 0 {
                        texts.push(",".into());
                    }
                    texts.push(piece);
                }
                texts.push(form.tail(cursor).into());
                SqlText::concat(texts)
            }
            Self::Read(page) => page.into_json(),
        }
    }
}

impl ReadPage {
    /// The page's text.
    pub fn into_json(self) -> SqlText {
        let tail = self.form.tail(self.cursor);
        self.join(self.form.head(), &tail)
    }

    fn join(&self, head: &str, tail: &str) -> SqlText {
        let bytes: usize = self
            .messages
            .iter()
            .map(|message| message.json.len() + 1)
            .sum();
        let mut json = String::with_capacity(bytes + head.len() + tail.len());
        json.push_str(head);
        for (index, message) in self.messages.iter().enumerate() {
            if index > 0 {
                json.push(',');
            }
            json.push_str(&message.json);
        }
        json.push_str(tail);
        json.into()
    }

    /// The first events of the page's messages, newest first.
    pub fn first_seqs(&self) -> Vec<i64> {
        let seqs = self.messages.iter().rev().map(|message| message.first_seq);
        seqs.collect()
    }

    /// Whether there are messages above the page.
    pub fn is_cut(&self) -> bool {
        self.cursor.is_some()
    }

    /// Changes the JSON of each message, given with its first event.
    pub fn rewrite(&mut self, rewrite: &mut dyn FnMut(&mut String, i64)) {
        for message in &mut self.messages {
            rewrite(&mut message.json, message.first_seq);
        }
    }
}

/// The items found while walking up a path.
pub enum PathItem {
    Event(EventRow),
    /// A summary instead of the events that its overlay covers.
    Summary(Overlay),
}

/// Where a walk up a path starts.
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
    let mut overlays = Overlays::below(db, session_id, from_seq)?;
    // The first batch need not read the events that the next overlay covers.
    let before_overlay = from_seq - overlays.next_to_seq() + 1;
    let expected = expected.min(before_overlay);
    walk_path(
        db,
        session_id,
        from_seq,
        &INLINE_COLUMNS,
        expected,
        &mut |position, row| {
            if let Some(overlay) = overlays.take_ending_at(position.seq)? {
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

/// A session's newest page. `None`: the session is empty. If possible, one statement finds
/// the leaf and builds the page.
pub fn load_newest(
    db: &dyn Database,
    session_id: &Id,
    ask: PageQuery,
) -> Result<Option<MessagePage>> {
    let ask = ask.within_answer();
    let newest = Piece::find_newest(db, session_id, ask)?;
    if let NewestPiece::Piece(piece) = newest {
        return load_pieces(db, session_id, piece, ask).map(Some);
    }
    let LogTip {
        leaf, newest_seq, ..
    } = get_tip(db, session_id)?;
    let Some(leaf) = leaf else {
        return Ok(None);
    };
    let start = WalkStart::At(leaf.seq);
    let is_scattered = matches!(newest, NewestPiece::Scattered) && leaf.seq == newest_seq;
    if is_scattered {
        walk_page(db, session_id, start, ask).map(MessagePage::Read)
    } else {
        load_page(db, session_id, start, ask)
    }
    .map(Some)
}

/// The page whose newest message ends at `start`, bounded by the longest answer. SQLite
/// builds the page if its events qualify for the fast path.
pub fn load_page(
    db: &dyn Database,
    session_id: &Id,
    start: WalkStart,
    ask: PageQuery,
) -> Result<MessagePage> {
    let ask = ask.within_answer();
    if let WalkStart::At(from_seq) = start
        && let Some(first) = Piece::find(db, session_id, from_seq, ask, &[])?
    {
        return load_pieces(db, session_id, first, ask);
    }
    walk_page(db, session_id, start, ask).map(MessagePage::Read)
}

/// The page whose newest piece is `first`.
fn load_pieces(
    db: &dyn Database,
    session_id: &Id,
    first: Piece,
    ask: PageQuery,
) -> Result<MessagePage> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut left = ask;
    let mut next = Some(first);
    while let Some(piece) = next.take_if(|piece| piece.fits(left)) {
        left.limit -= piece.length();
        left.max_bytes -= piece.bytes();
        let above_seq = piece.above_seq;
        pieces.push(piece);
        if left.limit == 0 || above_seq == 0 {
            return Ok(MessagePage::of(pieces, None, ask.form));
        }
        next = Piece::find(db, session_id, above_seq, ask, &pieces)?;
    }
    let mut rest = PageReader::new(left, !pieces.is_empty());
    let mut above_seq = pieces.last().map_or(0, |piece| piece.above_seq);
    if let Some(piece) = next {
        above_seq = piece.above_seq;
        piece.walk(db, session_id, &mut |seq, parent_seq, event| {
            rest.add_item(match event {
                PieceEvent::Plain(json) => PageItem::Message(PageMessage {
                    json,
                    first_seq: seq,
                    parent_seq,
                }),
                PieceEvent::Other(row) => PageItem::Event(*row),
            })
        })?;
    }
    if above_seq != 0 {
        rest.walk(db, session_id, WalkStart::At(above_seq))?;
    }
    Ok(MessagePage::of(pieces, Some(rest.finish()?), ask.form))
}

/// Like [`load_page`], but reads event by event.
pub fn walk_page(
    db: &dyn Database,
    session_id: &Id,
    start: WalkStart,
    ask: PageQuery,
) -> Result<ReadPage> {
    let mut page = PageReader::new(ask.within_answer(), false);
    page.walk(db, session_id, start)?;
    page.finish()
}

impl MessagePage {
    /// `pieces`: built by SQLite, newest first. `above`: the page's messages above them.
    fn of(mut pieces: Vec<Piece>, above: Option<ReadPage>, form: PageForm) -> Self {
        let mut cursor = pieces.last().and_then(Piece::cursor);
        if let Some(page) = pieces.pop_if(|piece| piece.is_page) {
            return Self::Whole(page.text);
        }
        let mut texts: Vec<SqlText> = pieces.into_iter().map(|piece| piece.text).collect();
        if let Some(above) = above.filter(|above| !above.messages.is_empty()) {
            if texts.is_empty() {
                return Self::Read(above);
            }
            cursor = above.cursor;
            texts.push(above.join("", ""));
        }
        Self::Pieces {
            texts,
            cursor,
            form,
        }
    }
}

/// The items that a page is built from, newest first.
enum PageItem {
    Event(EventRow),
    Message(PageMessage),
}

/// Collects messages, newest first, while they fit in a page. The first message always
/// fits, so that a message longer than a page can still be read.
struct PageReader {
    gatherer: MessageGatherer,
    messages: Vec<PageMessage>,
    bytes: usize,
    ask: PageQuery,
    /// A message didn't fit.
    is_full: bool,
    /// Whether the page already has newer messages, built by SQLite.
    has_messages: bool,
}

impl PageReader {
    fn new(ask: PageQuery, has_messages: bool) -> Self {
        Self {
            gatherer: MessageGatherer::default(),
            messages: Vec::new(),
            bytes: 0,
            ask,
            is_full: false,
            has_messages,
        }
    }

    /// Continues up the path, unless the page is complete.
    fn walk(&mut self, db: &dyn Database, session_id: &Id, start: WalkStart) -> Result<()> {
        if self.is_done() {
            return Ok(());
        }
        let expected = self.ask.limit.saturating_sub(self.messages.len()).max(1);
        walk_items(db, session_id, start, expected as i64, &mut |item| {
            self.add_item(match item {
                PathItem::Event(row) => PageItem::Event(row),
                PathItem::Summary(overlay) => {
                    PageItem::Message(Message::from_overlay(&overlay)?.into())
                }
            })
        })
    }

    fn add_item(&mut self, item: PageItem) -> Result<WalkStep> {
        let messages = match item {
            PageItem::Event(row) => self
                .gatherer
                .add(row)?
                .map(|message| message.map(Into::into)),
            PageItem::Message(message) => [self.gatherer.finish()?.map(Into::into), Some(message)],
        };
        messages
            .into_iter()
            .flatten()
            .for_each(|message| self.add(message));
        Ok(if self.is_done() {
            WalkStep::Stop
        } else {
            WalkStep::On
        })
    }

    fn is_done(&self) -> bool {
        self.is_full || (self.messages.len() >= self.ask.limit && !self.gatherer.is_within_run())
    }

    fn add(&mut self, message: PageMessage) {
        let fits = self.messages.len() < self.ask.limit
            && self.bytes + message.json.len() <= self.ask.max_bytes;
        if self.is_full || (!fits && self.has_messages) {
            self.is_full = true;
            return;
        }
        self.has_messages = true;
        self.bytes += message.json.len();
        self.messages.push(message);
    }

    fn finish(mut self) -> Result<ReadPage> {
        if let Some(message) = self.gatherer.finish()? {
            self.add(message.into());
        }
        let mut messages = self.messages;
        let oldest = messages.last();
        let cursor =
            oldest.and_then(|oldest| HistoryCursor::above(oldest.first_seq, oldest.parent_seq));
        messages.reverse();
        Ok(ReadPage {
            messages,
            cursor,
            form: self.ask.form,
        })
    }
}

/// How many events of a path one statement counts: it returns one character each.
const COUNTED_AT_ONCE: i64 = 1 << 20;

/// Counts the messages of a path, given its segments. Reads one row per event: each event
/// is a message by itself, or continues the run of the event directly before it. In the
/// result, `m` is an event of a run, and `s` is an event that splits a run.
pub fn count_messages(db: &dyn Database, session_id: &Id, segments: &[PathSegment]) -> Result<i64> {
    let sql = format!(
        "SELECT group_concat(kind, '')
           FROM (SELECT iif(e.splits_run, 's', iif({IS_RUN_MEMBER} = 1, 'm', '-')) AS kind
                   FROM cf_agents_events AS e
                  WHERE e.session_id = +?1
                    AND e.seq >= +?2
                    AND e.seq <= +?3
                  ORDER BY e.seq)"
    );
    let mut length = 0;
    let mut is_within_run = false;
    for segment in segments {
        let mut from_seq = segment.from_seq;
        while from_seq <= segment.to_seq {
            let to_seq = segment.to_seq.min(from_seq + COUNTED_AT_ONCE - 1);
            let params: [SqlValue; 3] =
                [session_id.as_str().into(), from_seq.into(), to_seq.into()];
            let kinds: Option<Option<String>> = find_value(db, &sql, &params)?;
            for kind in kinds.flatten().unwrap_or_default().bytes() {
                length += i64::from(!(kind == b'm' && is_within_run));
                is_within_run = kind != b'-';
            }
            from_seq = to_seq + 1;
        }
    }
    Ok(length)
}
