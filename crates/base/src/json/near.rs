//! Suggestions for misspelled names: finds the field or operation that was probably meant.

use super::checks::MAX_QUOTED_CHARS;

/// The candidate closest to a misspelled name, if one is close enough.
pub fn find_nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(3) / 3)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The edit distance between two names, ignoring case. Both are short: a field's name, cut at
/// [`MAX_QUOTED_CHARS`], and one of our own names.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.to_ascii_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left
        .to_ascii_lowercase()
        .chars()
        .take(MAX_QUOTED_CHARS)
        .enumerate()
    {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, b) in right.iter().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or(0);
            let before = row.get(j).copied().unwrap_or(0);
            let cost = (above + 1)
                .min(before + 1)
                .min(diagonal + usize::from(a != *b));
            diagonal = above;
            if let Some(cell) = row.get_mut(j + 1) {
                *cell = cost;
            }
        }
    }
    row.last().copied().unwrap_or(0)
}
