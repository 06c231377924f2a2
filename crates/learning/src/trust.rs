//! The source of a change, and whether the change counts without anybody's word. Pure.
//!
//! The rule this file protects: what a tool or a file says never counts in the user's name.
//! The model names the events that a change comes from, and may be talked into naming the
//! wrong ones. So the words of the change are held against the words of these events
//! (`evidence.rs`), and a change that the user's words don't bear out is somebody else's:
//! the tool's or the file's if its other words stand there, and else the model's own.

use std::collections::BTreeSet;

use crate::answer::{WantedAction, WantedChange};
use crate::evidence::{Gist, find_endings, is_borne_out, is_spoken_of};
use crate::material::MaterialEvent;
use crate::naming;
use crate::retraction::{Retraction, find_retractions};
use base::plain_text::is_plain;
use memory::entry::Entry;
use memory::origin::Origin;
use store::learn_settings::{LearnReview, LearnSettings, TrustedSource};

/// The verdict of the rules about a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub source: Origin,
    /// Why the change waits. `None`: it counts at once.
    pub waits: Option<&'static str>,
}

const REVIEWED: &str = "Every change needs approval: `learn.review` is `propose`.";
const NOT_USERS: &str = "It does not come only from the user's own words.";
const NOT_BORNE_OUT: &str =
    "None of the user's messages that it is based on states it in these words.";
const TAINTED: &str = "A tool or a file was also involved, and it would change a different fact \
                       from the one that the user mentioned.";

const HIDES: &str = "It contains characters that the automatic check can't compare: approve it only if you know what they mean.";

const NAMED_BY_AGENT: &str = "The agent stated this fact, and the user did not.";

/// Judges a change. `changed`: the entry that it replaces, retires or forgets. `alike`: the
/// entries that have words of what the user takes back.
pub fn judge(
    change: &WantedChange,
    changed: Option<&Entry>,
    alike: &[Entry],
    shown: &[MaterialEvent],
    settings: &LearnSettings,
) -> Judgement {
    let (source, doubt) = find_source(change, changed, alike, shown);
    let is_trusted = match source {
        Origin::User => doubt.is_none(),
        Origin::Agent => trusts(settings, TrustedSource::Agent),
        Origin::Tool => trusts(settings, TrustedSource::Tool),
        Origin::Import => trusts(settings, TrustedSource::Import),
        Origin::Operator => false,
    };
    let waits = match settings.review {
        LearnReview::Propose => Some(REVIEWED),
        LearnReview::Auto if !is_plain(&change.content) => Some(HIDES),
        LearnReview::Auto if is_trusted => None,
        LearnReview::Auto => Some(doubt.unwrap_or(NOT_USERS)),
    };
    Judgement { source, waits }
}

fn trusts(settings: &LearnSettings, source: TrustedSource) -> bool {
    settings.trust.0.contains(&source)
}

/// The gist of an entry, with its key and its title.
pub fn gist_of(entry: &Entry) -> Gist {
    let title = entry.title.as_deref().unwrap_or_default();
    Gist::of(&format!("{} {title} {}", entry.key, entry.content))
}

/// Whether a text names an entry: its key, or all that its text says.
fn names(said: &Gist, entry: &Entry) -> bool {
    let gists = [Gist::of(&entry.key), Gist::of(&entry.content)];
    gists.iter().any(|gist| gist.stands_in(said))
}

/// Whether this is taken back, and no other entry can be meant.
fn pins(retraction: &Retraction, entry: &Entry, alike: &[Entry]) -> bool {
    let mut others = alike.iter().filter(|other| other.key != entry.key);
    retraction.is_of(&gist_of(entry)) && !others.any(|other| retraction.is_of(&gist_of(other)))
}

/// The source of a change, and the reason that speaks against applying it.
fn find_source(
    change: &WantedChange,
    changed: Option<&Entry>,
    alike: &[Entry],
    shown: &[MaterialEvent],
) -> (Origin, Option<&'static str>) {
    let named: Vec<&MaterialEvent> = change
        .events
        .iter()
        .filter_map(|place| shown.get(*place))
        .collect();
    // The least trusted of those that the model names itself.
    for voice in [Origin::Tool, Origin::Import] {
        if named.iter().any(|event| event.voice == voice) {
            return (voice, Some(NOT_USERS));
        }
    }
    let is_users_alone = named.iter().all(|event| event.voice == Origin::User);
    let said = || named.iter().map(|event| event.text.as_str());
    let others: Vec<&MaterialEvent> = shown
        .iter()
        .filter(|event| matches!(event.voice, Origin::Tool | Origin::Import))
        .collect();
    // A text that an earlier look read may come back by the agent's mouth.
    let is_named_by_agent = changed.is_some_and(|entry| {
        let mut agents = shown.iter().filter(|event| event.voice == Origin::Agent);
        agents.any(|event| names(&Gist::of(&event.text), entry))
    });
    match change.action {
        WantedAction::Add | WantedAction::Replace => {
            let gist = Gist::of(&change.content);
            if is_users_alone && is_borne_out(&gist, said()) {
                // The words are the user's. Which entry they overwrite is the model's word.
                let is_apart = changed.is_some_and(|entry| !is_spoken_of(&gist_of(entry), said()));
                return match (is_apart, others.first()) {
                    (true, Some(other)) => (other.voice, Some(TAINTED)),
                    (true, None) if is_named_by_agent => (Origin::Agent, Some(NAMED_BY_AGENT)),
                    (true, None) | (false, _) => (Origin::User, None),
                };
            }
            (find_foreign(&gist, shown, &others), Some(NOT_BORNE_OUT))
        }
        // These write no words that could be held against the user's. So where somebody else
        // spoke of the entry, only a sentence that takes it back and says nothing else counts.
        WantedAction::Retire | WantedAction::Forget => {
            let nobodys = (Origin::Agent, Some(NOT_BORNE_OUT));
            let Some(entry) = changed else {
                return nobodys;
            };
            let retractions = match is_users_alone {
                true => find_retractions(said()),
                false => Vec::new(),
            };
            if retractions.iter().any(|taken| pins(taken, entry, alike)) {
                return (Origin::User, None);
            }
            if let Some(other) = others.first() {
                return (other.voice, Some(TAINTED));
            }
            let about = gist_of(entry);
            // A retired fact can be looked up, so a sentence that denies it is enough.
            let or_denies = change.action == WantedAction::Retire;
            let endings = find_endings(&about, said(), or_denies);
            let is_named_by_user = endings.iter().any(|ending| names(ending, entry));
            let is_meant =
                !endings.is_empty() || retractions.iter().any(|taken| taken.is_of(&about));
            if !is_users_alone || !is_meant {
                return nobodys;
            }
            match is_named_by_agent && !is_named_by_user {
                true => (Origin::Agent, Some(NAMED_BY_AGENT)),
                false => (Origin::User, None),
            }
        }
    }
}

/// The stems of all that the user said here.
fn users_stems(shown: &[MaterialEvent]) -> BTreeSet<String> {
    let users = shown.iter().filter(|event| event.voice == Origin::User);
    users
        .flat_map(|event| Gist::of(&event.text).stems)
        .collect()
}

/// The sources of the words that the user did not say.
fn find_foreign(gist: &Gist, shown: &[MaterialEvent], others: &[&MaterialEvent]) -> Origin {
    let users = users_stems(shown);
    let foreign: BTreeSet<&String> = gist.stems.difference(&users).collect();
    let speaks = |event: &&MaterialEvent| {
        let stems = Gist::of(&event.text).stems;
        // Words of the user's that no sentence of theirs puts so may be another's sentence.
        foreign.is_empty() || foreign.iter().any(|word| stems.contains(*word))
    };
    let voices: Vec<Origin> = others
        .iter()
        .copied()
        .filter(speaks)
        .map(|event| event.voice)
        .collect();
    for voice in [Origin::Tool, Origin::Import] {
        if voices.contains(&voice) {
            return voice;
        }
    }
    Origin::Agent
}

/// Whether a key or a title of a fact says no more than the fact, or than a sentence of the user's.
pub fn is_supported_name(name: &str, content: &str, shown: &[MaterialEvent]) -> bool {
    let users = shown.iter().filter(|event| event.voice == Origin::User);
    naming::is_supported(name, content, users.map(|event| event.text.as_str()))
}
