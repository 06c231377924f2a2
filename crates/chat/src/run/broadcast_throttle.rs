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
pub struct MessageChange {
    pub session_id: Id,
    /// The only message that changed, at an unchanged position. `None`: any message may
    /// have changed.
    pub message_id: Option<Id>,
}

impl MessageChange {
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
pub enum Broadcast {
    List,
    Messages(Vec<Id>),
}

impl Broadcast {
    fn of(change: &MessageChange) -> Self {
        match &change.message_id {
            Some(id) => Self::Messages(vec![id.clone()]),
            None => Self::List,
        }
    }

    /// Merges another change into the broadcast.
    fn with(&mut self, change: &MessageChange) {
        match (&mut *self, &change.message_id) {
            (Self::Messages(ids), Some(id)) if ids.contains(id) => {}
            (Self::Messages(ids), Some(id)) if ids.len() < MAX_CHANGED => ids.push(id.clone()),
            _ => *self = Self::List,
        }
    }
}

#[derive(Default)]
pub struct BroadcastThrottle {
    /// The sessions with a broadcast within the last second, or with a planned one.
    sessions: RefCell<HashMap<String, SessionBroadcasts>>,
}

struct SessionBroadcasts {
    /// When the last list was sent.
    at_ms: i64,
    /// The next planned broadcast.
    planned: Option<Broadcast>,
}

/// When to send the next broadcast.
#[derive(Debug, PartialEq)]
pub enum NextBroadcast {
    Now(Broadcast),
    In {
        ms: i64,
    },
    /// The planned [`Broadcast`] already includes the change.
    IsPlanned,
}

impl BroadcastThrottle {
    /// Plans the broadcast of a change.
    pub fn plan(&self, change: &MessageChange, now_ms: i64) -> NextBroadcast {
        let mut sessions = self.sessions.borrow_mut();
        sessions
            .retain(|_, sessions| sessions.planned.is_some() || now_ms < sessions.at_ms + PAUSE_MS);
        let session_id = change.session_id.as_str();
        let Some(last) = sessions.get_mut(session_id) else {
            let first = SessionBroadcasts {
                at_ms: now_ms,
                planned: None,
            };
            sessions.insert(session_id.to_owned(), first);
            return NextBroadcast::Now(Broadcast::of(change));
        };
        if let Some(planned) = &mut last.planned {
            planned.with(change);
            return NextBroadcast::IsPlanned;
        }
        last.planned = Some(Broadcast::of(change));
        NextBroadcast::In {
            ms: (last.at_ms + PAUSE_MS - now_ms).clamp(0, PAUSE_MS),
        }
    }

    /// Removes and returns the planned [`Broadcast`], which is sent now.
    pub fn begin(&self, session_id: &Id, now_ms: i64) -> Broadcast {
        let mut sessions = self.sessions.borrow_mut();
        let Some(sessions) = sessions.get_mut(session_id.as_str()) else {
            return Broadcast::List;
        };
        sessions.at_ms = now_ms;
        sessions.planned.take().unwrap_or(Broadcast::List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: &str) -> Id {
        Id::parse(id.to_owned()).unwrap()
    }

    /// A change of one message, or of any message if `*`.
    fn change(session: &str, message: &str) -> MessageChange {
        MessageChange {
            session_id: id(session),
            message_id: (message != "*").then(|| id(message)),
        }
    }

    #[test]
    fn one_list_is_sent_at_once_and_later_ones_once_a_second() {
        let throttle = BroadcastThrottle::default();
        let one = change("one", "*");
        assert_eq!(
            throttle.plan(&one, 10_000),
            NextBroadcast::Now(Broadcast::List)
        );
        let other = change("other", "*");
        assert_eq!(
            throttle.plan(&other, 10_100),
            NextBroadcast::Now(Broadcast::List)
        );
        assert_eq!(throttle.plan(&one, 10_300), NextBroadcast::In { ms: 700 });
        assert_eq!(throttle.plan(&one, 10_900), NextBroadcast::IsPlanned);
        assert_eq!(throttle.begin(&one.session_id, 11_000), Broadcast::List);
        assert_eq!(throttle.plan(&one, 11_200), NextBroadcast::In { ms: 800 });
        // The list may be late. A session without a broadcast for a second starts over.
        assert_eq!(throttle.begin(&one.session_id, 12_500), Broadcast::List);
        assert_eq!(
            throttle.plan(&one, 13_500),
            NextBroadcast::Now(Broadcast::List)
        );
        assert_eq!(
            throttle.sessions.borrow().len(),
            1,
            "the other session is forgotten"
        );
    }

    #[test]
    fn few_changes_are_sent_singly_and_many_as_a_list() {
        let throttle = BroadcastThrottle::default();
        let messages =
            |ids: &[&str]| Broadcast::Messages(ids.iter().map(|name| id(name)).collect());
        let first = throttle.plan(&change("s", "a"), 0);
        assert_eq!(first, NextBroadcast::Now(messages(&["a"])));
        for message in ["a", "b", "a"] {
            throttle.plan(&change("s", message), 1);
        }
        assert_eq!(throttle.begin(&id("s"), 1_000), messages(&["a", "b"]));
        for message in ["a", "*", "b"] {
            throttle.plan(&change("s", message), 1_001);
        }
        assert_eq!(throttle.begin(&id("s"), 2_000), Broadcast::List);
        let names: Vec<String> = (0..=MAX_CHANGED).map(|n| n.to_string()).collect();
        for (most, count) in [(true, MAX_CHANGED), (false, MAX_CHANGED + 1)] {
            for name in names.iter().take(count) {
                throttle.plan(&change("s", name), 2_001);
            }
            let broadcast = throttle.begin(&id("s"), 2_002);
            assert_eq!(broadcast != Broadcast::List, most, "{count} messages");
        }
    }
}
