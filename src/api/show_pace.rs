//! When the sockets of a session are shown its messages again, after operations wrote to
//! the session. At most one list is sent per session and second: the first at once, and
//! one more for all that is written within the second after it.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::base::ids::Id;

/// The least time between two lists.
const PAUSE_MS: i64 = 1_000;

#[derive(Default)]
pub struct ShowPace {
    /// The sessions that were shown a list within the last second, or wait for one.
    shown: RefCell<HashMap<String, Shown>>,
}

struct Shown {
    /// When the last list was sent.
    at_ms: i64,
    is_planned: bool,
}

/// When to send the next list.
#[derive(Debug, PartialEq)]
pub enum NextList {
    Now,
    In {
        ms: i64,
    },
    /// A list that is planned already will hold the change.
    IsPlanned,
}

impl ShowPace {
    /// Plans the list after a change.
    pub fn plan(&self, session_id: &Id, now_ms: i64) -> NextList {
        let mut shown = self.shown.borrow_mut();
        shown.retain(|_, shown| shown.is_planned || now_ms < shown.at_ms + PAUSE_MS);
        let Some(last) = shown.get_mut(session_id.as_str()) else {
            let first = Shown {
                at_ms: now_ms,
                is_planned: false,
            };
            shown.insert(session_id.as_str().to_owned(), first);
            return NextList::Now;
        };
        if last.is_planned {
            return NextList::IsPlanned;
        }
        last.is_planned = true;
        NextList::In {
            ms: (last.at_ms + PAUSE_MS - now_ms).clamp(0, PAUSE_MS),
        }
    }

    /// Notes that the planned list is sent now.
    pub fn begin(&self, session_id: &Id, now_ms: i64) {
        if let Some(shown) = self.shown.borrow_mut().get_mut(session_id.as_str()) {
            shown.at_ms = now_ms;
            shown.is_planned = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_list_is_sent_at_once_and_one_for_the_rest_of_the_second() {
        let pace = ShowPace::default();
        let [one, other] = ["one", "other"].map(|id| Id::parse(id.to_owned()).unwrap());
        assert_eq!(pace.plan(&one, 10_000), NextList::Now);
        assert_eq!(pace.plan(&other, 10_100), NextList::Now);
        assert_eq!(pace.plan(&one, 10_300), NextList::In { ms: 700 });
        assert_eq!(pace.plan(&one, 10_900), NextList::IsPlanned);
        pace.begin(&one, 11_000);
        assert_eq!(pace.plan(&one, 11_200), NextList::In { ms: 800 });
        // The list may be late. A session that was not shown for a second begins anew.
        pace.begin(&one, 12_500);
        assert_eq!(pace.plan(&one, 13_500), NextList::Now);
        assert_eq!(
            pace.shown.borrow().len(),
            1,
            "the other session is forgotten"
        );
    }
}
