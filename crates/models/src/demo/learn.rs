//! How the demo learns from a conversation, and consolidates entries: by the patterns of a few
//! sentences. It understands nothing, and gives the same answer each time.

use std::collections::BTreeMap;

use serde_json::Value;

use super::recall::between;
use base::json::{self, json};
use search::sentences::claims;

/// The most changes of an answer.
const MAX_CHANGES: usize = 20;

/// The most characters of a fact, and of a key.
const MAX_FACT_CHARS: usize = 300;
const MAX_KEY_CHARS: usize = 60;

/// Characters of a profile, where no budget is named.
const MAX_PROFILE_CHARS: usize = 1_200;

/// A sentence with a fact.
#[derive(Debug, PartialEq)]
enum Statement {
    /// A fact under this key, which replaces another one with the same key.
    Fact { key: String, content: String },
    /// A thing that the user wants forgotten.
    Forget { key: String },
}

/// The answer to the request to learn.
pub fn learn(request: &str) -> String {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for entry in objects(between(request, "entries")) {
        known.insert(text(&entry, "key"), text(&entry, "content"));
    }
    let mut changes: Vec<Value> = Vec::new();
    for event in objects(between(request, "events")) {
        if text(&event, "from") != "user" {
            continue;
        }
        let name = text(&event, "event");
        for statement in statements(&text(&event, "text")).filter_map(read) {
            let change = match statement {
                Statement::Fact { key, content } => {
                    let action = match known.get(&key) {
                        Some(before) if *before == content => continue,
                        Some(_) => "replace",
                        None => "add",
                    };
                    // One change per key: the last statement counts.
                    changes.retain(|change| text(change, "key") != key);
                    json!({"action": action, "key": key, "content": content, "events": [name]})
                }
                Statement::Forget { key } => {
                    changes.retain(|change| text(change, "key") != key);
                    if !known.contains_key(&key) {
                        continue;
                    }
                    json!({"action": "forget", "key": key, "events": [name]})
                }
            };
            changes.push(change);
        }
    }
    changes.truncate(MAX_CHANGES);
    json::text(&json!({ "changes": changes }))
}

fn objects(lines: &str) -> impl Iterator<Item = Value> {
    lines
        .lines()
        .filter_map(|line| json::decode_tree(line).ok())
}

fn text(object: &Value, field: &str) -> String {
    let value = object.get(field).and_then(Value::as_str);
    value.unwrap_or_default().to_owned()
}

/// The sentences of a text that are not questions, without their ends.
fn statements(text: &str) -> impl Iterator<Item = &str> {
    claims(text)
        .into_iter()
        .map(|sentence| sentence.trim_end_matches(['.', '!', ';']).trim())
        .filter(|sentence| !sentence.is_empty() && sentence.chars().count() <= MAX_FACT_CHARS)
}

/// The rest of a sentence that begins with these words.
fn after<'a>(sentence: &'a str, words: &str) -> Option<&'a str> {
    let head = sentence.get(..words.len())?;
    let rest = sentence.get(words.len()..)?;
    let is_whole = rest.starts_with(|c: char| c.is_whitespace() || matches!(c, ':' | ','));
    (head.eq_ignore_ascii_case(words) && is_whole)
        .then(|| rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | ',')))
        .filter(|rest| !rest.is_empty())
}

fn after_any<'a>(sentence: &'a str, beginnings: &[&str]) -> Option<&'a str> {
    beginnings.iter().find_map(|words| after(sentence, words))
}

fn fact(key: &str, content: String) -> Option<Statement> {
    let key = slug(key);
    (!key.is_empty()).then_some(Statement::Fact { key, content })
}

/// Reads one sentence. `None`: it has no pattern that the demo knows.
fn read(sentence: &str) -> Option<Statement> {
    let sentence =
        after_any(sentence, &["please", "actually", "by the way", "oh"]).unwrap_or(sentence);
    if let Some(what) = after_any(
        sentence,
        &["forget that my", "forget my", "forget about my"],
    ) {
        let subject = what.split(" is ").next().unwrap_or(what);
        return Some(Statement::Forget { key: slug(subject) });
    }
    if let Some(what) = after_any(
        sentence,
        &[
            "remember that",
            "remember",
            "keep in mind that",
            "note that",
        ],
    ) {
        return read_claim(what).or_else(|| {
            let mut letters = what.chars();
            let first: String = letters
                .next()
                .into_iter()
                .flat_map(char::to_uppercase)
                .collect();
            fact(what, format!("{first}{}", letters.as_str()))
        });
    }
    read_claim(sentence)
}

fn read_claim(claim: &str) -> Option<Statement> {
    if let Some(name) = after_any(
        claim,
        &["call me", "my name is now", "my name is", "I am called"],
    ) {
        return fact("name", format!("The user is called {name}"));
    }
    for (beginning, key, verb) in [
        ("I like", "likes", "likes"),
        ("I love", "loves", "loves"),
        ("I prefer", "prefers", "prefers"),
        ("I hate", "hates", "hates"),
    ] {
        if let Some(what) = after(claim, beginning) {
            return fact(&format!("{key} {what}"), format!("The user {verb} {what}"));
        }
    }
    for (beginnings, key, verb) in [
        (&["I live in", "I now live in"][..], "home", "lives in"),
        (&["I moved to"][..], "home", "moved to"),
        (&["I work at", "I now work at"][..], "work", "works at"),
        (&["I work for", "I now work for"][..], "work", "works for"),
        (
            &["I am allergic to", "I'm allergic to"][..],
            "allergy",
            "is allergic to",
        ),
    ] {
        if let Some(what) = after_any(claim, beginnings) {
            let what = after(what, "now").unwrap_or(what);
            return fact(key, format!("The user {verb} {what}"));
        }
    }
    let rest = after(claim, "my")?;
    let (subject, value) = rest.split_once(" is ")?;
    let value = after(value, "now").unwrap_or(value);
    let is_short = subject.split_whitespace().count() <= 4;
    if !is_short || value.is_empty() {
        return None;
    }
    fact(subject, format!("The user's {subject} is {value}"))
}

/// A key: letters and digits, with dashes between them.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug: String = slug.chars().take(MAX_KEY_CHARS).collect();
    slug.trim_end_matches('-').to_owned()
}

/// The answer to the request to consolidate entries: those with the same text become one, and of
/// two that say what something is, the newer one counts.
pub fn consolidate(request: &str) -> String {
    let mut entries: Vec<Value> = objects(between(request, "entries")).collect();
    let written_at = |entry: &Value| entry.get("writtenAt").and_then(Value::as_i64).unwrap_or(0);
    entries.sort_by_key(|entry| std::cmp::Reverse(written_at(entry)));
    let mut same: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for entry in &entries {
        same.entry(slug(&text(entry, "content")))
            .or_default()
            .push(entry);
    }
    let mut changes: Vec<Value> = Vec::new();
    let mut changed: Vec<String> = Vec::new();
    for group in same.values() {
        let Some((first, others)) = group.split_first() else {
            continue;
        };
        if others.is_empty() {
            continue;
        }
        let merges: Vec<String> = others.iter().map(|other| text(other, "key")).collect();
        changed.extend(merges.iter().cloned());
        changed.push(text(first, "key"));
        changes.push(json!({
            "action": "replace", "key": text(first, "key"), "content": text(first, "content"),
            "merges": merges,
        }));
    }
    let mut newest: BTreeMap<String, String> = BTreeMap::new();
    for entry in &entries {
        let (key, content) = (text(entry, "key"), text(entry, "content"));
        let subject = content.split_once(" is ").map(|(subject, _)| slug(subject));
        let Some(subject) = subject.filter(|subject| subject.starts_with("the-user-s-")) else {
            continue;
        };
        match newest.get(&subject) {
            Some(by) if !changed.contains(&key) && !changed.contains(by) => {
                changes.push(json!({"action": "retire", "key": key, "by": by}));
                changed.push(key);
                changed.push(by.clone());
            }
            Some(_) => {}
            None => {
                newest.insert(subject, key);
            }
        }
    }
    changes.truncate(MAX_CHANGES);
    let mut answer = json!({ "changes": changes });
    if request.contains("\n<profile>\n")
        && let Some(answer) = answer.as_object_mut()
    {
        let retired: Vec<String> = changes
            .iter()
            .flat_map(|change| {
                let merges = change.get("merges").and_then(Value::as_array);
                let merged = merges
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned);
                let retired = (text(change, "action") == "retire").then(|| text(change, "key"));
                merged.chain(retired).collect::<Vec<_>>()
            })
            .collect();
        let mut profile = String::new();
        for entry in &entries {
            let line = text(entry, "content");
            let has_capacity = profile.chars().count() + line.chars().count() < MAX_PROFILE_CHARS;
            if !retired.contains(&text(entry, "key")) && has_capacity {
                if !profile.is_empty() {
                    profile.push('\n');
                }
                profile.push_str(&line);
            }
        }
        json::tree::put(answer, "profile", json!(profile));
    }
    json::text(&answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_sentences_state_facts() {
        for (sentence, expected) in [
            (
                "I like window seats",
                Some(("likes-window-seats", "The user likes window seats")),
            ),
            (
                "remember that I like window seats",
                Some(("likes-window-seats", "The user likes window seats")),
            ),
            (
                "Please remember: the door code is 1234",
                Some(("the-door-code-is-1234", "The door code is 1234")),
            ),
            (
                "My favourite colour is blue",
                Some(("favourite-colour", "The user's favourite colour is blue")),
            ),
            (
                "Actually, my favourite colour is now green",
                Some(("favourite-colour", "The user's favourite colour is green")),
            ),
            ("Call me Bob", Some(("name", "The user is called Bob"))),
            ("my name is Bob", Some(("name", "The user is called Bob"))),
            ("I moved to Rome", Some(("home", "The user moved to Rome"))),
            ("I think that my best friend in the world is late", None),
            ("Mysteries", None),
            ("I like", None),
            ("Hello", None),
        ] {
            let expected = expected.map(|(key, content)| Statement::Fact {
                key: key.to_owned(),
                content: content.to_owned(),
            });
            assert_eq!(read(sentence), expected, "{sentence}");
        }
        assert_eq!(
            read("Forget my favourite colour"),
            Some(Statement::Forget {
                key: "favourite-colour".to_owned()
            })
        );
        let sentences: Vec<_> =
            statements("Do I like tea? I like tea. My dentist is Dr. Kelara. Bye!").collect();
        let expected = ["I like tea", "My dentist is Dr. Kelara", "Bye"];
        assert_eq!(sentences, expected);
    }
}
