//! Ranks the candidates by their words. Pure: the caller passes the texts in.
//!
//! A rare word counts more than a common one, and a message scores higher the more rare
//! words it holds. Turns of a dialogue are short, so length lowers a score only a little.
//! An answer stands next to its question, so a strong hit adds some of its score to its
//! neighbours.

use std::collections::HashMap;

use super::asked::AskedWords;
use super::words::WordSplitter;

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

/// Counts what a candidate's text holds of the query's words.
pub struct TermCounter<'q, 'a> {
    asked: &'q mut AskedWords<'a>,
    splitter: WordSplitter,
    length: usize,
    counts: Vec<usize>,
    is_about: Vec<bool>,
    is_together: Vec<bool>,
    /// Which of the prefixes begin one of the words.
    is_begun: Vec<bool>,
    /// The terms that the two previous words matched.
    before: [Option<usize>; 2],
}

/// The query's words, and the beginnings of words that it asks for, ready to be counted.
pub fn asked<'a>(terms: &'a [QueryTerm], prefixes: &'a [String]) -> AskedWords<'a> {
    AskedWords::new(terms.iter().map(|term| term.stem.as_str()), prefixes)
}

impl<'q, 'a> TermCounter<'q, 'a> {
    pub fn new(asked: &'q mut AskedWords<'a>) -> Self {
        let (terms, prefixes) = asked.counts();
        Self {
            asked,
            splitter: WordSplitter::default(),
            length: 0,
            counts: vec![0; terms],
            is_about: vec![false; terms],
            is_together: vec![false; terms],
            is_begun: vec![false; prefixes],
            before: [None; 2],
        }
    }

    /// Reads the next piece of the text.
    pub fn read(&mut self, text: &str) {
        let mut splitter = std::mem::take(&mut self.splitter);
        let first_bytes = self.asked.first_bytes;
        splitter.skim(text, &first_bytes, &mut |skipped, word| {
            self.take(skipped, word);
        });
        self.splitter = splitter;
    }

    /// Takes the text's next words: some that were skipped, then one word, which may be
    /// empty.
    fn take(&mut self, skipped: usize, word: &str) {
        self.length += skipped;
        match skipped {
            0 => {}
            1 => self.before = [None, self.before[0]],
            _ => self.before = [None; 2],
        }
        if word.is_empty() {
            return;
        }
        let found = self.asked.find(word);
        self.count(found);
        for begun in self.asked.begun_by(word) {
            if let Some(is_begun) = self.is_begun.get_mut(begun) {
                *is_begun = true;
            }
        }
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
            .asked
            .find_stem(stem)
            .and_then(|found| self.is_about.get_mut(found))
        {
            *is_about = true;
        }
    }

    pub fn end(mut self, session: i64, seq: i64, created_at: i64, index_score: f64) -> Candidate {
        let mut splitter = std::mem::take(&mut self.splitter);
        splitter.end(&mut |word| self.take(0, word));
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
    use crate::search::stem::stem;
    use crate::search::words::words;

    fn candidate(seq: i64, text: &str, about: &str, terms: &[QueryTerm]) -> Candidate {
        let mut asked = asked(terms, &[]);
        let mut reading = TermCounter::new(&mut asked);
        for stem in text.split_whitespace() {
            let found = reading.asked.find_stem(stem);
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

    /// What a counter counts, found the plain way: every word is split off and stemmed.
    fn counted_plainly(text: &str, terms: &[QueryTerm], prefixes: &[String]) -> String {
        let words = words(text);
        let stems: Vec<String> = words.iter().map(|word| stem(word)).collect();
        let counts = terms.iter().map(|term| {
            let holds = |stem: &&String| **stem == term.stem;
            stems.iter().filter(holds).count()
        });
        let is_together = terms.iter().enumerate().map(|(at, term)| {
            let next = terms.get(at + 1).map(|next| next.stem.as_str());
            stems.iter().enumerate().any(|(second, stem)| {
                let before = &stems[second.saturating_sub(2)..second];
                Some(stem.as_str()) == next && before.contains(&term.stem)
            })
        });
        let is_begun = |prefix: &&String| words.iter().any(|word| word.starts_with(*prefix));
        format!(
            "{} {:?} {:?} {}",
            words.len(),
            counts.collect::<Vec<_>>(),
            is_together.collect::<Vec<_>>(),
            prefixes.iter().filter(is_begun).count()
        )
    }

    #[test]
    fn what_is_counted_is_what_every_word_says() {
        let forms = [
            "deploy",
            "Deploying",
            "deployment",
            "deploys",
            "depot",
            "new",
            "News",
            "newer",
            "knew",
            "all",
            "alley",
            "y",
            "yes",
            "cry",
            "cries",
            "crying",
            "dying",
            "die",
            "Café",
            "caf",
            "東京",
            "don't",
            "x1",
            "was",
            "wash",
            "rate",
            "rating",
            "ratings",
            "ratio",
            "stability",
            "stable",
            "stabling",
            "ability",
            "a",
            "of",
            "the",
            "jumps",
            "42",
            "hop",
            "hoping",
            "hopping",
            "ski",
            "skies",
            "sky",
        ];
        let between = [" ", ", ", ".\n", "-", "  ", " \u{2019} ", "_", "; ", " ' "];
        let mut state = 11_usize;
        let mut roll = |sides: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % sides
        };
        for _ in 0..4_000 {
            let mut terms: Vec<QueryTerm> = Vec::new();
            for _ in 0..1 + roll(4) {
                let stem = words(forms[roll(forms.len())])
                    .iter()
                    .map(|word| stem(word))
                    .next_back();
                let stem = stem.unwrap();
                if terms.iter().all(|term| term.stem != stem) {
                    terms.push(QueryTerm { stem, rarity: 1.0 });
                }
            }
            let prefixes: Vec<String> = ["dep", "st", "東", "yes"]
                .iter()
                .filter(|_| roll(4) == 0)
                .map(|prefix| (*prefix).to_owned())
                .collect();
            let mut asked = asked(&terms, &prefixes);
            // One after the other, as a search reads its candidates.
            for _ in 0..3 {
                let pieces: Vec<String> = (0..roll(4))
                    .map(|_| {
                        let words = (0..roll(30)).map(|_| {
                            [forms[roll(forms.len())], between[roll(between.len())]].concat()
                        });
                        words.collect()
                    })
                    .collect();
                let mut counter = TermCounter::new(&mut asked);
                for piece in &pieces {
                    counter.read(piece);
                }
                let counted = counter.end(1, 1, 0, 0.0);
                let counted = format!(
                    "{} {:?} {:?} {}",
                    counted.length, counted.counts, counted.is_together, counted.other_hits
                );
                let text = pieces.concat();
                assert_eq!(
                    counted,
                    counted_plainly(&text, &terms, &prefixes),
                    "{text:?}"
                );
            }
        }
    }

    #[test]
    fn a_rarer_word_is_worth_more() {
        assert!(rarity(1, 1000) > rarity(10, 1000) && rarity(10, 1000) > rarity(900, 1000));
        assert!(rarity(5, 0) > 0.0);
    }
}
