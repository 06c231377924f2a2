//! Decides whether a consolidated entry needs review, and its source. Pure functions.
//!
//! The model's text is compared with the entries that it comes from: a fact, a title or a
//! profile must not contain anything that is in no entry, and nothing may be removed that
//! the model did not see.

use std::collections::BTreeSet;

use crate::evidence::{KeyTerms, is_fully_supported};
use crate::prompt::is_cut;
use crate::trust::{TrustDecision, key_terms_of};
use memory::numbered_entries::NumberedEntry;
use memory::origin::Origin;
use store::learn_settings::{LearnReview, LearnSettings, TrustedSource};

const REVIEWED: &str = "Every change needs approval: `learn.review` is `propose`.";
const OTHER_WORDS: &str = "It contains more than the entries that it comes from.";
const FEWER_WORDS: &str = "It contains less than the entry that it replaces.";
const CUT: &str = "The model saw only the beginning of an entry that it changes.";
const UNTRUSTED: &str = "It comes from an entry that neither the user nor the operator wrote.";
const LESS_TRUSTED: &str = "The newer entry comes from a less trusted source.";

/// The rules of an agent with these settings.
pub struct ConsolidationTrust<'a> {
    pub settings: &'a LearnSettings,
}

impl ConsolidationTrust<'_> {
    /// Judges the new text of an entry, the first of `sources`, into which the others are
    /// merged.
    pub fn decide_merge(&self, content: &str, sources: &[&NumberedEntry]) -> TrustDecision {
        let least = sources.iter().map(|shown| shown.entry.source);
        if !adds_nothing(content, sources) {
            let source = least
                .chain([Origin::Agent])
                .max_by_key(|source| source.trust_rank());
            return TrustDecision {
                source: source.unwrap_or(Origin::Agent),
                waits: self.or_reviewed(OTHER_WORDS),
            };
        }
        let is_trusted = sources.iter().all(|shown| self.trusts(shown.entry.source));
        let waits = if !is_trusted {
            self.or_reviewed(UNTRUSTED)
        } else if has_cut(sources) {
            self.or_reviewed(CUT)
        } else if omits_terms(content, sources) {
            self.or_reviewed(FEWER_WORDS)
        } else {
            self.reviewed()
        };
        TrustDecision {
            source: least
                .max_by_key(|source| source.trust_rank())
                .unwrap_or(Origin::Agent),
            waits,
        }
    }

    /// Judges a newer entry, the first of the two, that retires an older one. `None`: it is
    /// not newer, so it retires nothing.
    pub fn decide_retired(&self, sources: &[&NumberedEntry]) -> Option<TrustDecision> {
        let [newer, older] = sources else {
            return None;
        };
        let order = |shown: &NumberedEntry| {
            let validity = &shown.entry.validity;
            let since = validity.valid_from.unwrap_or(shown.entry.updated_at);
            (since, shown.number)
        };
        if order(newer) <= order(older) {
            return None;
        }
        let is_trusted = self.trusts(newer.entry.source)
            && newer.entry.source.trust_rank() <= older.entry.source.trust_rank();
        let waits = if !is_trusted {
            self.or_reviewed(LESS_TRUSTED)
        } else if has_cut(sources) {
            self.or_reviewed(CUT)
        } else {
            self.reviewed()
        };
        Some(TrustDecision {
            source: newer.entry.source,
            waits,
        })
    }

    /// Judges a profile's text that was written from these entries.
    pub fn decide_profile(&self, text: &str, shown: &[NumberedEntry]) -> TrustDecision {
        let contents = |is_eligible: &dyn Fn(Origin) -> bool| -> Vec<&str> {
            let eligible = shown.iter().filter(|shown| is_eligible(shown.entry.source));
            eligible.map(|shown| shown.entry.content.as_str()).collect()
        };
        if is_fully_supported(text, contents(&|source| self.trusts(source))) {
            return TrustDecision {
                source: Origin::User,
                waits: self.reviewed(),
            };
        }
        if is_fully_supported(text, contents(&|_| true)) {
            let least = shown.iter().map(|shown| shown.entry.source);
            return TrustDecision {
                source: least
                    .max_by_key(|source| source.trust_rank())
                    .unwrap_or(Origin::Agent),
                waits: self.or_reviewed(UNTRUSTED),
            };
        }
        TrustDecision {
            source: Origin::Agent,
            waits: self.or_reviewed(OTHER_WORDS),
        }
    }

    fn reviewed(&self) -> Option<&'static str> {
        (self.settings.review == LearnReview::Propose).then_some(REVIEWED)
    }

    /// The reason, unless every change needs review anyway.
    fn or_reviewed(&self, reason: &'static str) -> Option<&'static str> {
        Some(self.reviewed().unwrap_or(reason))
    }

    fn trusts(&self, source: Origin) -> bool {
        let names = |trusted| self.settings.trust.0.contains(&trusted);
        match source {
            Origin::User | Origin::Operator => true,
            Origin::Agent => names(TrustedSource::Agent),
            Origin::Tool => names(TrustedSource::Tool),
            Origin::Import => names(TrustedSource::Import),
        }
    }
}

/// The new title of the first of these entries: the model's, if the entries support all of
/// it, and otherwise its own.
pub fn find_title(wanted: Option<&String>, sources: &[&NumberedEntry]) -> Option<String> {
    let key_terms_list: Vec<KeyTerms> = sources
        .iter()
        .map(|shown| key_terms_of(&shown.entry))
        .collect();
    let is_stated = |title: &&String| {
        let key_terms = KeyTerms::of(title);
        let stated: BTreeSet<&String> = key_terms_list
            .iter()
            .flat_map(|stated| &stated.stems)
            .collect();
        let denies = key_terms_list.iter().any(|stated| stated.denies);
        let is_stated = key_terms.stems.iter().all(|word| stated.contains(word));
        !key_terms.hides && is_stated && (denies || !key_terms.denies)
    };
    let own = || {
        sources
            .first()
            .and_then(|source| source.entry.title.clone())
    };
    wanted.filter(is_stated).cloned().or_else(own)
}

/// Whether everything in a text is also in these entries.
fn adds_nothing(content: &str, sources: &[&NumberedEntry]) -> bool {
    let key_terms = KeyTerms::of(content);
    let key_terms_list: Vec<KeyTerms> = sources
        .iter()
        .map(|shown| KeyTerms::of(&shown.entry.content))
        .collect();
    let stated: BTreeSet<&String> = key_terms_list
        .iter()
        .flat_map(|stated| &stated.stems)
        .collect();
    let denies = key_terms_list.iter().any(|stated| stated.denies);
    let is_stated = key_terms.stems.iter().all(|word| stated.contains(word));
    !key_terms.hides && is_stated && key_terms.denies == denies
}

/// Whether a text that merges nothing omits something from its entry.
fn omits_terms(content: &str, sources: &[&NumberedEntry]) -> bool {
    let [source] = sources else {
        return false;
    };
    let before = KeyTerms::of(&source.entry.content).stems;
    let after = KeyTerms::of(content).stems;
    after.is_subset(&before) && after.len() < before.len()
}

fn has_cut(sources: &[&NumberedEntry]) -> bool {
    sources.iter().any(|shown| is_cut(&shown.entry))
}
