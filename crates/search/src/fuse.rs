//! Fuses two rankings into one: by words and by meaning. Pure.
//!
//! Raw scores cannot be compared: word scores grow with the query, and similarities lie as close
//! together as their model puts them. So each score is measured in standard deviations from the
//! average of everything that was compared. A text that is the only one with a rare word is many
//! deviations above the average; one of a hundred texts that contain a common word is hardly above
//! it. A text that words did not find has a word score of 0. A text without a vector counts as
//! average by meaning.
//!
//! Words and meanings weigh half each. Among thousands of texts, words weigh a little less: with
//! exactly half, a word's only hits outweigh every meaning, whatever they mean. Two alternatives
//! were worse. With scores as a share of the best possible score, meanings always won over short
//! turns. With deviations without a bend, words always won in thousands of texts.

use std::collections::HashMap;
use std::hash::Hash;

/// The weight of words; meanings have the rest.
pub const WORDS_SHARE: f64 = 0.5;

/// From this many texts on, the weight of words falls, by [`MANY_LESS`] at `MANY_TEXTS` times
/// `MANY_TIMES`.
const MANY_TEXTS: f64 = 1_000.0;
const MANY_TIMES: f64 = 5.0;
const MANY_LESS: f64 = 0.05;

fn words_share_among(texts: usize, most: f64) -> f64 {
    let more = (texts as f64 / MANY_TEXTS).max(1.0).ln() / MANY_TIMES.ln();
    most - MANY_LESS * more.min(1.0)
}

/// Beyond this many deviations, further deviations count less and less. In ten thousand texts the
/// only hit is a hundred deviations above the average, but not that much likelier to be relevant.
const BEND: f64 = 8.0;

/// How many of the nearest by meaning are ranked even if words did not find them.
pub const MAX_NEAREST: usize = 100;

/// The share of its nearness that a turn adds to the turns right before and after it.
pub const NEIGHBOR_SHARE: f64 = 0.1;

/// Adds to the nearness of each text a share of that of its neighbors, whose numbers are one less
/// and one more. A missing neighbor counts as average. The texts are returned in the order of
/// their numbers.
pub fn with_neighbors(mut found: Vec<(i64, f64)>, share: f64) -> Vec<(i64, f64)> {
    found.sort_unstable_by_key(|(number, _)| *number);
    let sum: f64 = found.iter().map(|(_, nearness)| nearness).sum();
    let average = sum / found.len().max(1) as f64;
    let near = |index: Option<usize>, number: i64| {
        let neighbor = index.and_then(|index| found.get(index));
        neighbor
            .filter(|(its_number, _)| *its_number == number)
            .map_or(average, |(_, nearness)| *nearness)
    };
    (0..)
        .zip(&found)
        .map(|(index, (number, own)): (usize, &(i64, f64))| {
            let before = near(index.checked_sub(1), number - 1);
            let after = near(Some(index + 1), number + 1);
            (*number, own + share * (before + after))
        })
        .collect()
}

/// The compared items and how near each is to the query by meaning, in the items' order.
#[derive(Clone, Debug)]
pub struct Nearest<T> {
    items: Vec<(T, f64)>,
}

impl<T> Default for Nearest<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

impl<T: Copy + Ord> Nearest<T> {
    /// Each item occurs once, in any order.
    pub fn new(mut items: Vec<(T, f64)>) -> Self {
        items.sort_unstable_by_key(|(item, _)| *item);
        Self { items }
    }

    pub fn items(&self) -> &[(T, f64)] {
        &self.items
    }

    fn find(&self, item: T) -> Option<f64> {
        let index = self.items.binary_search_by_key(&item, |(item, _)| *item);
        self.items.get(index.ok()?).map(|(_, nearness)| *nearness)
    }

    /// The [`MAX_NEAREST`] nearest items, nearest first.
    fn best(&self) -> Vec<(T, f64)> {
        let mut best = self.items.clone();
        let nearer = |(_, a): &(T, f64), (_, b): &(T, f64)| b.total_cmp(a);
        if best.len() > MAX_NEAREST {
            best.select_nth_unstable_by(MAX_NEAREST, nearer);
            best.truncate(MAX_NEAREST);
        }
        best.sort_by(nearer);
        best
    }
}

/// One ranking of what words found and of the nearest items, best first. Scores are
/// between 0 and 1.
pub fn fuse<T: Copy + Ord + Hash>(by_words: &[(T, f64)], nearest: &Nearest<T>) -> Vec<(T, f64)> {
    fuse_with(by_words, nearest, WORDS_SHARE)
}

/// As [`fuse`], with another share of words, to measure what the share is worth.
pub fn fuse_with<T: Copy + Ord + Hash>(
    by_words: &[(T, f64)],
    nearest: &Nearest<T>,
    words_share: f64,
) -> Vec<(T, f64)> {
    let found: HashMap<T, f64> = by_words.iter().copied().collect();
    let without_vector = by_words
        .iter()
        .filter(|(item, _)| nearest.find(*item).is_none())
        .count();
    let words = ScoreSpread::of(
        by_words.iter().map(|(_, score)| *score),
        nearest.items.len() + without_vector,
    );
    let words_share = words_share_among(nearest.items.len() + without_vector, words_share);
    let meanings = ScoreSpread::of(
        nearest.items.iter().map(|(_, nearness)| *nearness),
        nearest.items.len(),
    );
    let best = nearest.best();
    let only_by_meaning = best.iter().filter(|(item, _)| !found.contains_key(item));
    let mut fused: Vec<(T, f64)> = by_words
        .iter()
        .chain(only_by_meaning)
        .map(|(item, _)| {
            let by_words = words.z_score(found.get(item).copied().unwrap_or(0.0));
            let by_meaning = nearest
                .find(*item)
                .map_or(0.0, |nearness| meanings.z_score(nearness));
            let z_score = words_share * by_words + (1.0 - words_share) * by_meaning;
            (*item, 1.0 / (1.0 + (-z_score).exp()))
        })
        .collect();
    fused.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    fused
}

/// The ranking by words, fused with the nearest items if there are any.
pub fn fuse_found<T: Copy + Ord + Hash>(
    by_words: Vec<(T, f64)>,
    nearest: Option<&Nearest<T>>,
) -> Vec<(T, f64)> {
    match nearest {
        Some(nearest) if !nearest.items.is_empty() => fuse(&by_words, nearest),
        _ => by_words,
    }
}

/// The average and the deviation of scores.
struct ScoreSpread {
    average: f64,
    deviation: f64,
}

impl ScoreSpread {
    /// The items of `all` that have no score in `scores` count as 0.
    fn of(scores: impl Iterator<Item = f64>, all: usize) -> Self {
        let (sum, squares) = scores.fold((0.0, 0.0), |(sum, squares), score| {
            (sum + score, squares + score * score)
        });
        let all = all.max(1) as f64;
        let average = sum / all;
        Self {
            average,
            deviation: (squares / all - average * average).max(0.0).sqrt(),
        }
    }

    /// How many deviations a score is above the average, flattened by [`BEND`]; 0 if all
    /// scores are equal.
    fn z_score(&self, score: f64) -> f64 {
        // A smaller deviation comes from rounding.
        if self.deviation < 1e-9 {
            return 0.0;
        }
        BEND * ((score - self.average) / self.deviation / BEND).tanh()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(by_words: &[(char, f64)], by_meaning: &[(char, f64)]) -> String {
        let nearest = Nearest::new(by_meaning.to_vec());
        let fused = fuse(by_words, &nearest);
        assert!(fused.iter().all(|(_, score)| *score > 0.0 && *score < 1.0));
        fused.into_iter().map(|(item, _)| item).collect()
    }

    /// This many other texts, as far from the query as possible.
    fn among(nearest: &[(u32, f64)], others: u32) -> Nearest<u32> {
        let far = (0..others).map(|n| (1_000 + n, 0.1 + f64::from(n % 7) / 100.0));
        Nearest::new(nearest.iter().copied().chain(far).collect())
    }

    #[test]
    fn neighbors_of_near_texts_are_lifted() {
        let found = [(1, 0.8), (2, 0.5), (3, 0.8), (9, 0.5), (20, -0.1)];
        let after: HashMap<i64, f64> = with_neighbors(found.to_vec(), 0.2).into_iter().collect();
        assert!((after[&2] - 0.82).abs() < 1e-9);
        assert!((after[&9] - 0.7).abs() < 1e-9);
        assert!(with_neighbors(Vec::new(), 0.2).is_empty());
    }

    #[test]
    fn results_found_by_both_rankings_come_first() {
        let words = [('a', 9.0), ('b', 8.0)];
        let meanings = [('c', 0.8), ('b', 0.7), ('d', 0.2), ('a', 0.1)];
        assert_eq!(order(&words, &meanings), "bcad");
    }

    #[test]
    fn a_single_ranking_keeps_its_order() {
        assert_eq!(order(&[('a', 9.0), ('b', 1.0)], &[]), "ab");
        assert_eq!(order(&[], &[('a', 0.9), ('b', 0.1), ('c', 0.0)]), "abc");
        assert_eq!(order(&[], &[]), "");
    }

    #[test]
    fn a_rare_word_weighs_more_than_a_common_one() {
        let meanings = among(&[(1, 0.3), (2, 0.2)], 50);
        assert_eq!(fuse(&[(2, 5.0)], &meanings)[0].0, 2);
        let common: Vec<(u32, f64)> = (0..40)
            .map(|n| (1_000 + n, 1.0))
            .chain([(2, 1.0)])
            .collect();
        assert_eq!(fuse(&common, &meanings)[0].0, 1);
    }

    #[test]
    fn ties_are_broken_by_the_other_ranking() {
        assert_eq!(
            order(&[('a', 3.0), ('b', 3.0)], &[('b', 0.6), ('a', 0.5)]),
            "ba"
        );
        assert_eq!(
            order(&[('a', 3.0), ('b', 2.0)], &[('b', 0.5), ('a', 0.5)]),
            "ab"
        );
        assert_eq!(order(&[('a', 0.0)], &[('a', 0.5)]), "a");
    }

    #[test]
    fn a_text_without_a_vector_ranks_in_the_middle() {
        // With equal words, the text without a vector ranks between near and far.
        let words = [(1, 4.0), (2, 4.0), (3, 4.0)];
        let mut items = among(&[(1, 0.9)], 40).items;
        items.push((3, -0.5));
        let meanings = Nearest::new(items);
        let order: Vec<u32> = fuse(&words, &meanings)
            .iter()
            .map(|(item, _)| *item)
            .filter(|item| *item < 10)
            .collect();
        assert_eq!(order, [1, 2, 3]);
    }

    #[test]
    fn one_word_hit_does_not_outrank_every_meaning() {
        let meanings = among(&[(1, 0.9)], 9_000);
        let words: Vec<(u32, f64)> = (0..20).map(|n| (1_000 + n, 2.0)).collect();
        assert_eq!(fuse(&words, &meanings)[0].0, 1);
    }

    #[test]
    fn results_found_by_meaning_alone_are_limited() {
        let fused = fuse(&[(1_500, 1.0)], &among(&[], 600));
        assert_eq!(fused.len(), MAX_NEAREST + 1);
    }

    /// Rankings of the two sets that bench/talks.mjs makes, as words and a small
    /// model made them: a line a question, the position of what answers it, then what
    /// words and meanings make of each text (`RECORD=1 npm run bench -- vectors`).
    struct Recorded {
        answer: usize,
        by_words: Vec<(usize, f64)>,
        nearest: Nearest<usize>,
    }

    fn recorded(lines: &str) -> Vec<Recorded> {
        let line = |line: &str| {
            let columns: Vec<&str> = line.split(' ').collect();
            let by_words = columns[1].split(',').enumerate();
            let mut by_words: Vec<(usize, f64)> = by_words
                .filter_map(|(position, score)| {
                    Some((position, score.parse::<f64>().ok()? / 100.0))
                })
                .collect();
            by_words.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            let near = columns[2].split(',').enumerate();
            let items = near
                .map(|(position, near)| (position, near.parse::<f64>().unwrap() / 10_000.0))
                .collect();
            Recorded {
                answer: columns[0].parse().unwrap(),
                by_words,
                nearest: Nearest::new(items),
            }
        };
        lines.lines().map(line).collect()
    }

    fn recall(
        questions: &[Recorded],
        most: usize,
        rank: impl Fn(&Recorded) -> Vec<(usize, f64)>,
    ) -> f64 {
        let found = questions
            .iter()
            .filter(|question| {
                let ranked = rank(question);
                ranked
                    .iter()
                    .take(most)
                    .any(|(position, _)| *position == question.answer)
            })
            .count();
        found as f64 / questions.len() as f64
    }

    #[test]
    fn the_fused_ranking_is_at_least_as_good_as_either() {
        for (name, lines) in [
            ("talk", include_str!("recorded/talk.txt")),
            ("letters", include_str!("recorded/letters.txt")),
        ] {
            let questions = recorded(lines);
            assert!(questions.len() >= 80);
            for most in [1, 10] {
                let words = recall(&questions, most, |question| question.by_words.clone());
                let meanings = recall(&questions, most, |question| question.nearest.best());
                let both = recall(&questions, most, |question| {
                    fuse(&question.by_words, &question.nearest)
                });
                println!("{name}, first {most}: {words:.3} {meanings:.3} {both:.3}");
                assert!(
                    both + 1e-9 >= words.max(meanings),
                    "{name}, first {most}: {words:.3} {meanings:.3} {both:.3}"
                );
                assert!(words > 0.2 && meanings > 0.2);
            }
        }
    }
}
