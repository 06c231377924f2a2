//! The pace at which the sockets of a session are shown its messages after operations
//! wrote to the session. The sockets are told at most once per session and second: of the
//! first change at once, and of all that is written within the second after it.
//!
//! Clients take one message in the place of another, and nothing but the whole list for a
//! message that is new, gone or elsewhere. So changes of single messages are sent by
//! themselves, as long as they are few.

use std::cell::RefCell;
use std::collections::HashMap;

use base::ids::Id;

/// The least time between two lists.
const PAUSE_MS: i64 = 1_000;

/// So many changed messages are sent by themselves. More are sent as a list.
const MAX_CHANGED: usize = 8;

/// The change that an operation made.
#[derive(Debug, PartialEq)]
pub struct ShownChange {
    pub session_id: Id,
    /// The one message that changed, at the place where it was. `None`: any message may
    /// have changed.
    pub message_id: Option<Id>,
}

impl ShownChange {
    /// Any message may have changed.
    pub fn of_all(session_id: Id) -> Self {
        Self {
            session_id,
            message_id: None,
        }
    }
}

/// The news that sockets are sent.
#[derive(Debug, PartialEq)]
pub enum News {
    List,
    Messages(Vec<Id>),
}

impl News {
    fn of(change: &ShownChange) -> Self {
        match &change.message_id {
            Some(id) => Self::Messages(vec![id.clone()]),
            None => Self::List,
        }
    }

    /// Both changes together.
    fn with(&mut self, change: &ShownChange) {
        match (&mut *self, &change.message_id) {
            (Self::Messages(ids), Some(id)) if ids.contains(id) => {}
            (Self::Messages(ids), Some(id)) if ids.len() < MAX_CHANGED => ids.push(id.clone()),
            _ => *self = Self::List,
        }
    }
}

#[derive(Default)]
pub struct ShowPace {
    /// The sessions that were shown a list within the last second, or wait for one.
    shown: RefCell<HashMap<String, Shown>>,
}

struct Shown {
    /// When the last list was sent.
    at_ms: i64,
    /// The news that is sent next.
    planned: Option<News>,
}

/// When to send the next list.
#[derive(Debug, PartialEq)]
pub enum NextList {
    Now(News),
    In {
        ms: i64,
    },
    /// The planned [`News`] already holds the change.
    IsPlanned,
}

impl ShowPace {
    /// Plans what is sent after a change.
    pub fn plan(&self, change: &ShownChange, now_ms: i64) -> NextList {
        let mut shown = self.shown.borrow_mut();
        shown.retain(|_, shown| shown.planned.is_some() || now_ms < shown.at_ms + PAUSE_MS);
        let session_id = change.session_id.as_str();
        let Some(last) = shown.get_mut(session_id) else {
            let first = Shown {
                at_ms: now_ms,
                planned: None,
            };
            shown.insert(session_id.to_owned(), first);
            return NextList::Now(News::of(change));
        };
        if let Some(planned) = &mut last.planned {
            planned.with(change);
            return NextList::IsPlanned;
        }
        last.planned = Some(News::of(change));
        NextList::In {
            ms: (last.at_ms + PAUSE_MS - now_ms).clamp(0, PAUSE_MS),
        }
    }

    /// Takes the planned [`News`], which is sent now.
    pub fn begin(&self, session_id: &Id, now_ms: i64) -> News {
        let mut shown = self.shown.borrow_mut();
        let Some(shown) = shown.get_mut(session_id.as_str()) else {
            return News::List;
        };
        shown.at_ms = now_ms;
        shown.planned.take().unwrap_or(News::List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: &str) -> Id {
        Id::parse(id.to_owned()).unwrap()
    }

    /// A change of one message, or `*`: of any.
    fn change(session: &str, message: &str) -> ShownChange {
        ShownChange {
            session_id: id(session),
            message_id: (message != "*").then(|| id(message)),
        }
    }

    #[test]
    fn one_list_is_sent_at_once_and_one_for_the_rest_of_the_second() {
        let pace = ShowPace::default();
        let one = change("one", "*");
        assert_eq!(pace.plan(&one, 10_000), NextList::Now(News::List));
        let other = change("other", "*");
        assert_eq!(pace.plan(&other, 10_100), NextList::Now(News::List));
        assert_eq!(pace.plan(&one, 10_300), NextList::In { ms: 700 });
        assert_eq!(pace.plan(&one, 10_900), NextList::IsPlanned);
        assert_eq!(pace.begin(&one.session_id, 11_000), News::List);
        assert_eq!(pace.plan(&one, 11_200), NextList::In { ms: 800 });
        // The list may be late. A session that was not shown for a second begins anew.
        assert_eq!(pace.begin(&one.session_id, 12_500), News::List);
        assert_eq!(pace.plan(&one, 13_500), NextList::Now(News::List));
        assert_eq!(
            pace.shown.borrow().len(),
            1,
            "the other session is forgotten"
        );
    }

    #[test]
    fn changed_messages_are_sent_by_themselves_until_they_are_many() {
        let pace = ShowPace::default();
        let messages = |ids: &[&str]| News::Messages(ids.iter().map(|name| id(name)).collect());
        let first = pace.plan(&change("s", "a"), 0);
        assert_eq!(first, NextList::Now(messages(&["a"])));
        for message in ["a", "b", "a"] {
            pace.plan(&change("s", message), 1);
        }
        assert_eq!(pace.begin(&id("s"), 1_000), messages(&["a", "b"]));
        for message in ["a", "*", "b"] {
            pace.plan(&change("s", message), 1_001);
        }
        assert_eq!(pace.begin(&id("s"), 2_000), News::List);
        let names: Vec<String> = (0..=MAX_CHANGED).map(|n| n.to_string()).collect();
        for (most, count) in [(true, MAX_CHANGED), (false, MAX_CHANGED + 1)] {
            for name in names.iter().take(count) {
                pace.plan(&change("s", name), 2_001);
            }
            let news = pace.begin(&id("s"), 2_002);
            assert_eq!(news != News::List, most, "{count} messages");
        }
    }
}
