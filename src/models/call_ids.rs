//! The ids of tool calls. Some models give none, and some give every call the same id.
//! But a log, a provider and a browser each find a call's result by its id alone. So each
//! call gets an id that no other call in its request or answer has.
//!
//! New ids are numbered, not random: the same request and the same answer give the same
//! ids.

use std::collections::HashSet;

use crate::base::ids::MAX_ID_CHARS;
use crate::models::message::ContextMessage;

const PREFIX: &str = "call_";

#[derive(Default)]
pub struct CallIds {
    taken: HashSet<String>,
    /// The number of the next new id.
    next: usize,
}

impl CallIds {
    /// Takes the ids of the calls that the request already holds.
    pub fn after(messages: &[ContextMessage]) -> Self {
        let mut ids = Self::default();
        for call in messages.iter().flat_map(ContextMessage::calls) {
            ids.take(call.id.as_str());
        }
        ids
    }

    /// The offered id if it is usable, else a new id.
    pub fn give(&mut self, offered: &str) -> String {
        let is_new = !offered.is_empty()
            && offered.chars().take(MAX_ID_CHARS + 1).count() <= MAX_ID_CHARS
            && !self.taken.contains(offered);
        let id = match is_new {
            true => offered.to_owned(),
            false => format!("{PREFIX}{}", self.next),
        };
        self.take(&id);
        id
    }

    fn take(&mut self, id: &str) {
        let number = id.strip_prefix(PREFIX).and_then(|n| n.parse::<u32>().ok());
        if let Some(number) = number {
            self.next = self.next.max(number as usize + 1);
        }
        self.taken.insert(id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_keeps_its_id_unless_it_has_none_of_its_own() {
        let mut ids = CallIds::default();
        assert_eq!(ids.give("toolu_1"), "toolu_1");
        assert_eq!(ids.give(""), "call_0");
        assert_eq!(ids.give("toolu_1"), "call_1");
        assert_eq!(ids.give("call_7"), "call_7");
        assert_eq!(ids.give(&"x".repeat(201)), "call_8");
        assert_eq!(ids.give(&"x".repeat(200)).len(), 200);
    }

    #[test]
    fn a_step_mints_on_from_the_steps_before_it() {
        let called = r#"[{"role":"assistant","toolCalls":[{"id":"call_3","name":"t","arguments":{}},{"id":"x","name":"t","arguments":{}}]}]"#;
        let messages: Vec<ContextMessage> = serde_json::from_str(called).unwrap();
        let mut ids = CallIds::after(&messages);
        assert_eq!(ids.give("call_3"), "call_4");
        assert_eq!(ids.give("x"), "call_5");
        assert_eq!(ids.give("y"), "y");
    }
}
