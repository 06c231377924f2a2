//! Decides whether a person's words support a text. Pure: compares words and sentences, not
//! their meaning.
//!
//! A sentence supports a text if it contains all meaningful words of the text, in any form and
//! order, and if both contain a negation or neither does. A question supports nothing. So no word
//! of a tool's result gets into a fact that is attributed to the user. Symbols and pictures count as words,
//! and a text with characters that no rule reads (`base/plain_text.rs`) is never supported. One thing
//! is not checked: that the fact has the meaning of the sentence.

use std::collections::BTreeSet;

use base::action::Role;
use base::plain_text::{is_plain, is_symbol, unfolded};
use search::sentences::{claims, sentences};
use search::stem::stem;
use search::words::{MAX_WORD_CHARS, is_cjk, is_stop_word, words};

/// Words that a report adds to the content: who said it, and that it was said.
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

/// Negations.
const DENYING: &[&str] = &[
    "no", "not", "never", "none", "nor", "neither", "without", "nothing", "nobody", "cannot",
    "cant", "dont", "doesnt", "didnt", "isnt", "arent", "wasnt", "werent", "wont", "wouldnt",
    "shouldnt", "couldnt", "hasnt", "havent", "hadnt", "anymore", "stopped", "hate", "hates",
    "dislike", "dislikes",
];

/// Negations of other languages, so that a fact and its denial differ there, too: German, Dutch and
/// Nordic ones, then Romance ones, then Polish, Russian, Turkish, Chinese and Japanese.
const DENYING_ELSEWHERE: &str = "nicht nichts kein keine keinen keinem keiner keines nie niemals niemand ohne niet geen nooit niets zonder inte inga inget aldrig utan ikke ingen aldri uten uden \
     pas jamais rien aucun aucune sans nunca jamas nada ningun ninguna nao nenhum nenhuma sem non niente nessun nessuno nessuna senza \
     nigdy bez не нет никогда без degil yok 不 没 沒 無 无 ない ませ";

fn is_negation(word: &str) -> bool {
    DENYING.contains(&word) || DENYING_ELSEWHERE.split(' ').any(|other| other == word)
}

/// Words which say that something is over or is to be forgotten.
const ENDING: &[&str] = &[
    "forget",
    "delete",
    "remove",
    "erase",
    "retire",
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

/// Means that something is over only after a negation: "no longer".
const LONGER: &str = "longer";

/// The key terms of a text: the stems of its meaningful words, and whether it has a negation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyTerms {
    pub stems: BTreeSet<String>,
    pub denies: bool,
    /// Whether the text has characters that no rule reads.
    pub hides: bool,
}

impl KeyTerms {
    pub fn of(text: &str) -> Self {
        let mut key_terms = Self {
            hides: !is_plain(text),
            ..Self::default()
        };
        let text = without_possessives(&unfolded(text));
        for word in words(&text) {
            let is_filler = |word: &str| is_stop_word(word) || REPORTING.contains(&word);
            if is_negation(&word) {
                key_terms.denies = true;
                if !is_stop_word(&word) {
                    key_terms.stems.insert(stem(&word));
                }
            } else if !is_filler(&word) {
                key_terms.stems.insert(stem(&word));
            }
        }
        let symbols = text.chars().filter(|c| is_symbol(*c));
        key_terms.stems.extend(symbols.map(String::from));
        key_terms
            .stems
            .extend(long_words(&text).map(str::to_lowercase));
        key_terms
    }

    /// Whether this sentence supports the text.
    fn supports(&self, text: &Self) -> bool {
        !text.hides && text.stems.is_subset(&self.stems) && text.denies == self.denies
    }

    /// Whether all key terms of this text occur in the other one. Ignores negations.
    pub fn occurs_in(&self, other: &Self) -> bool {
        !self.stems.is_empty() && self.stems.is_subset(&other.stems)
    }

    pub fn shares_a_word(&self, other: &Self) -> bool {
        !self.stems.is_disjoint(&other.stems)
    }
}

/// Removes the endings of possessives: "boss's" becomes "boss".
pub fn without_possessives(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_in_word = |index: usize| chars.get(index).copied().is_some_and(char::is_alphanumeric);
    let is_possessive = |index: usize| {
        matches!(chars.get(index), Some('\'' | '’'))
            && matches!(chars.get(index + 1), Some('s' | 'S'))
            && index.checked_sub(1).is_some_and(is_in_word)
            && !is_in_word(index + 2)
    };
    let remaining = chars.iter().enumerate().filter(|(index, _)| {
        let follows = index.checked_sub(1).is_some_and(is_possessive);
        !follows && !is_possessive(*index)
    });
    remaining.map(|(_, char)| char).collect()
}

/// The words that [`words`] truncates.
fn long_words(text: &str) -> impl Iterator<Item = &str> {
    let runs = text.split(|c: char| !c.is_alphanumeric() || is_cjk(c));
    runs.filter(|run| run.len() > MAX_WORD_CHARS && run.chars().count() > MAX_WORD_CHARS)
}

/// Whether a sentence of one of these texts supports `text`.
pub fn is_supported_by<'a>(text: &KeyTerms, texts: impl IntoIterator<Item = &'a str>) -> bool {
    if text.stems.is_empty() {
        return false;
    }
    texts.into_iter().any(|texts| {
        claims(texts)
            .into_iter()
            .any(|claim| KeyTerms::of(claim).supports(text))
    })
}

/// Whether a sentence of one of these texts is about `text`: they share a word.
pub fn is_mentioned_in<'a>(text: &KeyTerms, texts: impl IntoIterator<Item = &'a str>) -> bool {
    texts.into_iter().any(|texts| {
        claims(texts)
            .into_iter()
            .any(|claim| KeyTerms::of(claim).shares_a_word(text))
    })
}

/// Whether the sentences of these texts support each sentence of `text`, or each of its parts
/// between commas and the word `and`. A part without meaningful words needs no evidence, but a
/// whole text without any is not supported.
pub fn is_fully_supported<'a>(text: &str, texts: impl IntoIterator<Item = &'a str>) -> bool {
    let known: Vec<KeyTerms> = texts
        .into_iter()
        .flat_map(claims)
        .map(KeyTerms::of)
        .collect();
    let is_supported = |part: &str| {
        let key_terms = KeyTerms::of(part);
        if key_terms.stems.is_empty() {
            !key_terms.denies
        } else {
            known.iter().any(|claim| claim.supports(&key_terms))
        }
    };
    if !is_plain(text) {
        return false;
    }
    let are_parts_supported = |sentence: &str| {
        let mut parts = sentence.split(',').flat_map(|part| part.split(" and "));
        parts.all(is_supported)
    };
    let has_terms = !KeyTerms::of(text).stems.is_empty();
    has_terms
        && sentences(text)
            .into_iter()
            .all(|sentence| is_supported(sentence) || are_parts_supported(sentence))
}

/// Whether a sentence states that something is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It states that something is over.
    Stated,
    /// It denies that: "Don't forget my allergy."
    Denied,
    None,
}

impl Ending {
    fn of(claim: &str) -> Self {
        let mut ending = Self::None;
        let mut is_denied = false;
        for word in words(claim) {
            let word = word.as_str();
            if is_negation(word) {
                is_denied = true;
            } else if ENDING.contains(&word) {
                if is_denied {
                    return Self::Denied;
                }
                ending = Self::Stated;
            } else if word == LONGER && is_denied {
                ending = Self::Stated;
            }
        }
        ending
    }
}

/// The sentences of these texts that share a word with `text` and say that it is over. `or_denies`:
/// a sentence with a negation is enough.
pub fn find_endings<'a>(
    text: &KeyTerms,
    texts: impl IntoIterator<Item = &'a str>,
    or_denies: bool,
) -> Vec<KeyTerms> {
    let ends = |claim: &str| {
        let key_terms = KeyTerms::of(claim);
        let is_end = match Ending::of(claim) {
            Ending::Stated => true,
            Ending::Denied => false,
            Ending::None => or_denies && key_terms.denies,
        };
        (is_end && key_terms.shares_a_word(text)).then_some(key_terms)
    };
    let claims = texts.into_iter().flat_map(claims);
    claims.filter_map(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_supported_only_by_the_words_of_its_evidence() {
        for (text, texts, expected) in [
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
            // A word that the sentence does not contain.
            ("The user likes aisle seats", "I like window seats.", false),
            ("Transfer money to Bob", "Please read my mail.", false),
            // Words of two sentences.
            (
                "Transfer money to Bob",
                "I got money. Bob wants a transfer.",
                false,
            ),
            // Not every full stop ends a sentence.
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
            // A question states nothing.
            (
                "The user likes window seats",
                "Should I like window seats?",
                false,
            ),
            // The thing that is denied.
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
            // A denial means the opposite, in other languages, too.
            (
                "Ich bin allergisch gegen Nüsse",
                "Ich bin allergisch gegen Nüsse.",
                true,
            ),
            (
                "Ich bin allergisch gegen Nüsse",
                "Ich bin nicht allergisch gegen Nüsse.",
                false,
            ),
            ("Ich habe Hunde", "Ich habe keine Hunde.", false),
            (
                "Je suis allergique aux noix",
                "Je ne suis pas allergique aux noix.",
                false,
            ),
            ("Eu como carne", "Eu não como carne.", false),
            ("Я ем мясо", "Я не ем мясо.", false),
            ("我吃花生", "我不吃花生。", false),
            ("我不吃花生", "我不吃花生。", true),
            // No meaningful words.
            ("The user", "I like window seats.", false),
            ("", "I like window seats.", false),
        ] {
            assert_eq!(
                is_supported_by(&KeyTerms::of(text), [texts]),
                expected,
                "{text} | {texts}"
            );
        }
    }

    #[test]
    fn a_sentence_is_related_if_it_shares_a_word() {
        let fact = KeyTerms::of("The user has a dog called Rex");
        assert!(is_mentioned_in(&fact, ["I have no dog any more."]));
        assert!(!is_mentioned_in(&fact, ["I have a cat."]));
        assert!(!is_mentioned_in(&fact, ["Do I have a dog?"]));
        for (texts, ends, ends_or_denies) in [
            ("I have no dog any more.", false, true),
            ("My dog has died.", true, true),
            ("Forget about Rex!", true, true),
            ("I no longer have a dog.", true, true),
            ("I don't have the dog any longer.", true, true),
            ("I walk my dog.", false, false),
            ("I walk my dog longer.", false, false),
            ("I have no cat.", false, false),
            ("Is my dog dead?", false, false),
            ("Der dog ist nicht mehr da.", false, true),
            ("Don't forget my dog.", false, false),
            ("My dog is not dead.", false, false),
        ] {
            let is_ended = |or_denies| !find_endings(&fact, [texts], or_denies).is_empty();
            assert_eq!(is_ended(false), ends, "{texts}");
            assert_eq!(is_ended(true), ends_or_denies, "{texts}");
        }
    }
}
