//! Throttles broadcasts: how often a session's sockets receive its messages after
//! operations wrote to the session. There is at most one broadcast per session and second:
//! immediately for the first change, and then one for everything written within the
//! following second.
//!
//! Clients can replace a single message. A message that is new, deleted or moved requires
//! the whole list. So changes of single messages are sent individually, as long as they are
//! few.

use std::cell::RefCell;
use std::collections::HashMap;

use base::ids::Id;

/// The minimum time between two lists.
const PAUSE_MS: i64 = 1_000;

/// The most changed messages that are sent individually. If there are more, the list is
/// sent.
const MAX_CHANGED: usize = 8;

/// The change that an operation made.
#[derive(Debug, PartialEq)]
pub struct ShownChange {
    pub session_id: Id,
    /// The only message that changed, at an unchanged position. `None`: any message may
    /// have changed.
    pub message_id: Option<Id>,
}

impl ShownChange {
    /// A change of possibly any message.
    pub fn of_all(session_id: Id) -> Self {
        Self {
            session_id,
            message_id: None,
        }
    }
}

/// The content of a broadcast.
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

    /// Merges another change into the broadcast.
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
    /// The sessions with a broadcast within the last second, or with a planned one.
    shown: RefCell<HashMap<String, Shown>>,
}

struct Shown {
    /// When the last list was sent.
    at_ms: i64,
    /// The next planned broadcast.
    planned: Option<News>,
}

/// When to send the next broadcast.
#[derive(Debug, PartialEq)]
pub enum NextList {
    Now(News),
    In {
        ms: i64,
    },
    /// The planned [`News`] already includes the change.
    IsPlanned,
}

impl ShowPace {
    /// Plans the broadcast of a change.
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

    /// Removes and returns the planned [`News`], which is sent now.
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

    /// A change of one message, or, with `*`, of any.
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
        // The list may be late. A session without a broadcast within a second starts again.
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
