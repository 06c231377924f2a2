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

/// The sentences of a text that claim something.
fn claims(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(['.', '!', '?', '\n', ';', '。', '！', '？'])
        .map(str::trim)
        .filter(|sentence| !sentence.is_empty() && !sentence.ends_with(['?', '？']))
}

/// Whether a sentence of one of these texts bears `text` out.
pub fn is_borne_out<'a>(text: &Gist, said: impl IntoIterator<Item = &'a str>) -> bool {
    if text.stems.is_empty() {
        return false;
    }
    said.into_iter()
        .any(|said| claims(said).any(|claim| Gist::of(claim).bears_out(text)))
}

/// Whether a sentence of one of these texts is about `text`: they share a word.
pub fn is_spoken_of<'a>(text: &Gist, said: impl IntoIterator<Item = &'a str>) -> bool {
    said.into_iter()
        .any(|said| claims(said).any(|claim| Gist::of(claim).shares_a_word(text)))
}

/// Whether a sentence of one of these texts is about `text`, and says that it is over, or
/// denies something.
pub fn is_ended<'a>(text: &Gist, said: impl IntoIterator<Item = &'a str>) -> bool {
    said.into_iter().any(|said| {
        claims(said).any(|claim| {
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
    }
}
