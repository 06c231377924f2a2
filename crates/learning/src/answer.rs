//! Reads a model's answer as untrusted input: a strict format, limits on number and length, and no
//! event that was not shown. No I/O. A change that breaks a rule is left out and counted; an answer
//! in another format is rejected as a whole.

use serde::Deserialize;

use crate::material::MaterialEvent;
use base::action::Role;
use base::error::{Code, Error, Result};
use base::json::{self, List, RawValue};
use memory::entry_text::check_entry;
use memory::proposals::MAX_CHANGES;

/// The most bytes of an answer.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// The most bytes of one fact: one or a few sentences.
const MAX_FACT_BYTES: usize = 2 << 10;

/// The most events that a change names, and the most entries that it merges.
const MAX_EVENTS: usize = 20;
pub const MAX_MERGED: usize = 20;

/// How many words of a fact are in its key, and how many characters.
const KEY_WORDS: usize = 5;
const MAX_KEY_CHARS: usize = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WantedAction {
    Add,
    Replace,
    Retire,
    Forget,
}

/// One change as a model writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenChange {
    action: WantedAction,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    events: Option<List<String, 0, MAX_EVENTS>>,
    #[serde(default)]
    merges: Option<List<String, 0, MAX_MERGED>>,
    /// The newer entry, if the change retires an entry.
    #[serde(default)]
    by: Option<String>,
}

/// The whole answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAnswer {
    changes: Option<List<Box<RawValue>, 0, MAX_CHANGES>>,
    #[serde(default)]
    profile: Option<String>,
}

/// A change in the right format.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedChange {
    pub action: WantedAction,
    /// `None`: a new fact without a key.
    pub key: Option<String>,
    pub title: Option<String>,
    /// Empty for a change that writes no text.
    pub content: String,
    /// The indexes of its events among those that were shown.
    pub events: Vec<usize>,
    pub merges: Vec<String>,
    pub by: Option<String>,
}

/// The answer of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadAnswer {
    pub changes: Vec<WantedChange>,
    pub refused: i64,
    pub profile: Option<String>,
}

/// Reads the answer to a request with these events. The facts are for the block `label`.
pub fn read(answer: &str, label: &str, shown: &[MaterialEvent]) -> Result<ReadAnswer> {
    let written = parse(answer)?;
    let mut read = ReadAnswer::default();
    for change in written.changes.into_iter().flat_map(|list| list.0) {
        match check(&change, label, Some(shown)) {
            Some(change) => read.changes.push(change),
            None => read.refused += 1,
        }
    }
    Ok(read)
}

/// Reads the answer of a consolidation, whose changes are based on entries and on no event.
pub fn read_consolidation(answer: &str, label: &str) -> Result<ReadAnswer> {
    let written = parse(answer)?;
    let mut read = ReadAnswer {
        profile: written.profile,
        ..ReadAnswer::default()
    };
    for change in written.changes.into_iter().flat_map(|list| list.0) {
        match check(&change, label, None) {
            Some(change) => read.changes.push(change),
            None => read.refused += 1,
        }
    }
    Ok(read)
}

fn parse(answer: &str) -> Result<WrittenAnswer> {
    // A model may write its JSON in a code block, or a sentence before it.
    let begin = answer.find('{').unwrap_or(0);
    let end = answer.rfind('}').map_or(answer.len(), |end| end + 1);
    let object = answer.get(begin..end).unwrap_or_default();
    if object.len() > MAX_ANSWER_BYTES {
        return Err(invalid_answer());
    }
    json::decode(object).map_err(|_| invalid_answer())
}

/// The error for an answer that can't be read. It repeats nothing of the answer.
pub fn invalid_answer() -> Error {
    Error::new(
        Code::ModelFailed,
        format!(
            "The model's answer is not the requested JSON, or has more than {MAX_CHANGES} changes."
        ),
    )
}

fn check(change: &RawValue, label: &str, shown: Option<&[MaterialEvent]>) -> Option<WantedChange> {
    let change: WrittenChange = json::decode(change.get()).ok()?;
    let is_here = |given: &String| given.to_lowercase() == label.to_lowercase();
    if !change.label.as_ref().is_none_or(is_here) {
        return None;
    }
    let events = match shown {
        Some(shown) => {
            let names = change.events.unwrap_or(List(Vec::new())).0;
            let indexes: Option<Vec<usize>> =
                names.iter().map(|name| find_shown(shown, name)).collect();
            let mut indexes = indexes?;
            indexes.sort_unstable();
            indexes.dedup();
            if indexes.is_empty() {
                return None;
            }
            indexes
        }
        None => Vec::new(),
    };
    let merges = change.merges.unwrap_or(List(Vec::new())).0;
    if shown.is_some() && (!merges.is_empty() || change.by.is_some()) {
        return None;
    }
    let text = change.content.as_deref().map(str::trim).unwrap_or_default();
    let (title, content) = match change.action {
        WantedAction::Add | WantedAction::Replace => {
            if text.is_empty() || text.len() > MAX_FACT_BYTES {
                return None;
            }
            let title = change.title.filter(|title| !title.trim().is_empty());
            (title, text.to_owned())
        }
        WantedAction::Retire | WantedAction::Forget => (None, String::new()),
    };
    let key = change.key.filter(|key| !key.trim().is_empty());
    match (&key, change.action) {
        (None, WantedAction::Add) => {}
        (None, _) => return None,
        (Some(key), _) => check_entry(key, title.as_deref(), &content).ok()?,
    }
    Some(WantedChange {
        action: change.action,
        key,
        title,
        content,
        events,
        merges,
        by: change.by,
    })
}

/// The index of the event of this name: its short name, or its id.
fn find_shown(shown: &[MaterialEvent], name: &str) -> Option<usize> {
    let by_number = name
        .strip_prefix('e')
        .and_then(|number| number.parse::<usize>().ok())
        .and_then(|number| number.checked_sub(1))
        .filter(|index| *index < shown.len() && short_name(*index) == name);
    by_number.or_else(|| shown.iter().position(|event| event.id == name))
}

/// The short name of the event at this index.
pub fn short_name(index: usize) -> String {
    format!("e{}", index + 1)
}

/// A key for a fact: its first meaningful words.
pub fn key_for(content: &str) -> String {
    let mut key = String::new();
    let all = search::words::words(content);
    let meaningful = all
        .iter()
        .filter(|word| !search::words::is_stop_word(word) && *word != Role::User.name());
    for word in meaningful.take(KEY_WORDS) {
        if !key.is_empty() {
            key.push('-');
        }
        key.push_str(word);
    }
    let key: String = key.chars().take(MAX_KEY_CHARS).collect();
    if key.is_empty() {
        "fact".to_owned()
    } else {
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory::origin::Origin;

    fn shown() -> Vec<MaterialEvent> {
        ["one", "two"]
            .iter()
            .zip(1..)
            .map(|(id, seq)| MaterialEvent {
                seq,
                id: (*id).to_owned(),
                speaker: Origin::User,
                tool: None,
                text: "I like tea.".to_owned(),
            })
            .collect()
    }

    fn count(answer: &str) -> Option<(usize, i64)> {
        let read = read(answer, "facts", &shown()).ok()?;
        Some((read.changes.len(), read.refused))
    }

    #[test]
    fn an_answer_is_strictly_an_object_of_changes() {
        let add = r#"{"action":"add","content":"Likes tea","events":["e1"]}"#;
        for (answer, expected) in [
            (r#"{"changes":[]}"#.to_owned(), Some((0, 0))),
            (format!(r#"{{"changes":[{add}]}}"#), Some((1, 0))),
            (
                format!("Sure!\n```json\n{{\"changes\":[{add}]}}\n```"),
                Some((1, 0)),
            ),
            (String::new(), None),
            ("no".to_owned(), None),
            ("[]".to_owned(), None),
            (r#"{"changes":{}}"#.to_owned(), None),
            (r#"{"changes":[],"note":1}"#.to_owned(), None),
            (
                format!(r#"{{"changes":[{}]}}"#, vec![add; 32].join(",")),
                Some((32, 0)),
            ),
            (
                format!(r#"{{"changes":[{}]}}"#, vec![add; 33].join(",")),
                None,
            ),
            (
                format!(r#"{{"changes":[],"profile":"{}"}}"#, "x".repeat(70_000)),
                None,
            ),
        ] {
            assert_eq!(count(&answer), expected, "{answer}");
        }
    }

    #[test]
    fn an_invalid_change_is_dropped() {
        for (change, is_taken) in [
            (
                r#"{"action":"add","content":"Tea","events":["e1","e2","e1"]}"#.to_owned(),
                true,
            ),
            (
                r#"{"action":"add","content":"Tea","events":["two"]}"#.to_owned(),
                true,
            ),
            (
                r#"{"action":"add","label":"Facts","content":"Tea","events":["e1"]}"#.to_owned(),
                true,
            ),
            (
                r#"{"action":"retire","key":"tea","events":["e1"]}"#.to_owned(),
                true,
            ),
            (
                r#"{"action":"forget","key":"tea","events":["e1"]}"#.to_owned(),
                true,
            ),
            (
                format!(
                    r#"{{"action":"add","content":"{}","events":["e1"]}}"#,
                    "x".repeat(2048)
                ),
                true,
            ),
            (
                format!(
                    r#"{{"action":"add","content":"{}","events":["e1"]}}"#,
                    "x".repeat(2049)
                ),
                false,
            ),
            (
                r#"{"action":"add","content":"Tea","events":[]}"#.to_owned(),
                false,
            ),
            (r#"{"action":"add","content":"Tea"}"#.to_owned(), false),
            (
                r#"{"action":"add","content":"Tea","events":["e3"]}"#.to_owned(),
                false,
            ),
            (
                r#"{"action":"add","content":"Tea","events":["e0"]}"#.to_owned(),
                false,
            ),
            (
                r#"{"action":"add","content":"Tea","events":["e01"]}"#.to_owned(),
                false,
            ),
            (
                r#"{"action":"add","content":"Tea","events":["e1","three"]}"#.to_owned(),
                false,
            ),
            (
                r#"{"action":"add","content":" ","events":["e1"]}"#.to_owned(),
                false,
            ),
            (r#"{"action":"add","events":["e1"]}"#.to_owned(), false),
            (
                r#"{"action":"replace","content":"Tea","events":["e1"]}"#.to_owned(),
                false,
            ),
            (r#"{"action":"retire","events":["e1"]}"#.to_owned(), false),
            (
                r#"{"action":"purge","key":"tea","events":["e1"]}"#.to_owned(),
                false,
            ),
            (
                r#"{"action":"add","label":"soul","content":"Tea","events":["e1"]}"#.to_owned(),
                false,
            ),
            (
                r#"{"action":"add","key":"../a","content":"Tea","events":["e1"]}"#.to_owned(),
                false,
            ),
            (
                r#"{"action":"add","content":"Tea","events":["e1"],"source":"user"}"#.to_owned(),
                false,
            ),
            (
                r#"{"action":"add","content":"Tea","events":["e1"],"merges":["a"]}"#.to_owned(),
                false,
            ),
            (
                r#"{"action":"add","content":7,"events":["e1"]}"#.to_owned(),
                false,
            ),
            ("7".to_owned(), false),
        ] {
            let answer = format!(r#"{{"changes":[{change}]}}"#);
            let expected = if is_taken { (1, 0) } else { (0, 1) };
            assert_eq!(count(&answer), Some(expected), "{change}");
        }
    }

    #[test]
    fn a_facts_key_is_made_of_its_words() {
        for (content, expected) in [
            ("The user likes window seats", "likes-window-seats"),
            ("Rex", "rex"),
            ("The user", "fact"),
            ("", "fact"),
        ] {
            assert_eq!(key_for(content), expected);
        }
    }
}
