//! Ranks the candidates by their words. Pure: the caller passes the texts in.
//!
//! A rare word counts more than a common one, and a message scores higher the more rare
//! words it holds. What is said in a turn often makes sense by the turns around it alone, so
//! each word of a neighbour counts a little, too (`weights.rs` says how much).

use std::collections::HashMap;

use super::asked::AskedWords;
use super::weights::Weights;
use super::words::{WordSplitter, is_cjk};
use crate::base::action::Role;

/// Letters and pairs of letters of a script without spaces that count as one word. A word has
/// one or two letters, and each letter counts with the pair that it ends.
const LETTERS_PER_WORD: f64 = 3.0;

/// An event that may match, reduced to what its text holds of the query's words.
#[derive(Debug)]
pub struct Candidate {
    pub session: i64,
    pub seq: i64,
    pub role: Role,
    /// How many words the text has, and how often it holds each of the query's words.
    length: f64,
    counts: Vec<usize>,
    /// Which of the query's words are found in who, where or when.
    is_about: Vec<bool>,
    /// Which of the query's words stand beside the query's next word.
    is_together: Vec<bool>,
    /// How many of the query's prefixes the text holds.
    other_hits: usize,
    pub is_question: bool,
    pub has_number: bool,
    /// Whether the query names who spoke.
    pub is_by_named: bool,
    pub created_at: i64,
    /// The index's score. It counts only if the part of the text that was read holds no
    /// word of the query.
    pub index_score: f64,
}

/// Counts what a candidate's text holds of the query's words.
pub struct TermCounter<'q, 'a> {
    asked: &'q mut AskedWords<'a>,
    splitter: WordSplitter,
    /// The words, and the letters and pairs of letters of scripts without spaces.
    words: usize,
    letters: usize,
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
            words: 0,
            letters: 0,
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
        self.words += skipped;
        match skipped {
            0 => {}
            1 => self.before = [None, self.before[0]],
            _ => self.before = [None; 2],
        }
        if word.is_empty() {
            return;
        }
        if word.chars().next().is_some_and(is_cjk) {
            self.letters += 1;
        } else {
            self.words += 1;
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

    /// Takes a stem from who, where or when. Says whether the query asks for it.
    pub fn take_about(&mut self, stem: &str) -> bool {
        let found = self.asked.find_stem(stem);
        match found.and_then(|found| self.is_about.get_mut(found)) {
            Some(is_about) => {
                *is_about = true;
                true
            }
            None => false,
        }
    }

    pub fn end(mut self, session: i64, seq: i64, created_at: i64, index_score: f64) -> Candidate {
        let mut splitter = std::mem::take(&mut self.splitter);
        splitter.end(&mut |word| self.take(0, word));
        Candidate {
            session,
            seq,
            role: Role::default(),
            length: self.words as f64 + self.letters as f64 / LETTERS_PER_WORD,
            counts: self.counts,
            is_about: self.is_about,
            is_together: self.is_together,
            other_hits: self.is_begun.iter().filter(|is_begun| **is_begun).count(),
            is_question: false,
            has_number: false,
            is_by_named: false,
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

impl QueryTerm {
    /// A word that stands in `found` of `all` texts.
    pub fn new(stem: String, found: i64, all: i64) -> Self {
        Self {
            stem,
            rarity: rarity(found, all),
        }
    }
}

/// Rarity of a word that stands in `found` of `all` events.
fn rarity(found: i64, all: i64) -> f64 {
    let (found, all) = (found as f64, all.max(found) as f64);
    (1.0 + (all - found + 0.5) / (found + 0.5)).ln().sqrt()
}

/// What the ranking knows of the query besides its words.
#[derive(Clone, Copy, Default)]
pub struct QueryBent {
    /// The query asks for what the agent itself said.
    pub asks_agent: bool,
}

/// The scores of a query's candidates.
pub struct Ranking<'a> {
    pub weights: &'a Weights,
    pub terms: &'a [QueryTerm],
    pub bent: QueryBent,
}

impl Ranking<'_> {
    /// One score per candidate, in the order of `candidates`.
    pub fn scores(&self, candidates: &[Candidate]) -> Vec<f64> {
        let places: HashMap<(i64, i64), &Candidate> = candidates
            .iter()
            .map(|candidate| ((candidate.session, candidate.seq), candidate))
            .collect();
        let newest = candidates
            .iter()
            .map(|candidate| candidate.created_at)
            .max()
            .unwrap_or(0);
        let lifts = self.role_lifts(candidates);
        candidates
            .iter()
            .map(|candidate| {
                // Among equals the later event wins: this bonus is far below any
                // meaningful difference.
                let age_days = (newest - candidate.created_at) as f64 / 86_400_000.0;
                let lift = match candidate.role {
                    Role::User => lifts.0,
                    Role::Assistant => lifts.1,
                    _ => 1.0,
                };
                self.score(candidate, &places) * lift + 1e-6 / (1.0 + age_days)
            })
            .collect()
    }

    /// What a text's own words count.
    fn weight(&self, candidate: &Candidate, term: usize) -> f64 {
        let count = candidate.counts.get(term).copied().unwrap_or(0) as f64;
        let weights = self.weights;
        let length = candidate.length / weights.typical_words;
        let share = weights.length_share;
        weights.most * count / (count + weights.repeats * (1.0 - share + share * length))
    }

    /// The candidates around one, each with the share of its weights that it lends.
    fn neighbours<'c>(
        &self,
        candidate: &Candidate,
        places: &HashMap<(i64, i64), &'c Candidate>,
    ) -> Vec<(&'c Candidate, f64)> {
        let weights = self.weights;
        let lend = |distance: i64| {
            let found = *places.get(&(candidate.session, candidate.seq + distance))?;
            let share = match distance {
                -1 if found.is_question => weights.after_question,
                -1 => weights.after,
                1 => weights.before,
                -2 => weights.two_after,
                2 => weights.two_before,
                _ => weights.three_away,
            };
            Some((found, share))
        };
        [-3, -2, -1, 1, 2, 3].into_iter().filter_map(lend).collect()
    }

    fn score(&self, candidate: &Candidate, places: &HashMap<(i64, i64), &Candidate>) -> f64 {
        let weights = self.weights;
        let neighbours = self.neighbours(candidate, places);
        let (mut score, mut found, mut all) = (0.0, 0.0, 0.0);
        for (place, term) in self.terms.iter().enumerate() {
            let mut weight = self.weight(candidate, place);
            if weight == 0.0 && candidate.is_about.get(place) == Some(&true) {
                weight = weights.about;
            }
            let lent = neighbours
                .iter()
                .map(|(neighbour, share)| share * self.weight(neighbour, place))
                .fold(0.0, f64::max);
            weight += lent;
            score += term.rarity * weight;
            found += term.rarity * (weight / weights.found).min(1.0);
            all += term.rarity;
        }
        score += weights.together * self.together(candidate);
        if all > 0.0 {
            score *= weights.least_coverage + (1.0 - weights.least_coverage) * found / all;
        }
        score += candidate.other_hits as f64;
        if score == 0.0 {
            score = candidate.index_score.max(0.0).sqrt();
        }
        if self.bent.asks_agent && candidate.role == Role::Assistant {
            score *= weights.asked_agent;
        } else {
            let length = (candidate.length / weights.long_words).max(1.0);
            score *= length.powf(-weights.long_power);
        }
        for (holds, factor) in [
            (candidate.is_question, weights.question),
            (candidate.has_number, weights.number),
            (candidate.is_by_named, weights.speaker),
        ] {
            if holds {
                score *= factor;
            }
        }
        score
    }

    /// Pairs of the query's words that stand side by side in the text, in the query's order.
    fn together(&self, candidate: &Candidate) -> f64 {
        self.terms
            .windows(2)
            .zip(&candidate.is_together)
            .map(|(pair, is_together)| match pair {
                [first, second] if *is_together => first.rarity.min(second.rarity),
                _ => 0.0,
            })
            .sum()
    }

    /// The factors of what the user said and of what the agent said: who says less in a
    /// turn, says more in a word.
    fn role_lifts(&self, candidates: &[Candidate]) -> (f64, f64) {
        let mean = |role: Role| {
            let of_role = candidates.iter().filter(|candidate| candidate.role == role);
            let (sum, count) = of_role.fold((0.0, 0.0), |(sum, count), candidate| {
                (sum + candidate.length.max(1.0).ln(), count + 1.0)
            });
            (count > 0.0).then(|| sum / count)
        };
        let (Some(user), Some(agent)) = (mean(Role::User), mean(Role::Assistant)) else {
            return (1.0, 1.0);
        };
        if self.bent.asks_agent {
            return (1.0, 1.0);
        }
        let lift = |longer: f64| (self.weights.role_power * longer.max(0.0)).exp();
        (lift(agent - user), lift(user - agent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::stem::stem;
    use crate::search::weights::WEIGHTS;
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

    fn scores(candidates: &[Candidate], terms: &[QueryTerm]) -> Vec<f64> {
        let ranking = Ranking {
            weights: &WEIGHTS,
            terms,
            bent: QueryBent::default(),
        };
        ranking.scores(candidates)
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
        let candidates: Vec<Candidate> = (0..)
            .zip(texts)
            .map(|(place, text)| candidate(place * 10, text, "", &terms))
            .collect();
        let scores = scores(&candidates, &terms);
        assert!(scores[0] > scores[2] && scores[1] > scores[3]);
        assert!((scores[0] - scores[1]).abs() < 0.1 && scores[0] - scores[2] > 0.5);
    }

    /// What a counter counts, found the plain way: every word is split off and stemmed.
    fn counted_plainly(text: &str, terms: &[QueryTerm], prefixes: &[String]) -> String {
        let words = words(text);
        let is_letters = |word: &&String| word.chars().all(is_cjk);
        let letters = words.iter().filter(is_letters).count();
        let length = (words.len() - letters) as f64 + letters as f64 / LETTERS_PER_WORD;
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
            length,
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
