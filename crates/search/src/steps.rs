//! The work that one search may cause.
//!
//! A step is about what the engine does to rank one text for one word: 2 to 4 µs. A search first
//! asks how many steps each of its words takes, then runs those that fit. Whatever is said in an
//! agent, a search ends after so many steps, and its answer says if something was left out.

/// Steps of all words of a search, and of all beginnings of words. With a million texts, common
/// words are in more.
pub const MAX_STEPS: i64 = 15_000;

/// The same for a search with filters: what they leave over may be rare and old, so more is
/// ranked.
pub const MAX_FILTERED_STEPS: i64 = 60_000;

/// The fewest steps of each of several queries.
const LEAST_STEPS: i64 = 3_000;

/// The steps of all beginnings of words, as a multiple of those of all words.
pub const PREFIX_SHARE: i64 = 2;

/// A word of more steps is not scored, which takes steps in all of its texts: its newest texts are
/// taken.
pub const MAX_SCORED_STEPS: i64 = 250_000;

/// Steps up to which phrases are looked for in all texts: to step over a text that does not have
/// all of their words takes a tenth of a step.
pub const MAX_PHRASE_STEPS: i64 = 60_000;

/// A word that stands so often in a text takes one step more there.
const REPEATS_A_STEP: i64 = 40;

/// The most index entries of words that are walked through for one search, to count them: 25 ns
/// each. In an agent of more than 300,000 messages, a search has fewer words.
const MAX_WALKED: i64 = 15_000_000;

/// The fewest words of a query that are looked for in an agent of any size.
const LEAST_WORDS: usize = 8;

/// The steps of a word that so many texts hold, so many times in all.
pub fn steps_of(texts: i64, places: i64) -> i64 {
    texts + places / REPEATS_A_STEP
}

/// The steps of each of so many queries.
pub fn steps_of_each(queries: usize, is_filtered: bool) -> i64 {
    let most = match is_filtered {
        true => MAX_FILTERED_STEPS,
        false => MAX_STEPS,
    };
    (most / queries.max(1) as i64).max(LEAST_STEPS)
}

/// How many words of one search can be counted among so many texts.
pub fn most_counted(texts: i64) -> usize {
    usize::try_from(MAX_WALKED / texts.max(1))
        .unwrap_or(0)
        .max(LEAST_WORDS)
}
