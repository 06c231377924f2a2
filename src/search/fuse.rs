//! Two rankings made one: what words found, and what meanings found. Pure.
//!
//! By reciprocal ranks: a place counts `1 / (60 + rank)` in either ranking, and
//! what stands in both adds them up. The scores themselves can't be added: those
//! of words have no upper end, and how near is near differs from model to model.
//! Ranks need no tuning to a model, and a ranking that is wrong about a place
//! can't bury it deeper than the other one lifts it.

use std::collections::HashMap;
use std::hash::Hash;

/// How little the first places stand out: the constant of the method's authors.
const FLATNESS: f64 = 60.0;

/// Both rankings as one with its scores, best first. Of equals the words' goes first.
pub fn fuse<T: Copy + Eq + Hash>(by_words: &[T], by_meaning: &[T]) -> Vec<(T, f64)> {
    let mut fused: Vec<(T, f64)> = Vec::with_capacity(by_words.len() + by_meaning.len());
    let mut places: HashMap<T, usize> = HashMap::new();
    for ranking in [by_words, by_meaning] {
        for (rank, item) in (1_u32..).zip(ranking) {
            let share = 1.0 / (FLATNESS + f64::from(rank));
            let place = *places.entry(*item).or_insert(fused.len());
            match fused.get_mut(place) {
                Some((_, score)) => *score += share,
                None => fused.push((*item, share)),
            }
        }
    }
    fused.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(by_words: &[char], by_meaning: &[char]) -> String {
        let fused = fuse(by_words, by_meaning);
        fused.into_iter().map(|(item, _)| item).collect()
    }

    #[test]
    fn what_both_find_comes_before_what_one_finds() {
        assert_eq!(order(&['a', 'b', 'c'], &['d', 'c', 'e']), "cadbe");
    }

    #[test]
    fn one_ranking_alone_stays_as_it_is() {
        assert_eq!(order(&['a', 'b'], &[]), "ab");
        assert_eq!(order(&[], &['a', 'b']), "ab");
        assert_eq!(order(&[], &[]), "");
    }

    #[test]
    fn the_first_of_words_comes_before_the_first_of_meanings() {
        assert_eq!(order(&['a'], &['b']), "ab");
        let fused = fuse(&['a'], &['a']);
        assert_eq!(fused, [('a', 2.0 / 61.0)]);
    }
}
