//! Iterates over the items of paged answers.

use std::time::Duration;
use std::vec::IntoIter;

use crate::agent::Agent;
use crate::error::Result;
use crate::operation::Operation;
use crate::wire::Wire;
use crate::{
    Change, Changes, Entry, EntryPage, Event, ForeignPage, ForeignRow, GetChanges, GetHistory,
    GetUsage, HistoryPage, ListEntries, ListSessions, ListSkills, LoadEvents, LoadForeignRows,
    Session, SessionPage, Skill, SkillPage, UiMessage, UsageEntry, UsagePage,
};

/// An operation whose answer is a page.
pub trait Paged: Operation {
    type Item;

    /// Prepares the input to request the first page.
    fn begin(&mut self) {}

    /// Returns the page's items, and prepares the input for the next page. `false`: this
    /// was the last page.
    fn turn(&mut self, page: Self::Output) -> (Vec<Self::Item>, bool);
}

/// The items of all pages. `Agent::items` opens it.
#[derive(Debug)]
pub struct Items<'a, W, P: Paged> {
    agent: &'a Agent<W>,
    input: P,
    items: IntoIter<P::Item>,
    is_over: bool,
    /// How long to wait before polling again at the end, instead of ending.
    pause: Option<Duration>,
}

impl<W: Wire> Agent<W> {
    /// The items of all pages, one after the other. `limit` is the limit of each page.
    ///
    /// Messages of a history come newest first. Changes end with the newest existing
    /// change; [`follow`](Items::follow) waits for more.
    pub fn items<P: Paged>(&self, mut input: P) -> Items<'_, W, P> {
        input.begin();
        Items {
            agent: self,
            input,
            items: Vec::new().into_iter(),
            is_over: false,
            pause: None,
        }
    }
}

impl<W: Wire, P: Paged> Items<'_, W, P> {
    /// The next item. `None`: there are no more. After an error, the next call requests the
    /// same page again.
    pub async fn next(&mut self) -> Result<Option<P::Item>> {
        loop {
            if let Some(item) = self.items.next() {
                return Ok(Some(item));
            }
            if self.is_over {
                let Some(pause) = self.pause else {
                    return Ok(None);
                };
                self.agent.wire().wait(pause).await;
            }
            let page = self.agent.call(&self.input).await?;
            let (items, has_more) = self.input.turn(page);
            self.items = items.into_iter();
            self.is_over = !has_more;
        }
    }
}

impl<W: Wire> Items<'_, W, GetChanges> {
    /// Instead of ending, waits for new changes and polls again after each pause.
    #[must_use]
    pub fn follow(mut self, pause: Duration) -> Self {
        self.pause = Some(pause);
        self
    }
}

/// Operations whose pages continue by `cursor`.
macro_rules! by_cursor {
    ($($operation:ident: $page:ident.$items:ident of $item:ident;)*) => {$(
        impl Paged for $operation {
            type Item = $item;

            fn turn(&mut self, page: $page) -> (Vec<$item>, bool) {
                self.cursor = page.cursor;
                (page.$items, self.cursor.is_some())
            }
        }
    )*};
}

by_cursor! {
    ListSessions: SessionPage.sessions of Session;
    ListEntries: EntryPage.entries of Entry;
    ListSkills: SkillPage.skills of Skill;
    LoadForeignRows: ForeignPage.rows of ForeignRow;
    GetUsage: UsagePage.usage of UsageEntry;
}

impl Paged for GetHistory {
    type Item = UiMessage;

    fn turn(&mut self, mut page: HistoryPage) -> (Vec<UiMessage>, bool) {
        page.messages.reverse();
        self.before = page.cursor;
        (page.messages, self.before.is_some())
    }
}

const EVENTS_PAGE: i64 = 500;

impl Paged for LoadEvents {
    type Item = Event;

    fn begin(&mut self) {
        self.after_seq.get_or_insert(0);
        self.limit.get_or_insert(EVENTS_PAGE);
        (self.tail, self.before_seq) = (None, None);
    }

    /// A page may be shorter than its limit, because answers are bounded in bytes.
    fn turn(&mut self, page: Vec<Event>) -> (Vec<Event>, bool) {
        let Some(last) = page.last() else {
            return (page, false);
        };
        self.after_seq = Some(last.seq);
        (page, true)
    }
}

impl Paged for GetChanges {
    type Item = Change;

    fn turn(&mut self, page: Changes) -> (Vec<Change>, bool) {
        self.since = Some(page.cursor);
        let has_more = !page.changes.is_empty();
        (page.changes, has_more)
    }
}
