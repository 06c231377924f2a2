//! Pages of finished turns, newest first.
//!
//! The turns of one session are in the order of its log, so a page follows the events that ended
//! them. No table orders the turns of all sessions by time: a page over all sessions opens those
//! that were written to last, and always shows the newest of their turns. Its cursor has the
//! position in each session.

use std::collections::BTreeSet;

use super::show::{CompletedTurn, RecordedTurnPosition, TurnName};
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::MAX_INTEGER;
use base::packed::{pack, unpack};
use conversation::log::session_lookup::{find_id_of, load_at, load_namesakes};
use conversation::log::turn_ends::{NextTurn, TurnWalk, find_turn_end};
use conversation::session::activity::{SessionPosition, load_positions};
use conversation::session::stored_turns::{StoredTurn, load_of_session};

/// The most events that a page scans where no link leads from turn to turn.
const MAX_SCANNED_EVENTS: i64 = 1_000;

/// The most sessions whose position a cursor has. If this many are open, their turns come before
/// those of sessions that were written to earlier.
const MAX_OPEN: usize = 64;

/// The most sessions that one page opens.
const MAX_OPENED: usize = 256;

/// The most sessions whose id begins with the part of it that a turn's id contains.
const MAX_NAMESAKES: i64 = 8;

/// A page of turns.
#[derive(Default)]
pub struct TurnPage {
    pub turns: Vec<CompletedTurn>,
    /// The beginning of the next page; `None`: there is none.
    pub cursor: Option<String>,
}

/// The turns of one session from some position on.
struct SessionTurns {
    session_id: Id,
    /// The session's row.
    number: i64,
    walk: TurnWalk,
    /// The turns that have rows and may follow, the newest last.
    stored: Vec<StoredTurn>,
    /// The next turn in the log. `None`: it was not looked up yet.
    next: Option<NextTurn>,
}

/// The next turn of a session.
enum Next {
    Turn(Box<CompletedTurn>, RecordedTurnPosition),
    Nothing,
    Pause,
}

impl SessionTurns {
    /// `before`: the last turn that was shown.
    fn open(
        db: &dyn Database,
        (session_id, number): (&Id, i64),
        before: Option<RecordedTurnPosition>,
    ) -> Result<Self> {
        let mut stored = load_of_session(db, session_id)?;
        stored.reverse();
        stored.retain(|one| before.is_none_or(|before| position_of(one) < before));
        Ok(Self {
            session_id: session_id.clone(),
            number,
            walk: match before {
                Some(before) => TurnWalk::below(db, session_id, before.seq)?,
                None => TurnWalk::new(db, session_id)?,
            },
            stored,
            next: None,
        })
    }

    fn next(&mut self, db: &dyn Database, budget: &mut i64) -> Result<Next> {
        let found = match self.next.take() {
            Some(found) => found,
            None => self.walk.next(db, budget)?,
        };
        let ended = match &found {
            NextTurn::Turn(end) => Some(end.seq),
            NextTurn::Nothing => None,
            // The turns above are known.
            NextTurn::Pause => Some(self.walk.position() - 1),
        };
        // The event that ended a failed turn has already reported it.
        let is_reported = |one: &StoredTurn| one.has_answer && Some(one.seq) == ended;
        self.stored.retain(|one| !is_reported(one));
        if let Some(stored) = self
            .stored
            .pop_if(|one| ended.is_none_or(|seq| one.seq > seq))
        {
            self.next = Some(found);
            let position = position_of(&stored);
            return Ok(Next::Turn(
                Box::new(CompletedTurn::of_stored(&stored)),
                position,
            ));
        }
        Ok(match found {
            NextTurn::Turn(end) => {
                let turn = CompletedTurn::of_event(self.session_id.as_str(), &end);
                let position = RecordedTurnPosition {
                    seq: end.seq,
                    ended_at: turn.ended_at,
                };
                Next::Turn(Box::new(turn), position)
            }
            NextTurn::Nothing => Next::Nothing,
            NextTurn::Pause => Next::Pause,
        })
    }

    /// Where a later page continues if this one pauses.
    fn position(&self, last_shown: Option<RecordedTurnPosition>) -> RecordedTurnPosition {
        let below = self.walk.position();
        let reached = RecordedTurnPosition {
            seq: below,
            ended_at: 0,
        };
        last_shown.map_or(reached, |last_shown| last_shown.min(reached))
    }
}

pub(super) fn position_of(turn: &StoredTurn) -> RecordedTurnPosition {
    RecordedTurnPosition {
        seq: turn.seq,
        ended_at: turn.ended_at,
    }
}

/// The turns of one session. `cursor`: from the previous page.
pub fn load_of_one(
    db: &dyn Database,
    session_id: &Id,
    cursor: Option<&str>,
    limit: usize,
) -> Result<TurnPage> {
    let before = cursor.map(parse_position).transpose()?;
    let mut turns = SessionTurns::open(db, (session_id, 0), before)?;
    let mut page = TurnPage::default();
    let mut budget = MAX_SCANNED_EVENTS;
    let mut last_shown = before;
    loop {
        match turns.next(db, &mut budget)? {
            Next::Nothing => return Ok(page),
            Next::Pause => {
                page.cursor = Some(render_position(turns.position(last_shown)));
                return Ok(page);
            }
            Next::Turn(turn, position) => {
                if page.turns.len() == limit {
                    page.cursor = last_shown.map(render_position);
                    return Ok(page);
                }
                page.turns.push(*turn);
                last_shown = Some(position);
            }
        }
    }
}

/// One turn. `None`: there is none with this name.
pub fn find_turn(
    db: &dyn Database,
    named: &TurnName,
    session_id: Option<&Id>,
) -> Result<Option<CompletedTurn>> {
    let sessions = match session_id {
        Some(id) => vec![id.clone()],
        None if !named.may_be_cut => vec![named.session.clone()],
        None => load_namesakes(db, &named.session, MAX_NAMESAKES)?,
    };
    for id in &sessions {
        if !id.as_str().starts_with(named.session.as_str()) {
            continue;
        }
        if let Some(end) = find_turn_end(db, id, named.position.seq)? {
            let turn = CompletedTurn::of_event(id.as_str(), &end);
            if turn.ended_at == named.position.ended_at {
                return Ok(Some(turn));
            }
        }
        let stored = load_of_session(db, id)?;
        if let Some(stored) = stored.iter().find(|one| position_of(one) == named.position) {
            return Ok(Some(CompletedTurn::of_stored(stored)));
        }
    }
    Ok(None)
}

pub(super) fn render_position(position: RecordedTurnPosition) -> String {
    format!("{}.{}", position.seq, position.ended_at)
}

pub(super) fn parse_position(cursor: &str) -> Result<RecordedTurnPosition> {
    let (seq, ended_at) = cursor.split_once('.').ok_or_else(bad_cursor)?;
    let number = |text: &str| text.parse::<i64>().map_err(|_| bad_cursor());
    Ok(RecordedTurnPosition {
        seq: number(seq)?.clamp(0, MAX_INTEGER),
        ended_at: number(ended_at)?,
    })
}

pub(super) fn bad_cursor() -> Error {
    Error::invalid(
        "cursor",
        "`cursor` must be the `cursor` of an earlier page of the same request.",
    )
}

/// Where a page over all sessions ended.
#[derive(Debug, Default, PartialEq)]
struct AllSessionsCursor {
    /// When the first page was requested.
    began_at: i64,
    /// When the last turn that was shown ended.
    shown_at: i64,
    /// The last session that was opened: the time of its last write, and its number.
    opened: (i64, i64),
    /// The numbers of sessions with further turns, and the last turn of each that was shown.
    open: Vec<(i64, RecordedTurnPosition)>,
}

impl AllSessionsCursor {
    fn render(&self) -> String {
        let mut numbers = vec![self.began_at, self.shown_at, self.opened.0, self.opened.1];
        for (number, position) in &self.open {
            numbers.extend([*number, position.seq, position.ended_at]);
        }
        pack(&numbers)
    }

    fn parse(cursor: &str) -> Result<Self> {
        let numbers = unpack(cursor, 4 + 3 * MAX_OPEN).ok_or_else(bad_cursor)?;
        let (Some([began_at, shown_at, active_at, number]), Some(rest)) =
            (numbers.first_chunk::<4>(), numbers.get(4..))
        else {
            return Err(bad_cursor());
        };
        let (open, []) = rest.as_chunks::<3>() else {
            return Err(bad_cursor());
        };
        let open = open.iter().map(|[number, seq, ended_at]| {
            let position = RecordedTurnPosition {
                seq: *seq,
                ended_at: *ended_at,
            };
            (*number, position)
        });
        Ok(Self {
            began_at: *began_at,
            shown_at: *shown_at,
            opened: (*active_at, *number),
            open: open.collect(),
        })
    }
}

/// A session whose turns a page over all sessions shows.
struct OpenSession {
    turns: SessionTurns,
    /// The next turn to show.
    head: Box<CompletedTurn>,
    head_position: RecordedTurnPosition,
    last_shown: Option<RecordedTurnPosition>,
}

/// The turns of all sessions.
pub fn load_of_all(
    db: &dyn Database,
    now_ms: i64,
    cursor: Option<&str>,
    limit: usize,
) -> Result<TurnPage> {
    let cursor = match cursor {
        Some(cursor) => AllSessionsCursor::parse(cursor)?,
        None => AllSessionsCursor {
            began_at: now_ms,
            shown_at: MAX_INTEGER,
            opened: (MAX_INTEGER, MAX_INTEGER),
            open: Vec::new(),
        },
    };
    AllSessionsWalk {
        db,
        budget: MAX_SCANNED_EVENTS,
        page: TurnPage::default(),
        open: Vec::new(),
        paused: Vec::new(),
        cursor,
    }
    .load(limit)
}

struct AllSessionsWalk<'a> {
    db: &'a dyn Database,
    budget: i64,
    page: TurnPage,
    open: Vec<OpenSession>,
    /// Sessions with further turns, for which this page has no budget left.
    paused: Vec<(i64, RecordedTurnPosition)>,
    cursor: AllSessionsCursor,
}

impl AllSessionsWalk<'_> {
    fn load(mut self, limit: usize) -> Result<TurnPage> {
        for (number, position) in std::mem::take(&mut self.cursor.open) {
            if let Some(id) = find_id_of(self.db, number)? {
                self.open_session((&id, number), Some(position))?;
            }
        }
        let mut sessions = self.load_sessions()?;
        let is_all = sessions.len() <= MAX_OPENED;
        sessions.truncate(MAX_OPENED);
        let mut sessions = sessions.into_iter().peekable();
        loop {
            let newest = self.open.iter().map(|open| open.head.ended_at).max();
            let next = sessions.peek();
            let may_open = self.open.len() + self.paused.len() < MAX_OPEN && self.budget > 0;
            if let Some((active_at, number, id)) = next
                && may_open
                && newest.is_none_or(|newest| newest < *active_at)
            {
                let (active_at, number) = (*active_at, *number);
                let id = Id::parse(id.clone()).map_err(Error::storage)?;
                sessions.next();
                // A session that was written to since the first page may have been shown in part.
                let is_moved = active_at > self.cursor.began_at;
                self.open_moved((&id, number), is_moved)?;
                if !is_moved {
                    self.cursor.opened = (active_at, number);
                }
                continue;
            }
            let index = (0..self.open.len()).max_by_key(|index| {
                let open = self.open.get(*index);
                open.map(|open| (open.head.ended_at, open.head_position, open.turns.number))
            });
            let Some(index) = index else {
                // Sessions are left only if the budget is spent.
                let is_over = sessions.peek().is_none() && is_all && self.paused.is_empty();
                return Ok(self.end(is_over));
            };
            if self.page.turns.len() == limit {
                return Ok(self.end(false));
            }
            self.show(index)?;
        }
    }

    /// Shows the next turn of an open session.
    fn show(&mut self, index: usize) -> Result<()> {
        let mut open = self.open.swap_remove(index);
        self.cursor.shown_at = open.head.ended_at;
        open.last_shown = Some(open.head_position);
        let next = open.turns.next(self.db, &mut self.budget)?;
        let OpenSession {
            turns,
            head,
            last_shown,
            ..
        } = open;
        self.page.turns.push(*head);
        self.keep(turns, next, last_shown);
        Ok(())
    }

    fn keep(&mut self, turns: SessionTurns, next: Next, last_shown: Option<RecordedTurnPosition>) {
        match next {
            Next::Turn(head, head_position) => self.open.push(OpenSession {
                turns,
                head,
                head_position,
                last_shown,
            }),
            Next::Pause => self.paused.push((turns.number, turns.position(last_shown))),
            Next::Nothing => {}
        }
    }

    fn open_session(
        &mut self,
        session: (&Id, i64),
        before: Option<RecordedTurnPosition>,
    ) -> Result<()> {
        // If a page ended before it showed any of the session's turns, there is no position.
        let before = before.filter(|before| before.seq < MAX_INTEGER);
        let mut turns = SessionTurns::open(self.db, session, before)?;
        let next = turns.next(self.db, &mut self.budget)?;
        self.keep(turns, next, before);
        Ok(())
    }

    /// Opens a session. `is_moved`: some of its turns may have been shown.
    fn open_moved(&mut self, session: (&Id, i64), is_moved: bool) -> Result<()> {
        if !is_moved {
            return self.open_session(session, None);
        }
        let mut turns = SessionTurns::open(self.db, session, None)?;
        let mut last_shown = None;
        loop {
            let next = turns.next(self.db, &mut self.budget)?;
            match next {
                Next::Turn(turn, position) if turn.ended_at >= self.cursor.shown_at => {
                    last_shown = Some(position);
                }
                // The rest of its turns is left out: each page would scan for them again.
                Next::Pause => return Ok(()),
                next => {
                    self.keep(turns, next, last_shown);
                    return Ok(());
                }
            }
        }
    }

    fn end(mut self, is_over: bool) -> TurnPage {
        if !is_over {
            let open = self.open.iter().map(|open| {
                let position = open.last_shown.unwrap_or(RecordedTurnPosition {
                    seq: MAX_INTEGER,
                    ended_at: MAX_INTEGER,
                });
                (open.turns.number, position)
            });
            self.cursor.open = open.chain(self.paused).collect();
            self.page.cursor = Some(self.cursor.render());
        }
        self.page
    }

    /// The sessions that this page may open, last written first: one more than it opens.
    fn load_sessions(&self) -> Result<Vec<(i64, i64, String)>> {
        let AllSessionsCursor {
            began_at, opened, ..
        } = self.cursor;
        let opened = SessionPosition {
            active_at: opened.0,
            number: opened.1,
        };
        let most = MAX_OPENED as i64 + 1;
        let mut positions = load_positions(self.db, most, Some(opened))?;
        if opened.active_at < MAX_INTEGER {
            // Sessions that were written to since the first page.
            let open = self.open.iter().map(|open| open.turns.number);
            let paused = self.paused.iter().map(|(number, _)| *number);
            let known: BTreeSet<i64> = open.chain(paused).collect();
            let newest = load_positions(self.db, most + known.len() as i64, None)?;
            let moved = newest.into_iter().filter(|position| {
                position.active_at > began_at
                    && *position > opened
                    && !known.contains(&position.number)
            });
            positions.splice(0..0, moved);
            positions.truncate(MAX_OPENED + 1);
        }
        load_at(self.db, &positions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_round_trips_and_other_text_is_refused() {
        let position = RecordedTurnPosition {
            seq: 7,
            ended_at: 1_767_000_000_000,
        };
        let cursor = AllSessionsCursor {
            began_at: 1_767_000_000_010,
            shown_at: 1_767_000_000_000,
            opened: (1_767_000_000_005, 3),
            open: vec![(3, position), (2, position)],
        };
        assert_eq!(AllSessionsCursor::parse(&cursor.render()).unwrap(), cursor);
        for text in ["", "A", "AAAAA", "§", &"A".repeat(4 + 3 * MAX_OPEN + 3)] {
            assert!(AllSessionsCursor::parse(text).is_err(), "{text}");
        }
        assert!(parse_position("7").is_err() && parse_position("7.x").is_err());
    }
}
