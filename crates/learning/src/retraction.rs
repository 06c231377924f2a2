//! Finds sentences by which a person retracts a statement. Pure.
//!
//! Where a tool or a file is involved, only such a sentence retires or forgets a fact. So its form
//! counts, not only its words: a user who insists on a fact uses the same words.

use crate::evidence::{KeyTerms, without_possessives};
use search::sentences::claims;
use search::words::words;

/// Words without meaning at the start or the end of a sentence.
const POLITE: &[&str] = &[
    "please", "hi", "hello", "hey", "ok", "okay", "oh", "well", "sorry", "actually", "so", "just",
    "thanks",
];

/// Words that take something back, and words for having said it.
const RETRACTING: &[&str] = &["forget", "retract"];
const SPEECH_VERBS: &[&str] = &["said", "told", "mentioned", "wrote"];

/// Words for the user who said it, and other words that may occur next to them.
const SPEAKERS: &[&str] = &["i", "ive", "id"];
const SPEECH_FILLERS: &[&str] = &[
    "what",
    "that",
    "all",
    "everything",
    "anything",
    "you",
    "to",
    "have",
    "had",
    "just",
    "ever",
    "once",
    "earlier",
    "before",
];

/// Words that make a sentence more than a retraction: a condition, or another speaker.
const GOING_ON: &[&str] = &[
    "if",
    "unless",
    "until",
    "when",
    "while",
    "but",
    "or",
    "you",
    "says",
    "said",
    "told",
    "mentioned",
    "stated",
    "wrote",
];

/// The most retractions of one learning pass that are compared with facts.
const MAX_RETRACTIONS: usize = 8;

/// A sentence that revokes something and contains nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct Retraction {
    /// The words for what is retracted.
    pub subject: String,
    key_terms: KeyTerms,
}

impl Retraction {
    /// Whether this text contains all words for what is retracted. "Forget what I said about the
    /// recipe with nuts" revokes no allergy to nuts.
    pub fn is_of(&self, text: &KeyTerms) -> bool {
        self.key_terms.stems.is_subset(&text.stems)
    }

    /// Parses a sentence of one of two forms: "Forget what I said about X", and "What I said about
    /// X is not true". The form distinguishes it from a sentence that insists on X with the same
    /// words.
    fn read(claim: &str) -> Option<Self> {
        let all = words(&without_possessives(claim));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let mut rest = all.as_slice();
        while let [first, after @ ..] = rest
            && POLITE.contains(first)
        {
            rest = after;
        }
        while let [before @ .., last] = rest
            && POLITE.contains(last)
        {
            rest = before;
        }
        let rest = match rest {
            [verb, after @ ..] if RETRACTING.contains(verb) => after,
            [before @ .., "is" | "was", "untrue" | "wrong" | "false"]
            | [before @ .., "is" | "was", "not", "true"]
            | [before @ .., "isnt" | "wasnt", "true"] => before,
            _ => return None,
        };
        let about = rest.iter().position(|word| *word == "about")?;
        let (speech, subject) = rest.split_at_checked(about)?;
        let has = |list: &[&str]| speech.iter().any(|word| list.contains(word));
        let is_speech = speech.iter().all(|word| {
            [SPEECH_VERBS, SPEAKERS, SPEECH_FILLERS]
                .iter()
                .any(|list| list.contains(word))
        });
        let subject = subject.get(1..)?;
        let continues = subject.iter().any(|word| GOING_ON.contains(word));
        if !is_speech || !has(SPEECH_VERBS) || !has(SPEAKERS) || continues {
            return None;
        }
        let subject = subject.join(" ");
        let key_terms = KeyTerms::of(&subject);
        (!key_terms.denies && !key_terms.stems.is_empty()).then_some(Self { subject, key_terms })
    }
}

/// The retractions in these texts.
pub fn find_retractions<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Retraction> {
    let claims = texts.into_iter().flat_map(claims);
    let retractions = claims.filter_map(Retraction::read);
    retractions.take(MAX_RETRACTIONS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_possessive_matches_its_noun() {
        let fact = KeyTerms::of("For your information, my boss's name is Ada.");
        for texts in [
            "What I told you about my boss's name is not true.",
            "Forget what I said about my boss’s name.",
        ] {
            let retractions = find_retractions([texts]);
            assert!(
                retractions.iter().any(|retraction| retraction.is_of(&fact)),
                "{texts}"
            );
        }
    }

    #[test]
    fn a_retraction_has_one_of_two_forms() {
        let fact = KeyTerms::of("The user has a dog called Rex");
        for (texts, expected) in [
            ("What I told you about my dog is not true.", true),
            (
                "Hi! Please forget what I said about Rex; I made it up.",
                true,
            ),
            // This may be about something else, or not a retraction.
            ("Forget what I said about the recipe for my dog.", false),
            ("Forget the dog.", false),
            ("I have no dog any more.", false),
            ("I told you that I have a dog.", false),
            ("What I told you is not true.", false),
            ("Is what I told you about my dog wrong?", false),
            ("Retract what I've told you about Rex, please!", true),
            ("Everything I said about Rex was wrong.", true),
            // A user who insists on a fact retracts nothing.
            ("Don't forget what I told you about my dog Rex.", false),
            ("Never forget what I said about Rex.", false),
            ("Nothing is wrong with what I told you about Rex.", false),
            ("You got it wrong, I said Rex!", false),
            ("Wrong: I told you it's Rex.", false),
            ("What I told you about Rex is not wrong.", false),
            ("What I told you about Rex is true, not wrong.", false),
            ("What I told you about Rex is not untrue.", false),
            ("What I told you about Rex, he says, is wrong.", false),
            ("Forget what I said about Rex if you like.", false),
            ("Forget what they said about Rex.", false),
        ] {
            let retractions = find_retractions([texts]);
            let is_retracted = retractions.iter().any(|retracts| retracts.is_of(&fact));
            assert_eq!(is_retracted, expected, "{texts}");
        }
    }
}
