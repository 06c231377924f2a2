//! The ids of tool calls. Some models give none, and some give every call the same id. But a
//! provider and a browser find a call's result only by its id. So each call gets an id that no
//! other call in its request or answer has. In the log an id may repeat, because a request rarely
//! contains the whole log.
//!
//! New ids are numbered, not random: the same request and the same answer get the same ids.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use crate::message::ContextMessage;
use base::action::Role;
use base::ids::{Id, MAX_ID_CHARS};

const PREFIX: &str = "call_";

/// The most characters of an id that replaces a repeated one. OpenAI accepts no longer ids.
const MAX_RENAMED_CHARS: usize = 40;

/// Gives the calls of a context distinct ids, and their results the same ids. Each result follows
/// its call's message.
///
/// The first call with an id keeps the id. Another call's new id depends only on the messages
/// before it, so that a request begins with the same bytes as the request before it.
pub fn make_ids_unique(messages: &mut [ContextMessage]) {
    let written: Vec<Vec<String>> = write_ids(messages, Cow::Borrowed)
        .into_iter()
        .map(|ids| ids.into_iter().map(Cow::into_owned).collect())
        .collect();
    for (message, ids) in messages.iter_mut().zip(written) {
        let calls = message.tool_calls.iter_mut().flatten();
        let calls = calls.map(|call| &mut call.id);
        let mut is_renamed = false;
        for (id, written) in calls.chain(&mut message.tool_call_id).zip(ids) {
            if id.as_str() != written
                && let Ok(written) = Id::parse(written)
            {
                *id = written;
                is_renamed = true;
            }
        }
        if is_renamed {
            message.forget_given();
        }
    }
}

/// The ids that a request contains: for each message those of its calls, or the id of the call that
/// it answers. `spell` converts an id to the provider's characters.
pub fn write_ids<'a>(
    messages: &'a [ContextMessage],
    spell: fn(&'a str) -> Cow<'a, str>,
) -> Vec<Vec<Cow<'a, str>>> {
    let mut ids = WrittenIds::default();
    // The calls of the newest message with calls that have no result yet.
    let mut open: HashMap<&str, VecDeque<Cow<'a, str>>> = HashMap::new();
    let mut written = Vec::with_capacity(messages.len());
    for message in messages {
        if message.role == Role::Tool {
            let call_id = message.tool_call_id.as_ref().map(Id::as_str);
            let call_id = call_id.unwrap_or_default();
            let id = open.get_mut(call_id).and_then(VecDeque::pop_front);
            written.push(vec![id.unwrap_or_else(|| spell(call_id))]);
            continue;
        }
        open.clear();
        let calls = message.calls().iter().map(|call| {
            let id = ids.assign(spell(call.id.as_str()));
            let results = open.entry(call.id.as_str()).or_default();
            results.push_back(id.clone());
            id
        });
        written.push(calls.collect());
    }
    written
}

/// The ids that were written so far.
#[derive(Default)]
struct WrittenIds<'a> {
    used: HashSet<Cow<'a, str>>,
    /// The next number for repeated ids. The key is their beginning.
    next: HashMap<String, usize>,
}

impl<'a> WrittenIds<'a> {
    fn assign(&mut self, id: Cow<'a, str>) -> Cow<'a, str> {
        if self.used.insert(id.clone()) {
            return id;
        }
        // Leaves space for an underscore and a number.
        let beginning = id.char_indices().nth(MAX_RENAMED_CHARS - 8);
        let end = beginning.map_or(id.len(), |(end, _)| end);
        let beginning = id.get(..end).unwrap_or_default().to_owned();
        let number = self.next.entry(beginning.clone()).or_insert(1);
        // The loop ends, since every number makes a different id.
        loop {
            *number += 1;
            let id: Cow<'a, str> = Cow::Owned(format!("{beginning}_{number}"));
            if self.used.insert(id.clone()) {
                return id;
            }
        }
    }
}

#[derive(Default)]
pub struct CallIds {
    used: HashSet<String>,
    /// The number of the next new id.
    next: usize,
}

impl CallIds {
    /// Reserves the ids of the calls in the request, and those of the answer so far that the
    /// request lacks.
    pub fn after(messages: &[ContextMessage], earlier: &[String]) -> Self {
        let mut ids = Self::default();
        for call in messages.iter().flat_map(ContextMessage::calls) {
            ids.reserve(call.id.as_str());
        }
        for id in earlier {
            ids.reserve(id);
        }
        ids
    }

    /// The offered id if it is usable, else a new id.
    pub fn assign(&mut self, offered: &str) -> String {
        let is_new = !offered.is_empty()
            && offered.chars().take(MAX_ID_CHARS + 1).count() <= MAX_ID_CHARS
            && !self.used.contains(offered);
        let id = if is_new {
            offered.to_owned()
        } else {
            format!("{PREFIX}{}", self.next)
        };
        self.reserve(&id);
        id
    }

    fn reserve(&mut self, id: &str) {
        let number = id.strip_prefix(PREFIX).and_then(|n| n.parse::<u32>().ok());
        if let Some(number) = number {
            self.next = self.next.max(number as usize + 1);
        }
        self.used.insert(id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_a_usable_id_gets_one() {
        let mut ids = CallIds::default();
        assert_eq!(ids.assign("toolu_1"), "toolu_1");
        assert_eq!(ids.assign(""), "call_0");
        assert_eq!(ids.assign("toolu_1"), "call_1");
        assert_eq!(ids.assign("call_7"), "call_7");
        assert_eq!(ids.assign(&"x".repeat(201)), "call_8");
        assert_eq!(ids.assign(&"x".repeat(200)).len(), 200);
    }

    #[test]
    fn minted_ids_continue_across_steps() {
        let called = r#"[{"role":"assistant","toolCalls":[{"id":"call_3","name":"t","arguments":{}},{"id":"x","name":"t","arguments":{}}]}]"#;
        let messages: Vec<ContextMessage> = serde_json::from_str(called).unwrap();
        let mut ids = CallIds::after(&messages, &["y".to_owned()]);
        assert_eq!(ids.assign("call_3"), "call_4");
        assert_eq!(ids.assign("x"), "call_5");
        assert_eq!(ids.assign("y"), "call_6");
        assert_eq!(ids.assign("z"), "z");
    }

    /// `c12`: calls 1 and 2; `r1`: the result of 1; `u`: the user.
    fn renumbered(script: &str) -> String {
        let message = |token: &str| {
            let (kind, ids) = token.split_at(1);
            let ids = ids.split_terminator(',');
            let json = match kind {
                "u" => serde_json::json!({"role": "user", "content": "u"}),
                "c" => {
                    let calls =
                        ids.map(|id| serde_json::json!({"id": id, "name": "t", "arguments": {}}));
                    serde_json::json!({"role": "assistant", "toolCalls": calls.collect::<Vec<_>>()})
                }
                _ => serde_json::json!({"role": "tool", "toolCallId": ids.collect::<String>()}),
            };
            serde_json::from_value::<ContextMessage>(json).unwrap()
        };
        let mut messages: Vec<_> = script.split_whitespace().map(message).collect();
        make_ids_unique(&mut messages);
        let shown = messages.iter().map(|message| {
            let calls: Vec<&str> = message
                .calls()
                .iter()
                .map(|call| call.id.as_str())
                .collect();
            match &message.tool_call_id {
                Some(id) => format!("r{id}"),
                None if calls.is_empty() => "u".to_owned(),
                None => format!("c{}", calls.join(",")),
            }
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn duplicate_ids_are_replaced_and_sent_ids_are_kept() {
        for (script, expected) in [
            ("u c1 r1 c2 r2", "u c1 r1 c2 r2"),
            ("u c1 r1 u c1 r1 u c1 r1", "u c1 r1 u c1_2 r1_2 u c1_3 r1_3"),
            // Duplicates in one message are renamed in order.
            ("c1,2,1 r1 r2 r1", "c1,2,1_2 r1 r2 r1_2"),
            // A new id never equals an existing one, in either order.
            ("c1_2 r1_2 c1 r1 c1 r1", "c1_2 r1_2 c1 r1 c1_3 r1_3"),
            ("c1 r1 c1 r1 c1_2 r1_2", "c1 r1 c1_2 r1_2 c1_2_2 r1_2_2"),
        ] {
            assert_eq!(renumbered(script), expected, "{script}");
            // A longer conversation begins with the same ids.
            for (end, _) in script.match_indices(' ') {
                let prefix = renumbered(&script[..end]);
                assert!(expected.starts_with(&prefix), "{script}: {prefix}");
            }
        }
        let long = "x".repeat(200);
        let apart = renumbered(&format!("c{long} r{long} c{long} r{long}"));
        let renamed = apart.rsplit('r').next().unwrap();
        assert_eq!(renamed, format!("{}_2", "x".repeat(32)));
    }
}
