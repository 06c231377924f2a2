//! Ranks the candidates by their words. Pure: the caller passes the words in.
//!
//! A rare word counts more than a common one, and a message scores higher the more rare
//! words it holds. Turns of a dialogue are short, so length lowers a score only a little.
//! An answer stands next to its question, so a strong hit adds some of its score to its
//! neighbours.

use std::collections::HashMap;

use super::stem::{may_begin_stem, may_have_stem, stem};

/// How fast a repeated word stops adding, and how much length counts.
const K1: f64 = 1.2;
const B: f64 = 0.35;

/// Words of a typical turn, to which a text's length is compared.
const TYPICAL_WORDS: f64 = 30.0;

/// The weight of a word found in who, where or when; a word in the text has about 1.
const ABOUT_WEIGHT: f64 = 0.7;

/// The least share of a score that stays when few of the query's words are found.
const LEAST_COVERAGE: f64 = 0.4;

/// The bonus for two of the query's words side by side, as a share of the lower rarity.
const TOGETHER_BONUS: f64 = 0.35;

/// The share of its score that a neighbour adds, one turn away and two turns away.
const NEAR_SHARE: [f64; 2] = [0.25, 0.1];

/// The share of its score that a question adds to the turn right after it, its answer.
const ANSWER_SHARE: f64 = 0.5;

/// A turn that ends in a question rarely holds the answer, so its score is lowered.
const QUESTION_FACTOR: f64 = 0.9;

/// An event that may match, reduced to what its text holds of the query's words.
#[derive(Debug)]
pub struct Candidate {
    pub session: i64,
    pub seq: i64,
    /// How many words the text has, and how often it holds each of the query's words.
    length: usize,
    counts: Vec<usize>,
    /// Which of the query's words are found in who, where or when.
    is_about: Vec<bool>,
    /// Which of the query's words stand beside the query's next word.
    is_together: Vec<bool>,
    /// How many of the query's prefixes the text holds.
    other_hits: usize,
    pub is_question: bool,
    pub created_at: i64,
    /// The index's score. It counts only if the part of the text that was read holds no
    /// word of the query.
    pub index_score: f64,
}

/// Reads a candidate's words, in order.
pub struct TermCounter<'a> {
    terms: &'a [QueryTerm],
    prefixes: &'a [String],
    length: usize,
    counts: Vec<usize>,
    is_about: Vec<bool>,
    is_together: Vec<bool>,
    /// Which of the prefixes begin one of the words.
    is_begun: Vec<bool>,
    /// By its first byte, whether a word may be one of the query's words.
    may_begin: [bool; 256],
    /// The terms that the two previous words matched.
    before: [Option<usize>; 2],
}

impl<'a> TermCounter<'a> {
    /// Counts the query's words, and the beginnings of words that it asks for.
    pub fn new(terms: &'a [QueryTerm], prefixes: &'a [String]) -> Self {
        let mut may_begin = [false; 256];
        for term in terms {
            for (byte, may_begin) in (0..=u8::MAX).zip(&mut may_begin) {
                *may_begin |= term.stem.is_empty() || may_begin_stem(byte, &term.stem);
            }
        }
        Self {
            terms,
            prefixes,
            may_begin,
            length: 0,
            counts: vec![0; terms.len()],
            is_about: vec![false; terms.len()],
            is_together: vec![false; terms.len()],
            is_begun: vec![false; prefixes.len()],
            before: [None; 2],
        }
    }

    /// Takes the next word of the text. Few words of a text are stemmed: a word that can't
    /// have the stem of any of the query's words is only counted.
    pub fn take(&mut self, word: &str) {
        let first = word.bytes().next().unwrap_or_default();
        let may_be_found = self.may_begin.get(usize::from(first)) == Some(&true)
            && self
                .terms
                .iter()
                .any(|term| may_have_stem(word, &term.stem));
        let found = match may_be_found {
            true => self.find(&stem(word)),
            false => None,
        };
        self.count(found);
        for (prefix, is_begun) in self.prefixes.iter().zip(&mut self.is_begun) {
            *is_begun |= word.starts_with(prefix.as_str());
        }
    }

    fn find(&self, stem: &str) -> Option<usize> {
        self.terms.iter().position(|term| term.stem == stem)
    }

    /// Counts a word, and the term that the word matches.
    fn count(&mut self, found: Option<usize>) {
        self.length += 1;
        if let Some(found) = found {
            if let Some(count) = self.counts.get_mut(found) {
                *count += 1;
            }
            if let Some(first) = found.checked_sub(1)
                && self.before.contains(&Some(first))
                && let Some(is_together) = self.is_together.get_mut(first)
            {
                *is_together = true;
            }
        }
        self.before = [found, self.before[0]];
    }

    /// Takes a stem from who, where or when.
    pub fn take_about(&mut self, stem: &str) {
        if let Some(is_about) = self
            .find(stem)
            .and_then(|found| self.is_about.get_mut(found))
        {
            *is_about = true;
        }
    }

    pub fn end(self, session: i64, seq: i64, created_at: i64, index_score: f64) -> Candidate {
        Candidate {
            session,
            seq,
            length: self.length,
            counts: self.counts,
            is_about: self.is_about,
            is_together: self.is_together,
            other_hits: self.is_begun.iter().filter(|is_begun| **is_begun).count(),
            is_question: false,
            created_at,
            index_score,
        }
    }
}

/// A word of the query with its rarity.
pub struct QueryTerm {
    pub stem: String,
    pub rarity: f64,
}

/// Rarity of a word that stands in `found` of `all` events.
pub fn rarity(found: i64, all: i64) -> f64 {
    let (found, all) = (found as f64, all.max(found) as f64);
    (1.0 + (all - found + 0.5) / (found + 0.5)).ln()
}

/// One score per candidate, in the order of `candidates`.
pub fn scores(candidates: &[Candidate], terms: &[QueryTerm]) -> Vec<f64> {
    let own: Vec<f64> = candidates
        .iter()
        .map(|candidate| own_score(candidate, terms))
        .collect();
    let places: HashMap<(i64, i64), (f64, bool)> = candidates
        .iter()
        .zip(&own)
        .map(|(candidate, score)| {
            (
                (candidate.session, candidate.seq),
                (*score, candidate.is_question),
            )
        })
        .collect();
    let newest = candidates
        .iter()
        .map(|candidate| candidate.created_at)
        .max()
        .unwrap_or(0);
    candidates
        .iter()
        .zip(&own)
        .map(|(candidate, score)| {
            let mut lent = 0.0_f64;
            for (distance, share) in (1..).zip(NEAR_SHARE) {
                for seq in [candidate.seq - distance, candidate.seq + distance] {
                    let neighbour = places.get(&(candidate.session, seq));
                    let (score, asks) = neighbour.copied().unwrap_or_default();
                    let answers = asks && seq == candidate.seq - 1;
                    lent = lent.max(if answers { ANSWER_SHARE } else { share } * score);
                }
            }
            // Among equals the later event wins: this bonus is far below any meaningful
            // difference.
            let age_days = (newest - candidate.created_at) as f64 / 86_400_000.0;
            score + lent + 1e-6 / (1.0 + age_days)
        })
        .collect()
}

fn own_score(candidate: &Candidate, terms: &[QueryTerm]) -> f64 {
    let length = candidate.length as f64;
    let mut score = 0.0;
    let mut found = 0.0;
    let all: f64 = terms.iter().map(|term| term.rarity).sum();
    let read = candidate.counts.iter().zip(&candidate.is_about);
    for (term, (count, is_about)) in terms.iter().zip(read) {
        let count = *count as f64;
        let weight = if count > 0.0 {
            count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / TYPICAL_WORDS))
        } else if *is_about {
            ABOUT_WEIGHT
        } else {
            continue;
        };
        score += term.rarity * weight;
        found += term.rarity;
    }
    score += together(candidate, terms);
    if all > 0.0 {
        score *= LEAST_COVERAGE + (1.0 - LEAST_COVERAGE) * found / all;
    }
    score += candidate.other_hits as f64;
    if score == 0.0 {
        score = candidate.index_score;
    }
    if candidate.is_question {
        score * QUESTION_FACTOR
    } else {
        score
    }
}

/// The bonus for pairs of the query's words that stand side by side in the text, in the
/// query's order.
fn together(candidate: &Candidate, terms: &[QueryTerm]) -> f64 {
    terms
        .windows(2)
        .zip(&candidate.is_together)
        .map(|(pair, is_together)| match pair {
            [first, second] if *is_together => TOGETHER_BONUS * first.rarity.min(second.rarity),
            _ => 0.0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(seq: i64, text: &str, about: &str, terms: &[QueryTerm]) -> Candidate {
        let mut reading = TermCounter::new(terms, &[]);
        for stem in text.split_whitespace() {
            let found = reading.find(stem);
            reading.count(found);
        }
        reading.take_about(about);
        reading.end(1, seq, 0, 0.0)
    }

    fn terms(terms: &[(&str, f64)]) -> Vec<QueryTerm> {
        terms
            .iter()
            .map(|(stem, rarity)| QueryTerm {
                stem: (*stem).to_owned(),
                rarity: *rarity,
            })
            .collect()
    }

    #[test]
    fn more_of_the_rare_words_wins_over_more_of_a_common_one() {
        let terms = terms(&[("go", 1.0), ("lgbtq", 5.0), ("support", 4.0)]);
        let candidates = [
            candidate(1, "go go go go to the group", "", &terms),
            candidate(9, "we go to the lgbtq support", "", &terms),
        ];
        let scores = scores(&candidates, &terms);
        assert!(scores[1] > scores[0]);
    }

    #[test]
    fn who_spoke_counts_as_a_word() {
        let terms = terms(&[("carolin", 0.7), ("paint", 3.0)]);
        let candidates = [
            candidate(9, "paint a sunset", "melani", &terms),
            candidate(1, "paint a sunset", "carolin", &terms),
        ];
        let scores = scores(&candidates, &terms);
        assert!(scores[1] > scores[0]);
    }

    #[test]
    fn a_neighbour_of_a_strong_hit_is_lifted() {
        let terms = terms(&[("adopt", 4.0), ("agenc", 4.0), ("interview", 2.0)]);
        let candidates = [
            candidate(10, "adopt agenc interview", "", &terms),
            candidate(11, "great interview", "", &terms),
            candidate(50, "great interview", "", &terms),
        ];
        let scores = scores(&candidates, &terms);
        assert!(scores[0] > scores[1] && scores[1] > scores[2]);
    }

    #[test]
    fn words_side_by_side_in_their_order_are_worth_more() {
        let terms = terms(&[("old", 2.0), ("coffe", 2.0)]);
        let texts = ["old coffe x", "old x coffe", "coffe old x", "old x x coffe"];
        let scores: Vec<f64> = texts
            .iter()
            .map(|text| own_score(&candidate(1, text, "", &terms), &terms))
            .collect();
        assert!(scores[0] > scores[2] && scores[1] > scores[3]);
        assert!((scores[0] - scores[1]).abs() < 0.1 && scores[0] - scores[2] > 0.5);
    }

    #[test]
    fn a_rarer_word_is_worth_more() {
        assert!(rarity(1, 1000) > rarity(10, 1000) && rarity(10, 1000) > rarity(900, 1000));
        assert!(rarity(5, 0) > 0.0);
    }
}
