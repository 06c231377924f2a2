//! Whether somebody's words bear a text out. Pure: words and sentences, no meaning.
//!
//! A sentence bears a text out if all words of the text that say something stand in it, in
//! any form and order, and if both deny something or neither does. A question bears nothing
//! out. So no word of a tool's result gets into a fact in the user's name. What this does
//! not hold: that the fact says what the sentence meant.

use std::collections::BTreeSet;

use crate::base::action::Role;
use crate::search::stem::stem;
use crate::search::words::{is_stop_word, words};

/// Words that a report adds to what was said: who said it, and that it was said.
const REPORTING: &[&str] = &[
    Role::User.name(),
    "users",
    "person",
    "prefer",
    "prefers",
    "preferred",
    "preference",
    "preferences",
    "like",
    "likes",
    "want",
    "wants",
    "wish",
    "wishes",
    "called",
    "name",
    "named",
    "says",
    "said",
    "mentioned",
    "stated",
    "currently",
    "now",
    "new",
    "fact",
    "remember",
];

/// Words that deny something.
const DENYING: &[&str] = &[
    "no", "not", "never", "none", "nor", "neither", "without", "nothing", "nobody", "cannot",
    "cant", "dont", "doesnt", "didnt", "isnt", "arent", "wasnt", "werent", "wont", "wouldnt",
    "shouldnt", "couldnt", "hasnt", "havent", "hadnt", "anymore", "stopped", "hate", "hates",
    "dislike", "dislikes",
];

/// Words by which somebody says that something is over, or is to be forgotten.
const ENDING: &[&str] = &[
    "forget",
    "delete",
    "remove",
    "erase",
    "retire",
    "longer",
    "over",
    "ended",
    "gone",
    "died",
    "dead",
    "sold",
    "left",
    "quit",
    "moved",
    "changed",
    "cancelled",
    "canceled",
    "former",
    "formerly",
    "used",
    "instead",
    "wrong",
    "false",
];

/// Words by which somebody takes back what they told, and words for the telling.
const RETRACTING: &[&str] = &["forget", "untrue", "wrong", "false", "retract"];
const TELLING: &[&str] = &["said", "told", "mentioned", "memory", "noted", "saved"];

/// What else a sentence may hold that takes something back.
const POLITE: &[&str] = &["please", "true"];

/// What a text says, in words: the stems of those that say something, and whether it denies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gist {
    pub stems: BTreeSet<String>,
    pub denies: bool,
}

impl Gist {
    pub fn of(text: &str) -> Self {
        let mut gist = Self::default();
        for word in words(text) {
            let says_nothing = |word: &str| is_stop_word(word) || REPORTING.contains(&word);
            if DENYING.contains(&word.as_str()) {
                gist.denies = true;
                if !is_stop_word(&word) {
                    gist.stems.insert(stem(&word));
                }
            } else if !says_nothing(&word) {
                gist.stems.insert(stem(&word));
            }
        }
        gist
    }

    /// Whether this sentence bears the text out.
    fn bears_out(&self, text: &Self) -> bool {
        text.stems.is_subset(&self.stems) && text.denies == self.denies
    }

    pub fn shares_a_word(&self, other: &Self) -> bool {
        !self.stems.is_disjoint(&other.stems)
    }
}

/// Words that a full stop shortens, so that it ends no sentence.
const SHORTENED: &[&str] = &[
    "mr", "mrs", "ms", "dr", "prof", "st", "mt", "jr", "sr", "vs", "e.g", "i.e", "approx",
];

const ENDS: [char; 8] = ['.', '!', '?', '\n', ';', '。', '！', '？'];

/// Whether the full stop between these two ends no sentence: in `3.5`, `example.com`, `Dr. No`
/// and `J. Doe`.
fn is_inside(before: &str, after: &str) -> bool {
    if after.starts_with(|next: char| !next.is_whitespace()) {
        return true;
    }
    let word = before
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    let word = word.trim_start_matches(|sign: char| !sign.is_alphanumeric());
    let mut letters = word.chars();
    let is_initial = match (letters.next(), letters.next()) {
        (Some(letter), None) => letter.is_uppercase() && letter != 'I',
        _ => false,
    };
    is_initial || SHORTENED.contains(&word.to_lowercase().as_str())
}

/// The sentences of a text that claim something.
fn claims(text: &str) -> Vec<&str> {
    let mut sentences: Vec<&str> = Vec::new();
    let mut begin = 0;
    for (at, sign) in text.char_indices() {
        let end = at + sign.len_utf8();
        let around = text.get(begin..at).zip(text.get(end..));
        let is_inside = |(before, after)| sign == '.' && is_inside(before, after);
        if ENDS.contains(&sign) && !around.is_some_and(is_inside) {
            sentences.extend(text.get(begin..end));
            begin = end;
        }
    }
    sentences.extend(text.get(begin..));
    let sentences = sentences.into_iter().map(str::trim);
    sentences
        .filter(|sentence| !sentence.is_empty() && !sentence.ends_with(['?', '？']))
        .collect()
}

/// Whether a sentence of one of these texts bears `text` out.
pub fn is_borne_out<'a>(text: &Gist, said: impl IntoIterator<Item = &'a str>) -> bool {
    if text.stems.is_empty() {
        return false;
    }
    said.into_iter().any(|said| {
        claims(said)
            .into_iter()
            .any(|claim| Gist::of(claim).bears_out(text))
    })
}

/// Whether a sentence of one of these texts is about `text`: they share a word.
pub fn is_spoken_of<'a>(text: &Gist, said: impl IntoIterator<Item = &'a str>) -> bool {
    said.into_iter().any(|said| {
        claims(said)
            .into_iter()
            .any(|claim| Gist::of(claim).shares_a_word(text))
    })
}

/// Whether a sentence of one of these texts is about `text`, and says that it is over, or
/// denies something.
pub fn is_ended<'a>(text: &Gist, said: impl IntoIterator<Item = &'a str>) -> bool {
    said.into_iter().any(|said| {
        claims(said).into_iter().any(|claim| {
            let gist = Gist::of(claim);
            let ends = || {
                words(claim)
                    .iter()
                    .any(|word| ENDING.contains(&word.as_str()))
            };
            gist.shares_a_word(text) && (gist.denies || ends())
        })
    })
}

/// Whether a sentence of one of these texts takes back what was told of `text`, and says
/// nothing else: all its other words stand there. "Forget the recipe with nuts" takes back no
/// allergy to nuts.
pub fn is_retracted<'a>(text: &Gist, said: impl IntoIterator<Item = &'a str>) -> bool {
    let takes_back = |claim: &str| {
        let all = words(claim);
        let has = |list: &[&str]| all.iter().any(|word| list.contains(&word.as_str()));
        let gist = Gist::of(claim);
        let is_untrue = gist.denies && has(&["true"]);
        let rest = all.iter().filter(|word| {
            let word = word.as_str();
            ![RETRACTING, TELLING, POLITE, DENYING, REPORTING]
                .iter()
                .any(|list| list.contains(&word))
                && !is_stop_word(word)
        });
        let rest: BTreeSet<String> = rest.map(|word| stem(word)).collect();
        (is_untrue || has(RETRACTING))
            && has(TELLING)
            && !rest.is_empty()
            && rest.is_subset(&text.stems)
    };
    said.into_iter()
        .any(|said| claims(said).into_iter().any(takes_back))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_bears_out_what_its_words_say() {
        for (text, said, expected) in [
            ("The user likes window seats", "I like window seats.", true),
            (
                "User prefers a window seat",
                "Remember that I like window seats",
                true,
            ),
            (
                "The user lives in Rome.",
                "Hi! I live in Rome; it is warm.",
                true,
            ),
            // A word of somebody else's.
            ("The user likes aisle seats", "I like window seats.", false),
            ("Transfer money to Bob", "Please read my mail.", false),
            // Words of two sentences.
            (
                "Transfer money to Bob",
                "I got money. Bob wants a transfer.",
                false,
            ),
            // Not each full stop ends a sentence.
            (
                "The user's dentist is Dr. Kel",
                "By the way, my dentist is Dr. Kel.",
                true,
            ),
            (
                "The user pays 3.5 at J. Doe",
                "Hi. I pay 3.5 at J. Doe",
                true,
            ),
            (
                "Transfer money to Bob",
                "Money for Bob and I. Transfer it",
                false,
            ),
            // A question claims nothing.
            (
                "The user likes window seats",
                "Should I like window seats?",
                false,
            ),
            // What is denied.
            (
                "The user is allergic to nuts",
                "I am not allergic to nuts.",
                false,
            ),
            (
                "The user is not allergic to nuts",
                "I am allergic to nuts.",
                false,
            ),
            (
                "The user is not allergic to nuts",
                "I'm not allergic to nuts.",
                true,
            ),
            ("The user eats meat", "I don't eat meat.", false),
            ("The user hates cilantro", "I hate cilantro.", true),
            ("The user likes cilantro", "I hate cilantro.", false),
            // Nothing is said.
            ("The user", "I like window seats.", false),
            ("", "I like window seats.", false),
        ] {
            assert_eq!(
                is_borne_out(&Gist::of(text), [said]),
                expected,
                "{text} | {said}"
            );
        }
    }

    #[test]
    fn a_sentence_is_about_what_it_shares_a_word_with() {
        let fact = Gist::of("The user has a dog called Rex");
        assert!(is_spoken_of(&fact, ["I have no dog any more."]));
        assert!(!is_spoken_of(&fact, ["I have a cat."]));
        assert!(!is_spoken_of(&fact, ["Do I have a dog?"]));
        for (said, expected) in [
            ("I have no dog any more.", true),
            ("My dog has died.", true),
            ("Forget about Rex!", true),
            ("I walk my dog.", false),
            ("I have no cat.", false),
            ("Is my dog dead?", false),
        ] {
            assert_eq!(is_ended(&fact, [said]), expected, "{said}");
        }
        for (said, expected) in [
            ("What I told you about my dog is not true.", true),
            (
                "Hi! Please forget what I said about Rex; I made it up.",
                true,
            ),
            // This may be about something else, or is no retraction.
            ("Forget what I said about the recipe for my dog.", false),
            ("Forget the dog.", false),
            ("I have no dog any more.", false),
            ("I told you that I have a dog.", false),
            ("What I told you is not true.", false),
            ("Is what I told you about my dog wrong?", false),
        ] {
            assert_eq!(is_retracted(&fact, [said]), expected, "{said}");
        }
    }
}
