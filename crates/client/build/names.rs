//! The API's names as Rust writes them.

const KEYWORDS: [&str; 9] = [
    "type", "match", "ref", "self", "use", "where", "loop", "move", "in",
];

/// `already_exists` as `AlreadyExists`.
pub fn pascal(name: &str) -> String {
    let words = name.split(['_', '-']);
    words.map(capitalized).collect()
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The name of a field, if serde's `camelCase` makes the API's name of it.
pub fn rust_name(json: &str) -> Option<String> {
    let mut name = String::new();
    for letter in json.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    if camel(&name) != json {
        return None;
    }
    let is_keyword = KEYWORDS.contains(&name.as_str());
    Some(if is_keyword {
        format!("r#{name}")
    } else {
        name
    })
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.map(capitalized).fold(first, |all, word| all + &word)
}

/// A text as Rust and JSON write it.
pub fn quoted(text: &str) -> String {
    format!("{text:?}")
}
