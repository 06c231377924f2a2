//! Decides the source of a learned change, and whether it applies without review. Pure.
//!
//! The rule this file protects: the content of a tool or a file never counts as the user's. The
//! model names the events that a change is based on, and may be tricked into naming the wrong ones.
//! So the words of the change are compared with the words of these events (`evidence.rs`). A change
//! that the user's words don't support has another source: the tool or the file, if the other words
//! of the change occur there, and else the model itself.

use std::collections::BTreeSet;

use crate::answer::{WantedAction, WantedChange};
use crate::evidence::{KeyTerms, find_endings, is_mentioned_in, is_supported_by};
use crate::material::MaterialEvent;
use crate::naming;
use crate::retraction::{Retraction, find_retractions};
use base::plain_text::is_plain;
use memory::entry::Entry;
use memory::origin::Origin;
use store::learn_settings::{LearnReview, LearnSettings, TrustedSource};

/// The decision on a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustDecision {
    pub source: Origin,
    /// Why the change needs review. `None`: it applies at once.
    pub waits: Option<&'static str>,
}

const REVIEWED: &str = "Every change needs approval: `learn.review` is `propose`.";
const NOT_USERS: &str = "It does not come only from the user's own words.";
const NOT_SUPPORTED: &str =
    "None of the user's messages that it is based on states it in these words.";
const TAINTED: &str = "A tool or a file was also involved, and it would change a different fact \
                       from the one that the user mentioned.";

const UNCOMPARABLE: &str = "It contains characters that the automatic check can't compare: approve it only if you know what they mean.";

const NAMED_BY_AGENT: &str = "The agent stated this fact, and the user did not.";

/// Judges a change. `changed`: the entry that it replaces, retires or forgets. `alike`: the entries
/// that share words with what the user revokes.
pub fn decide_trust(
    change: &WantedChange,
    changed: Option<&Entry>,
    alike: &[Entry],
    shown: &[MaterialEvent],
    settings: &LearnSettings,
) -> TrustDecision {
    let (source, objection) = find_source(change, changed, alike, shown);
    let is_trusted = match source {
        Origin::User => objection.is_none(),
        Origin::Agent => trusts(settings, TrustedSource::Agent),
        Origin::Tool => trusts(settings, TrustedSource::Tool),
        Origin::Import => trusts(settings, TrustedSource::Import),
        Origin::Operator => false,
    };
    let waits = match settings.review {
        LearnReview::Propose => Some(REVIEWED),
        LearnReview::Auto if !is_plain(&change.content) => Some(UNCOMPARABLE),
        LearnReview::Auto if is_trusted => None,
        LearnReview::Auto => Some(objection.unwrap_or(NOT_USERS)),
    };
    TrustDecision { source, waits }
}

fn trusts(settings: &LearnSettings, source: TrustedSource) -> bool {
    settings.trust.0.contains(&source)
}

/// The key terms of an entry, including its key and its title.
pub fn key_terms_of(entry: &Entry) -> KeyTerms {
    let title = entry.title.as_deref().unwrap_or_default();
    KeyTerms::of(&format!("{} {title} {}", entry.key, entry.content))
}

/// Whether a text names an entry: it contains all key terms of the entry's key or of its content.
fn names(text: &KeyTerms, entry: &Entry) -> bool {
    let names_of_entry = [KeyTerms::of(&entry.key), KeyTerms::of(&entry.content)];
    names_of_entry
        .iter()
        .any(|key_terms| key_terms.occurs_in(text))
}

/// Whether the sentence takes this entry back and can't mean another one.
fn pins(retraction: &Retraction, entry: &Entry, alike: &[Entry]) -> bool {
    let mut others = alike.iter().filter(|other| other.key != entry.key);
    retraction.is_of(&key_terms_of(entry))
        && !others.any(|other| retraction.is_of(&key_terms_of(other)))
}

/// The source of a change, and the reason against applying it.
fn find_source(
    change: &WantedChange,
    changed: Option<&Entry>,
    alike: &[Entry],
    shown: &[MaterialEvent],
) -> (Origin, Option<&'static str>) {
    let named: Vec<&MaterialEvent> = change
        .events
        .iter()
        .filter_map(|index| shown.get(*index))
        .collect();
    // The least trusted source among the events that the model names.
    for speaker in [Origin::Tool, Origin::Import] {
        if named.iter().any(|event| event.speaker == speaker) {
            return (speaker, Some(NOT_USERS));
        }
    }
    let is_users_alone = named.iter().all(|event| event.speaker == Origin::User);
    let users_texts = || named.iter().map(|event| event.text.as_str());
    let others: Vec<&MaterialEvent> = shown
        .iter()
        .filter(|event| matches!(event.speaker, Origin::Tool | Origin::Import))
        .collect();
    // The agent may repeat a text that an earlier learning pass read.
    let is_named_by_agent = changed.is_some_and(|entry| {
        let mut agents = shown.iter().filter(|event| event.speaker == Origin::Agent);
        agents.any(|event| names(&KeyTerms::of(&event.text), entry))
    });
    match change.action {
        WantedAction::Add | WantedAction::Replace => {
            let key_terms = KeyTerms::of(&change.content);
            if is_users_alone && is_supported_by(&key_terms, users_texts()) {
                // The words are the user's. But only the model names the entry that they overwrite.
                let is_apart = changed
                    .is_some_and(|entry| !is_mentioned_in(&key_terms_of(entry), users_texts()));
                return match (is_apart, others.first()) {
                    (true, Some(other)) => (other.speaker, Some(TAINTED)),
                    (true, None) if is_named_by_agent => (Origin::Agent, Some(NAMED_BY_AGENT)),
                    (true, None) | (false, _) => (Origin::User, None),
                };
            }
            (
                find_foreign(&key_terms, shown, &others),
                Some(NOT_SUPPORTED),
            )
        }
        // These actions write no words to compare with the user's. So if a tool or a file is
        // involved, only a sentence that revokes the entry and contains nothing else counts.
        WantedAction::Retire | WantedAction::Forget => {
            let unsupported = (Origin::Agent, Some(NOT_SUPPORTED));
            let Some(entry) = changed else {
                return unsupported;
            };
            let retractions = if is_users_alone {
                find_retractions(users_texts())
            } else {
                Vec::new()
            };
            if retractions
                .iter()
                .any(|retraction| pins(retraction, entry, alike))
            {
                return (Origin::User, None);
            }
            if let Some(other) = others.first() {
                return (other.speaker, Some(TAINTED));
            }
            let about = key_terms_of(entry);
            // A retired fact can be looked up, so a sentence that denies it is enough.
            let or_denies = change.action == WantedAction::Retire;
            let endings = find_endings(&about, users_texts(), or_denies);
            let is_named_by_user = endings.iter().any(|ending| names(ending, entry));
            let is_eligible = !endings.is_empty()
                || retractions
                    .iter()
                    .any(|retraction| retraction.is_of(&about));
            if !is_users_alone || !is_eligible {
                return unsupported;
            }
            if is_named_by_agent && !is_named_by_user {
                (Origin::Agent, Some(NAMED_BY_AGENT))
            } else {
                (Origin::User, None)
            }
        }
    }
}

/// The stems of everything that the user said here.
fn users_stems(shown: &[MaterialEvent]) -> BTreeSet<String> {
    let users = shown.iter().filter(|event| event.speaker == Origin::User);
    users
        .flat_map(|event| KeyTerms::of(&event.text).stems)
        .collect()
}

/// The source of the words that the user did not say.
fn find_foreign(
    key_terms: &KeyTerms,
    shown: &[MaterialEvent],
    others: &[&MaterialEvent],
) -> Origin {
    let users = users_stems(shown);
    let foreign: BTreeSet<&String> = key_terms.stems.difference(&users).collect();
    let is_source = |event: &&MaterialEvent| {
        let stems = KeyTerms::of(&event.text).stems;
        // If all words are the user's, but from different sentences, another may have combined
        // them.
        foreign.is_empty() || foreign.iter().any(|word| stems.contains(*word))
    };
    let sources: Vec<Origin> = others
        .iter()
        .copied()
        .filter(is_source)
        .map(|event| event.speaker)
        .collect();
    for speaker in [Origin::Tool, Origin::Import] {
        if sources.contains(&speaker) {
            return speaker;
        }
    }
    Origin::Agent
}

/// Whether a fact's key or title adds nothing to the fact, or to a sentence of the user's.
pub fn is_supported_name(name: &str, content: &str, shown: &[MaterialEvent]) -> bool {
    let users = shown.iter().filter(|event| event.speaker == Origin::User);
    naming::is_supported(name, content, users.map(|event| event.text.as_str()))
}
