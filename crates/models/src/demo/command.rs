//! The commands that the demo finds in the first words of a message.

#[derive(Debug, PartialEq)]
pub enum Command<'a> {
    Remember(&'a str),
    /// What do you remember?
    Recall,
    /// A question about the user.
    Ask(&'a str),
    Search(&'a str),
    /// The rest of the message after `load`.
    Load(&'a str),
    Unload(&'a str),
    Call {
        name: &'a str,
        arguments: &'a str,
    },
    Other,
}

impl<'a> Command<'a> {
    pub fn parse(text: &'a str) -> Self {
        let text = text.trim();
        let text = after(text, "please").unwrap_or(text);
        if after(text, "what do you remember").is_some()
            || after(text, "what do you know about me").is_some()
        {
            return Self::Recall;
        }
        if is_about_user(text) {
            return Self::Ask(text);
        }
        if let Some(content) = after(text, "remember") {
            return Self::Remember(after(content, "that").unwrap_or(content));
        }
        if let Some(query) = after(text, "search") {
            return Self::Search(after(query, "for").unwrap_or(query));
        }
        if let Some(words) = after(text, "load") {
            return Self::Load(key(words));
        }
        if let Some(words) = after(text, "unload") {
            return Self::Unload(key(words));
        }
        if let Some(words) = after(text, "call") {
            let (name, arguments) = words
                .find(|c: char| c.is_whitespace() || c == '{')
                .and_then(|end| words.split_at_checked(end))
                .unwrap_or((words, ""));
            let name = name.trim_matches('`');
            if !name.is_empty() {
                let arguments = match arguments.trim() {
                    "" => "{}",
                    arguments => arguments,
                };
                return Self::Call { name, arguments };
            }
        }
        Self::Other
    }
}

/// Whether a text is a question in which the user speaks of themselves.
fn is_about_user(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    text.ends_with('?') && words.any(|word| word == "I" || word.eq_ignore_ascii_case("my"))
}

/// The key, without `the`, `skill` or `the skill` before it.
fn key(words: &str) -> &str {
    let words = after(words, "the").unwrap_or(words);
    let words = after(words, "skill").unwrap_or(words);
    words.trim_matches(|c| matches!(c, '`' | '"' | '.'))
}

/// The rest of the text, if the text begins with these whole words.
fn after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let head = text.get(..words.len())?;
    let rest = text.get(words.len()..)?;
    let continues = rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    if continues || !head.eq_ignore_ascii_case(words) {
        return None;
    }
    Some(rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | ',')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_recognized_at_the_start_only() {
        for (text, expected) in [
            ("remember I like tea", Command::Remember("I like tea")),
            (
                "Please, remember that I like tea",
                Command::Remember("I like tea"),
            ),
            ("REMEMBER: tea", Command::Remember("tea")),
            ("remember", Command::Remember("")),
            ("remembering", Command::Other),
            ("I remember", Command::Other),
            ("What do you remember?", Command::Recall),
            ("what do you remember about tea", Command::Recall),
            (
                "Which seats do I like?",
                Command::Ask("Which seats do I like?"),
            ),
            ("what is my name?", Command::Ask("what is my name?")),
            ("Is it late?", Command::Other),
            ("search for \"green tea\"", Command::Search("\"green tea\"")),
            ("search tea", Command::Search("tea")),
            ("load skill code-review", Command::Load("code-review")),
            ("load the skill `a b`.", Command::Load("a b")),
            ("load skills x", Command::Load("skills x")),
            ("unload x", Command::Unload("x")),
            (
                "call echo {\"a\": 1}",
                Command::Call {
                    name: "echo",
                    arguments: "{\"a\": 1}",
                },
            ),
            (
                "call echo{}",
                Command::Call {
                    name: "echo",
                    arguments: "{}",
                },
            ),
            (
                "call `echo`",
                Command::Call {
                    name: "echo",
                    arguments: "{}",
                },
            ),
            ("call", Command::Other),
            ("", Command::Other),
            ("é", Command::Other),
        ] {
            assert_eq!(Command::parse(text), expected, "{text}");
        }
    }
}
