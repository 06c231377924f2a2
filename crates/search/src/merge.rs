//! Merges the rankings of several queries into one. A pure function.
//!
//! The evidence for a question is often spread over several places, and each query of a
//! search finds one of them. So what one query ranks first must stay in front, whatever the
//! others find: results are scored by rank, and the first ranks count far more than later
//! ones.

use std::collections::HashMap;
use std::hash::Hash;

/// This many ranks below the first, a result counts half as much as the first.
const HALF: f64 = 4.0;

/// A single ranking keeps its order and scores. Otherwise, an item's score is the sum over
/// the rankings of what its rank counts, at most 1 each.
pub fn merge<T: Copy + Eq + Hash + Ord>(mut rankings: Vec<Vec<(T, f64)>>) -> Vec<(T, f64)> {
    if rankings.len() < 2 {
        return rankings.pop().unwrap_or_default();
    }
    let mut scores: HashMap<T, f64> = HashMap::new();
    for ranking in &rankings {
        for (index, (item, _)) in ranking.iter().enumerate() {
            *scores.entry(*item).or_default() += HALF / (HALF + index as f64);
        }
    }
    let mut merged: Vec<(T, f64)> = scores.into_iter().collect();
    merged.sort_by(|(a_item, a), (b_item, b)| b.total_cmp(a).then(b_item.cmp(a_item)));
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(rankings: &[&str]) -> String {
        let ranking = |items: &&str| items.chars().map(|item| (item, 1.0)).collect();
        let merged = merge(rankings.iter().map(ranking).collect());
        merged.into_iter().map(|(item, _)| item).collect()
    }

    #[test]
    fn a_single_ranking_is_unchanged() {
        assert_eq!(
            merge(vec![vec![('a', 7.5), ('b', 2.0)]]),
            [('a', 7.5), ('b', 2.0)]
        );
        assert_eq!(merge::<char>(vec![]), []);
    }

    #[test]
    fn top_results_come_first_and_shared_ones_before_single_ones() {
        assert_eq!(merged(&["abc", "xyz"]), "xaybzc");
        assert_eq!(merged(&["abc", "xbz"]), "bxazc");
        assert_eq!(merged(&["abcdefghijklm", "", "zyxwvutsrqpom"])[..2], *"za");
    }
}
