//! Reads the messages of a conversation that could be sent to a model, newest first, and
//! selects those that are sent.

use super::budget::{MAX_SHARE, WindowPosition, WindowSteps, short_size, size_of};
use super::documents::is_document;
use super::fit::{ContextCapacity, Cut, Group, Groups, Size};
use super::media::{MessageCount, media_cutoff, name_files, name_urls};
use super::message::{from_overlay, from_row};
use super::squeeze::cut_to;
use super::truncate::{UNTRUNCATED_MESSAGES, cutoff_of, shorten_message};
use super::window::{NumberedMessage, close_pairs};
use base::action::Role;
use base::error::Result;
use conversation::messages::history::PathItem;
use conversation::messages::tree::overlays::{EventRange, Overlay};
use conversation::messages::tree::path::PathSegment;
use memory::skills::loaded::LoadedSkill;
use models::message::ContextMessage;

/// The most bytes of files in older messages that are sent, if the window has capacity:
/// every turn uploads them again.
const MAX_OLD_MEDIA_BYTES: usize = 1 << 20;

/// A document is counted separately; its placeholder in the conversation takes a line at
/// most.
const DOCUMENT_SIZE: Size = Size {
    tokens: 20,
    bytes: 100,
    events: 1,
};

/// The messages that were read so far, newest first.
pub struct Reading<'a> {
    capacity: ContextCapacity,
    documents: &'a [LoadedSkill],
    /// `None`: the window moves in fixed steps.
    position: Option<WindowPosition>,
    /// Messages up to these events are truncated, or have their files replaced by names, or
    /// are dropped.
    line: WindowPosition,
    keep_media: usize,
    items: Vec<(i64, Vec<ContextMessage>)>,
    count: MessageCount,
    /// The number of messages that were read, their size, and their minimum size.
    read: usize,
    whole: Size,
    pub least: Size,
    /// They don't fit unchanged.
    is_full: bool,
    old_media_bytes: usize,
    /// The newest summary, and the events that it replaces.
    pub summary: Option<EventRange>,
    /// The event above those that were read; 0: there is none.
    pub above_seq: i64,
    found_start: bool,
}

/// The messages that are sent.
pub struct Chosen {
    pub messages: Vec<NumberedMessage>,
    /// The window, if it moved.
    pub moved: Option<WindowPosition>,
    /// The first event of the window. `None`: the window starts at the root of the path.
    pub first_seq: Option<i64>,
    summary: Option<EventRange>,
    /// There is a user's message before the window.
    has_question: bool,
}

impl<'a> Reading<'a> {
    pub fn new(
        capacity: ContextCapacity,
        documents: &'a [LoadedSkill],
        steps: WindowSteps,
        keep_media: usize,
    ) -> Self {
        let position = match steps {
            WindowSteps::Positioned(position) => Some(position),
            WindowSteps::Round => None,
        };
        Self {
            capacity,
            documents,
            position,
            line: position.unwrap_or_default(),
            keep_media,
            items: Vec::new(),
            count: MessageCount::default(),
            read: 0,
            whole: Size::default(),
            least: Size::default(),
            is_full: false,
            old_media_bytes: 0,
            summary: None,
            above_seq: 0,
            found_start: false,
        }
    }

    pub fn count(&self) -> usize {
        self.items.len()
    }

    /// Whether the window's start was reached, or more was read than fits.
    pub fn is_over(&self) -> bool {
        self.found_start || !self.least.fits(self.capacity.most)
    }

    /// Adds the next item up the path.
    pub fn add_item(&mut self, item: PathItem) -> Result<()> {
        let (seq, messages) = match &item {
            PathItem::Event(row) => {
                self.above_seq = row.parent_seq;
                (row.seq, from_row(row)?)
            }
            PathItem::Summary(overlay) => {
                self.above_seq = overlay.range.above_seq;
                self.summary = self.summary.or(Some(overlay.range));
                (overlay.range.to_seq, vec![from_overlay(overlay)])
            }
        };
        drop(item);
        self.add(seq, messages);
        let from_seq = self.position.map_or(0, |position| position.from_seq);
        self.found_start |= from_seq > 0 && seq == from_seq;
        Ok(())
    }

    /// Adds a summary from further up the path.
    pub fn pin(&mut self, overlay: &Overlay) {
        self.summary = Some(overlay.range);
        self.add(overlay.range.to_seq, vec![from_overlay(overlay)]);
    }

    /// Adds the messages of one event.
    pub fn add(&mut self, seq: i64, mut messages: Vec<ContextMessage>) {
        for message in messages.iter_mut().rev() {
            self.measure(seq, message);
        }
        self.items.push((seq, messages));
    }

    /// Measures a message. A message that won't be sent unchanged is shortened here, so
    /// that only texts that may be sent are kept in memory.
    fn measure(&mut self, seq: i64, message: &mut ContextMessage) {
        let is_older = self.read >= UNTRUNCATED_MESSAGES;
        if self.read == UNTRUNCATED_MESSAGES && self.position.is_none() {
            self.line.short_seq = cutoff_of(seq);
        }
        self.read += 1;
        let has_old_files = self.count.add(message.role) > self.keep_media;
        // A stored window moves if it is full, and then shortens all older messages.
        let moves = self.is_full && self.position.is_some();
        if seq <= self.line.media_seq || (has_old_files && (moves || self.position.is_none())) {
            name_files(message);
        } else if has_old_files {
            let bytes = message.files.iter().map(|file| file.url.len());
            self.old_media_bytes += bytes.sum::<usize>();
        }
        if is_document(message, self.documents) {
            self.whole = self.whole + DOCUMENT_SIZE;
            self.least = self.least + DOCUMENT_SIZE;
            return;
        }
        if message.role == Role::Tool {
            name_urls(&mut message.content);
        }
        if seq <= self.line.short_seq || (moves && is_older) {
            shorten_message(message);
        } else if seq <= self.line.cut_seq {
            cut_to(message, self.line.cut_tokens);
        }
        let size = size_of(message);
        self.whole = self.whole + size;
        self.is_full |= !self.whole.fits(self.capacity.most);
        self.least = self.least
            + match (is_older, self.position) {
                (true, Some(_)) => short_size(message, has_old_files),
                (true, None) => size,
                (false, _) => Size {
                    tokens: size.tokens.min(self.share()),
                    ..size
                },
            };
    }

    /// The most tokens of one message in a full window.
    fn share(&self) -> i64 {
        self.capacity.most.tokens / MAX_SHARE
    }

    /// Selects the messages that are sent.
    pub fn choose(mut self) -> Chosen {
        let mut numbered = Vec::new();
        while let Some((seq, messages)) = self.items.pop() {
            let messages = messages.into_iter();
            numbered.extend(messages.map(|message| NumberedMessage { seq, message }));
        }
        let mut numbered = close_pairs(numbered);
        let newest = numbered.len().saturating_sub(UNTRUNCATED_MESSAGES);
        let mut grouped = self.group(&numbered, newest, self.line.media_seq);
        let mut moved = None;
        let cut = match self.position {
            None => {
                let shortest = Cut {
                    start: grouped.newest,
                    short: 0,
                };
                if !grouped.groups().total(shortest).fits(self.capacity.most) {
                    self.cut_long(&mut numbered);
                    grouped = self.group(&numbered, newest, self.line.media_seq);
                }
                grouped.groups().fit_round(0, &self.capacity)
            }
            Some(position) => {
                let start = if self.found_start {
                    grouped
                        .list
                        .partition_point(|group| group.seq < position.from_seq)
                } else {
                    0
                };
                let before = Cut { start, short: 0 };
                let is_full =
                    self.is_full || !grouped.groups().total(before).fits(self.capacity.most);
                let media_seq = media_cutoff(numbered.iter().rev(), self.keep_media);
                if is_full {
                    self.cut_long(&mut numbered);
                    grouped = self.group(&numbered, newest, media_seq.max(position.media_seq));
                    let cut = grouped.groups().shrink_to_fit(before, &self.capacity);
                    let is_whole = cut.start == 0 && self.above_seq == 0;
                    let start = self.find_first(&grouped, cut).filter(|_| !is_whole);
                    let short = grouped.last_seq_before(&numbered, cut.short);
                    moved = Some(WindowPosition {
                        from_seq: start.unwrap_or(0),
                        short_seq: short.max(position.short_seq),
                        media_seq: media_seq.max(position.media_seq),
                        cut_seq: numbered.last().map_or(0, |numbered| numbered.seq),
                        cut_tokens: self.share(),
                    });
                    cut
                } else {
                    if self.old_media_bytes > MAX_OLD_MEDIA_BYTES {
                        moved = Some(WindowPosition {
                            media_seq,
                            ..position
                        });
                    }
                    before
                }
            }
        };
        let line = moved.unwrap_or(self.line);
        let pinned = grouped.pinned.clone();
        let begins_late = cut.start > 0 || self.above_seq > 0;
        let first = self.find_first(&grouped, cut).filter(|_| begins_late);
        let has_question = pinned.iter().any(|group_index| {
            let group = grouped.list.get(*group_index);
            *group_index < cut.start && group.is_some_and(|group| group.is_users)
        });
        let groups = grouped.group_indexes;
        let mut sent = Vec::with_capacity(numbered.len());
        for (mut numbered, group_index) in numbered.into_iter().zip(groups) {
            if group_index < cut.start && !pinned.contains(&group_index) {
                continue;
            }
            if group_index < cut.short && !is_document(&numbered.message, self.documents) {
                shorten_message(&mut numbered.message);
            }
            if numbered.seq <= line.media_seq {
                name_files(&mut numbered.message);
            }
            sent.push(numbered);
        }
        Chosen {
            messages: sent,
            moved,
            first_seq: first,
            summary: self.summary,
            has_question,
        }
    }

    /// The first event of the window, not counting a leading summary.
    fn find_first(&self, grouped: &Grouped, cut: Cut) -> Option<i64> {
        let summary_seq = self.summary.map(|range| range.to_seq);
        let groups = grouped.list.iter().skip(cut.start);
        let mut seqs = groups.map(|group| group.seq);
        seqs.find(|seq| Some(*seq) != summary_seq)
    }

    /// Cuts every message that exceeds its share of the window.
    fn cut_long(&self, numbered: &mut [NumberedMessage]) {
        for numbered in numbered {
            if !is_document(&numbered.message, self.documents) {
                cut_to(&mut numbered.message, self.share());
            }
        }
    }

    /// `newest`: the index of the first message that is not truncated.
    fn group(&self, numbered: &[NumberedMessage], newest: usize, media_seq: i64) -> Grouped {
        let mut grouped = Grouped::default();
        let mut question = None;
        for (index, numbered) in numbered.iter().enumerate() {
            let message = &numbered.message;
            if message.role != Role::Tool || grouped.list.is_empty() {
                grouped.list.push(Group {
                    seq: numbered.seq,
                    is_users: message.role == Role::User,
                    ..Group::default()
                });
            }
            let group_index = grouped.list.len() - 1;
            grouped.group_indexes.push(group_index);
            if index <= newest {
                grouped.newest = group_index;
            }
            if message.role == Role::User {
                question = Some(group_index);
            }
            let is_summary = self
                .summary
                .is_some_and(|range| range.to_seq == numbered.seq);
            if is_summary {
                grouped.pinned.push(group_index);
            }
            let (whole, short) = if is_document(message, self.documents) {
                (DOCUMENT_SIZE, DOCUMENT_SIZE)
            } else {
                (
                    size_of(message),
                    short_size(message, numbered.seq <= media_seq),
                )
            };
            if let Some(group) = grouped.list.last_mut() {
                group.whole = group.whole + whole;
                group.short = group.short + short;
            }
        }
        grouped.pinned.extend(question);
        grouped
    }
}

#[derive(Default)]
struct Grouped {
    list: Vec<Group>,
    /// The index of each message's group.
    group_indexes: Vec<usize>,
    pinned: Vec<usize>,
    newest: usize,
}

impl Grouped {
    fn groups(&self) -> Groups<'_> {
        Groups {
            list: &self.list,
            pinned: self.pinned.clone(),
            newest: self.newest,
        }
    }

    /// The newest event of the groups before this one; 0: there is none.
    fn last_seq_before(&self, numbered: &[NumberedMessage], group: usize) -> i64 {
        let end = self
            .group_indexes
            .partition_point(|group_index| *group_index < group);
        let last = end.checked_sub(1).and_then(|last| numbered.get(last));
        last.map_or(0, |numbered| numbered.seq)
    }
}

impl Chosen {
    /// The approximate number of the path's events that are neither sent nor covered by the
    /// sent summary. Deleted events are included. `path` is the path's segments.
    pub fn count_hidden(&self, path: &[PathSegment]) -> i64 {
        let Some(first_seq) = self.first_seq else {
            return 0;
        };
        let count = |from: i64, to: i64| (to - from + 1).max(0);
        let hidden = path.iter().map(|segment| {
            let to_seq = segment.to_seq.min(first_seq - 1);
            let covered = self.summary.map_or(0, |range| {
                count(
                    segment.from_seq.max(range.from_seq),
                    to_seq.min(range.to_seq),
                )
            });
            count(segment.from_seq, to_seq) - covered
        });
        hidden.sum::<i64>() - i64::from(self.has_question)
    }
}
