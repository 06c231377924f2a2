//! Two rankings made one: what words found, and what meanings found. Pure.
//!
//! Each says how good its best is, in terms of its own. Words: the share of what
//! a text would score that holds all of the query's words once. So where only a
//! common word of a question is found, which says little, meanings decide; where
//! the words are found, they do. Meanings: from as near as anything is on the
//! average, which differs from model to model, to the nearest.
//!
//! Measured against fusing by ranks alone (`1 / (60 + rank)` in either), which
//! knows no difference between a ranking that is sure and one that is not: it put
//! what was asked for first half as often (bench/vectors.mjs).

use std::collections::HashMap;
use std::hash::Hash;

/// What words count for, against meanings.
const WORDS_SHARE: f64 = 0.45;

/// How near a thing is to the query, by meaning: nearest first.
#[derive(Clone, Debug)]
pub struct Nearest<T> {
    pub items: Vec<(T, f64)>,
    /// How near anything is, on the average.
    pub average: f64,
}

impl<T> Default for Nearest<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            average: 0.0,
        }
    }
}

/// Both rankings as one with its scores, best first. `full_score` is what words
/// give a text that holds them all.
pub fn fuse<T: Copy + Eq + Hash>(
    by_words: &[(T, f64)],
    full_score: f64,
    nearest: &Nearest<T>,
) -> Vec<(T, f64)> {
    let best = by_words
        .iter()
        .fold(full_score, |best, (_, score)| best.max(*score));
    let by_words = by_words.iter().map(|(item, score)| {
        let part = if best > 0.0 { score / best } else { 0.0 };
        (*item, WORDS_SHARE * part)
    });
    let nearness = nearest.items.first().map_or(0.0, |(_, nearness)| *nearness);
    let span = nearness - nearest.average;
    let by_meaning = nearest.items.iter().map(|(item, nearness)| {
        let part = if span > 0.0 {
            ((nearness - nearest.average) / span).max(0.0)
        } else {
            1.0
        };
        (*item, (1.0 - WORDS_SHARE) * part)
    });
    let mut fused: Vec<(T, f64)> = Vec::new();
    let mut places: HashMap<T, usize> = HashMap::new();
    for (item, share) in by_words.chain(by_meaning) {
        let place = *places.entry(item).or_insert(fused.len());
        match fused.get_mut(place) {
            Some((_, score)) => *score += share,
            None => fused.push((item, share)),
        }
    }
    fused.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(by_words: &[(char, f64)], by_meaning: &[(char, f64)]) -> String {
        let nearest = Nearest {
            items: by_meaning.to_vec(),
            average: 0.1,
        };
        let fused = fuse(by_words, 10.0, &nearest);
        fused.into_iter().map(|(item, _)| item).collect()
    }

    #[test]
    fn what_both_find_comes_before_what_one_finds() {
        let words = [('a', 9.0), ('b', 8.0)];
        let meanings = [('c', 0.8), ('b', 0.7), ('d', 0.2)];
        assert_eq!(order(&words, &meanings), "bcad");
    }

    #[test]
    fn one_ranking_alone_keeps_its_order() {
        assert_eq!(order(&[('a', 9.0), ('b', 1.0)], &[]), "ab");
        assert_eq!(order(&[], &[('a', 0.9), ('b', 0.1), ('c', 0.0)]), "abc");
        assert_eq!(order(&[], &[]), "");
    }

    #[test]
    fn a_common_word_found_says_little_and_all_of_the_words_much() {
        let meanings = [('m', 0.8), ('w', 0.4)];
        assert_eq!(order(&[('w', 0.5)], &meanings), "mw");
        assert_eq!(order(&[('w', 10.0)], &meanings), "wm");
    }

    #[test]
    fn scores_without_a_scale_are_no_scores_of_nothing() {
        let nearest = Nearest {
            items: vec![('a', 0.5), ('b', 0.5)],
            average: 0.5,
        };
        let fused = fuse(&[('c', 0.0)], 0.0, &nearest);
        assert!(fused.iter().all(|(_, score)| score.is_finite()));
        assert_eq!(fused[0].0, 'a');
    }
}
