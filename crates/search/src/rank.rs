//! Ranks the candidates by their words. Pure: the caller passes the texts in.
//!
//! A rare word counts more than a common one, and a message scores higher the more rare words it
//! has. A turn often makes sense only with the turns around it, so each word of a neighbor counts
//! a little, too (`weights.rs` has the weights).

use std::collections::HashMap;

use super::counter::Candidate;
use super::terms::QueryTerm;
use super::weights::Weights;
use base::action::Role;

/// The scores of a query's candidates.
pub struct Ranking<'a> {
    pub weights: &'a Weights,
    pub terms: &'a [QueryTerm],
    /// Whether the query is about what the agent itself said.
    pub asks_agent: bool,
    /// Whether the query asks when something was. Then a marked text contains a time.
    pub asks_when: bool,
}

impl Ranking<'_> {
    /// One score per candidate, in the order of `candidates`.
    pub fn scores(&self, candidates: &[Candidate]) -> Vec<f64> {
        let by_position: HashMap<(i64, i64), &Candidate> = candidates
            .iter()
            .map(|candidate| ((candidate.session, candidate.seq), candidate))
            .collect();
        let newest = candidates
            .iter()
            .map(|candidate| candidate.created_at)
            .max()
            .unwrap_or(0);
        let boosts = self.role_boosts(candidates);
        candidates
            .iter()
            .map(|candidate| {
                // Among equals the later event wins: this bonus is far below any
                // meaningful difference.
                let age_days = (newest - candidate.created_at) as f64 / 86_400_000.0;
                let boost = match candidate.role {
                    Role::User => boosts.0,
                    Role::Assistant => boosts.1,
                    _ => 1.0,
                };
                self.score(candidate, &by_position) * boost + 1e-6 / (1.0 + age_days)
            })
            .collect()
    }

    /// The weight of a text's own words.
    fn weight(&self, candidate: &Candidate, term: usize) -> f64 {
        let count = candidate.counts.get(term).copied().unwrap_or(0) as f64;
        let weights = self.weights;
        let length = candidate.length / weights.typical_words;
        let share = weights.length_share;
        weights.most * count / (count + weights.repeats * (1.0 - share + share * length))
    }

    /// The candidates around one, each with the share of its weights that it adds.
    fn neighbors<'c>(
        &self,
        candidate: &Candidate,
        by_position: &HashMap<(i64, i64), &'c Candidate>,
    ) -> Vec<(&'c Candidate, f64)> {
        let weights = self.weights;
        let neighbor_at = |distance: i64| {
            let found = *by_position.get(&(candidate.session, candidate.seq + distance))?;
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
        [-3, -2, -1, 1, 2, 3]
            .into_iter()
            .filter_map(neighbor_at)
            .collect()
    }

    fn score(&self, candidate: &Candidate, by_position: &HashMap<(i64, i64), &Candidate>) -> f64 {
        let weights = self.weights;
        let neighbors = self.neighbors(candidate, by_position);
        let (mut score, mut found, mut all) = (0.0, 0.0, 0.0);
        for (term_index, term) in self.terms.iter().enumerate() {
            let mut weight = self.weight(candidate, term_index);
            if weight == 0.0 && candidate.is_about.get(term_index) == Some(&true) {
                weight = weights.about;
            }
            let from_neighbors = neighbors
                .iter()
                .map(|(neighbor, share)| share * self.weight(neighbor, term_index))
                .fold(0.0, f64::max);
            weight += from_neighbors;
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
        if self.asks_agent && candidate.role == Role::Assistant {
            score *= weights.agent_factor;
        } else {
            let length = (candidate.length / weights.long_words).max(1.0);
            score *= length.powf(-weights.long_power);
        }
        for (holds, factor) in [
            (candidate.is_question, weights.question),
            (candidate.has_number, weights.number),
            (candidate.is_by_named, weights.speaker),
            (self.asks_when && candidate.is_marked, weights.time),
        ] {
            if holds {
                score *= factor;
            }
        }
        score
    }

    /// Pairs of the query's words that are adjacent in the text, in the query's order.
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

    /// The factors of the user's texts and of the agent's texts. The texts of the role whose texts
    /// are shorter are raised: each of their words is more informative.
    fn role_boosts(&self, candidates: &[Candidate]) -> (f64, f64) {
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
        if self.asks_agent {
            return (1.0, 1.0);
        }
        let boost = |longer: f64| (self.weights.role_power * longer.max(0.0)).exp();
        (boost(agent - user), boost(user - agent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::{TermCounter, query_words};
    use crate::terms::rarity;
    use crate::weights::WEIGHTS;

    fn candidate(seq: i64, text: &str, about: &str, terms: &[QueryTerm]) -> Candidate {
        let mut words = query_words(terms, &[], &[]);
        let mut reading = TermCounter::new(&mut words);
        for stem in text.split_whitespace() {
            reading.count_stem(stem);
        }
        reading.take_about(about);
        reading.end(1, seq, 0, 0.0)
    }

    fn scores(candidates: &[Candidate], terms: &[QueryTerm]) -> Vec<f64> {
        let ranking = Ranking {
            weights: &WEIGHTS,
            terms,
            asks_agent: false,
            asks_when: true,
        };
        ranking.scores(candidates)
    }

    fn terms(terms: &[(&str, f64)]) -> Vec<QueryTerm> {
        terms
            .iter()
            .map(|(stem, rarity)| QueryTerm {
                stem: (*stem).to_owned(),
                rarity: *rarity,
                found: 1,
                steps: 1,
            })
            .collect()
    }

    #[test]
    fn rare_words_outweigh_common_ones() {
        let terms = terms(&[("go", 1.0), ("lgbtq", 5.0), ("support", 4.0)]);
        let candidates = [
            candidate(1, "go go go go to the group", "", &terms),
            candidate(9, "we go to the lgbtq support", "", &terms),
        ];
        let scores = scores(&candidates, &terms);
        assert!(scores[1] > scores[0]);
    }

    #[test]
    fn the_speaker_counts_as_a_word() {
        let terms = terms(&[("carolin", 0.7), ("paint", 3.0)]);
        let candidates = [
            candidate(9, "paint a sunset", "melani", &terms),
            candidate(1, "paint a sunset", "carolin", &terms),
        ];
        let scores = scores(&candidates, &terms);
        assert!(scores[1] > scores[0]);
    }

    #[test]
    fn a_neighbor_of_a_strong_hit_is_lifted() {
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
    fn adjacent_words_in_order_score_higher() {
        let terms = terms(&[("old", 2.0), ("coffe", 2.0)]);
        let texts = ["old coffe x", "old x coffe", "coffe old x", "old x x coffe"];
        let candidates: Vec<Candidate> = (0..)
            .zip(texts)
            .map(|(index, text)| candidate(index * 10, text, "", &terms))
            .collect();
        let scores = scores(&candidates, &terms);
        assert!(scores[0] > scores[2] && scores[1] > scores[3]);
        assert!((scores[0] - scores[1]).abs() < 0.1 && scores[0] - scores[2] > 0.5);
    }

    fn long(seq: i64, text: &str, role: Role, terms: &[QueryTerm]) -> Candidate {
        let mut candidate = candidate(seq, text, "", terms);
        candidate.role = role;
        candidate.length = 400.0;
        candidate
    }

    #[test]
    fn messages_after_a_hit_are_lifted_answers_most() {
        let terms = terms(&[("fenc", 4.0), ("lesson", 3.0)]);
        let mut candidates = [
            candidate(1, "fenc lesson", "", &terms),
            candidate(2, "brave", "", &terms),
            candidate(3, "thursday", "", &terms),
            candidate(30, "thursday", "", &terms),
        ];
        let plain = scores(&candidates, &terms);
        assert!(plain[2] > plain[1] && plain[1] > plain[3]);
        candidates[0].is_question = true;
        let with_question = scores(&candidates, &terms);
        assert!(with_question[1] > with_question[2] && with_question[0] < plain[0]);
    }

    #[test]
    fn the_quieter_speaker_is_lifted_unless_the_agent_is_asked_for() {
        let terms = terms(&[("lisbon", 4.0)]);
        let mut short = candidate(1, "lisbon", "", &terms);
        (short.role, short.length) = (Role::User, 400.0);
        let candidates = [
            short,
            long(11, "lisbon", Role::Assistant, &terms),
            candidate(21, "x", "", &terms),
        ];
        let ranked = |asks_agent: bool, candidates: &[Candidate]| {
            let ranking = Ranking {
                weights: &WEIGHTS,
                terms: &terms,
                asks_agent,
                asks_when: false,
            };
            ranking.scores(candidates)
        };
        // At equal length, both count the same, unless the query asks for the agent's messages.
        let equal = ranked(false, &candidates);
        assert!((equal[0] - equal[1]).abs() < 1e-5 && equal[2] < 1e-5);
        let for_agent = ranked(true, &candidates);
        assert!(for_agent[1] > 1.3 * for_agent[0]);
        // Nine times as long: raised by the fourth root, in addition to the effect of length.
        let mut candidates = candidates;
        candidates[1].length = 3_600.0;
        let boosted = ranked(false, &candidates);
        let expected = equal[0] * 9.0_f64.powf(0.25);
        assert!(
            (boosted[0] - expected).abs() < 1e-3,
            "{boosted:?} {expected}"
        );
    }

    #[test]
    fn length_and_kind_of_text_scale_the_score() {
        let terms = terms(&[("lisbon", 4.0)]);
        let score = |change: &dyn Fn(&mut Candidate)| {
            let mut changed = candidate(1, "lisbon", "", &terms);
            change(&mut changed);
            scores(&[changed], &terms)[0]
        };
        let plain = score(&|_| {});
        for (changed, factor) in [
            (score(&|candidate| candidate.is_question = true), 0.8),
            (score(&|candidate| candidate.has_number = true), 1.1),
            (score(&|candidate| candidate.is_by_named = true), 1.2),
            (score(&|candidate| candidate.is_marked = true), 1.2),
        ] {
            assert!((changed / plain - factor).abs() < 1e-3, "{changed} {plain}");
        }
        let at_100 = score(&|candidate| candidate.length = 100.0);
        let at_200 = score(&|candidate| candidate.length = 200.0);
        assert!(at_200 < 0.76 * at_100);
    }

    #[test]
    fn a_rarer_word_scores_higher() {
        assert!(rarity(1, 1000) > rarity(10, 1000) && rarity(10, 1000) > rarity(900, 1000));
        assert!(rarity(5, 0) > 0.0);
    }
}
