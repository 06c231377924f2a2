//! The limits on the work of one search.
//!
//! A step is about the work of ranking one text for one word: 2 to 4 µs. A search first computes
//! how many steps each of its words takes, then runs those that fit. So a search takes bounded time
//! whatever the agent contains, and its answer reports if something was left out.

/// The most steps of all words of a search, and of all prefixes. Among a million texts, common
/// words take more.
pub const MAX_STEPS: i64 = 15_000;

/// The same for a search with filters: the texts that pass may be rare and old, so more are ranked.
pub const MAX_FILTERED_STEPS: i64 = 60_000;

/// The fewest steps for each of several queries.
const LEAST_STEPS: i64 = 3_000;

/// The steps of all prefixes, as a multiple of those of all words.
pub const PREFIX_SHARE: i64 = 2;

/// A word of more steps is not scored, because scoring takes steps in all of its texts: its newest
/// texts are used.
pub const MAX_SCORED_STEPS: i64 = 250_000;

/// Steps up to which phrases are searched in all texts: skipping a text that lacks some of their
/// words takes a tenth of a step.
pub const MAX_PHRASE_STEPS: i64 = 60_000;

/// A word takes one step more in a text for each this many occurrences there.
const REPEATS_A_STEP: i64 = 40;

/// The most index entries that one search walks through to count its words: 25 ns each. In an agent
/// of more than 300,000 messages, a search uses fewer words.
const MAX_WALKED: i64 = 15_000_000;

/// The fewest words of a query that are searched, in an agent of any size.
const LEAST_WORDS: usize = 8;

/// The steps of a word that occurs in this many texts, this many times in total.
pub fn steps_of(texts: i64, occurrences: i64) -> i64 {
    texts + occurrences / REPEATS_A_STEP
}

/// The steps for each query, if there are this many queries.
pub fn steps_of_each(queries: usize, is_filtered: bool) -> i64 {
    let most = if is_filtered {
        MAX_FILTERED_STEPS
    } else {
        MAX_STEPS
    };
    (most / queries.max(1) as i64).max(LEAST_STEPS)
}

/// How many words of one search can be counted among this many texts.
pub fn most_counted(texts: i64) -> usize {
    usize::try_from(MAX_WALKED / texts.max(1))
        .unwrap_or(0)
        .max(LEAST_WORDS)
}
