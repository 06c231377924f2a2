//! The entries of some blocks that the index of words returns for a query.
//!
//! The engine's own score and word counts are not used: they cover every block of the agent, and
//! the content of another session's blocks must not change an answer. A block's entries are one
//! range of numbers, in which its words are counted, the newest entries first.

use super::counts::{BlockCounts, count_block};
use super::definition::Definition;
use super::entry_number::find_ranges;
use super::entry_prefixes::PrefixEntries;
use super::number_range::{EARLIER, NumberRange};
use base::columns::{find, load};
use base::database::{Database, SqlValue};
use base::error::{Error, Result};
use base::filter::{Filter, FilteredColumns};
use base::json::{self, json};
use conversation::index::candidates::{engine_words, most_candidates};
use search::query::{WordQuery, find_word};
use search::stem::stem;
use search::terms::QueryTerm;

/// The most entries of a block in which a word is counted, newest first. If more entries have a
/// word, the older ones are assumed to have it as often as the newer.
const MAX_COUNTED: i64 = 500;

/// The same among entries that earlier builds wrote: there, other blocks' are between them.
const MAX_COUNTED_EARLIER: i64 = 10_000;

/// The most entries that are visited for the words of a query, an entry for each word that it has:
/// the words of the fewest entries come first.
const MAX_VISITED: i64 = 2_000;

/// The same with a filter: the entries that pass may be rare and old. A block has as many entries.
/// Several queries share them: a filter checks each entry that is visited.
const MAX_VISITED_FILTERED: i64 = 10_000;

/// The entries that the index returns for a query.
pub struct CandidateEntries {
    /// The numbers of the likeliest entries, best first, each with its score and with the index of
    /// its block.
    pub entries: Vec<CandidateEntry>,
    /// The query's words, and how rare each is among the blocks' entries.
    pub terms: Vec<QueryTerm>,
    /// Some entries that match were not scanned.
    pub is_cut: bool,
}

/// An entry that the index returns.
#[derive(Clone, Copy)]
pub struct CandidateEntry {
    pub number: i64,
    pub score: f64,
    /// The index of the entry's block among those that are searched.
    pub block: usize,
}

/// Finds the likeliest entries of some blocks for one of several queries, and counts the query's
/// words in these blocks, as if all entries were in one. `prefix_entries` has each block's entries
/// with the query's prefixes.
pub fn load_matches(
    db: &dyn Database,
    blocks: &[Definition],
    query: &WordQuery,
    prefix_entries: &[PrefixEntries],
    filter: Option<&Filter>,
    queries: usize,
) -> Result<CandidateEntries> {
    let most = most_candidates(queries);
    let stems = query.terms();
    let most_filtered = filter.map(|_| MAX_VISITED_FILTERED / queries.max(1) as i64);
    let blocks: Vec<BlockSearch<'_>> = blocks
        .iter()
        .map(|block| BlockSearch::new(db, block, &stems, most_filtered))
        .collect::<Result<_>>()?;
    let all = blocks.iter().map(|block| block.counts.entries).sum();
    let terms: Vec<QueryTerm> = (0..)
        .zip(stems)
        .map(|(index, stem)| {
            let of_block = |block: &BlockSearch<'_>| block.words_at(index).unwrap_or_default();
            let words = || blocks.iter().map(of_block);
            let found = words().map(|word| word.found).sum();
            QueryTerm {
                steps: words().map(|word| word.visited).sum(),
                ..QueryTerm::new(stem, found, all)
            }
        })
        .collect();
    let mut wanted = engine_words(&terms, most_filtered.unwrap_or(MAX_VISITED));
    // At least one word is searched, in the newest entries that have it.
    if wanted.is_empty() {
        let present = terms.iter().filter(|term| term.found > 0);
        wanted.extend(
            present
                .min_by_key(|term| term.found)
                .map(|term| term.stem.as_str()),
        );
    }
    let mut entries = Vec::new();
    let mut is_cut = false;
    for (block_index, block) in blocks.iter().enumerate() {
        let prefix_entries = prefix_entries
            .get(block_index)
            .filter(|_| query.phrases.is_empty());
        let lists: Vec<&[i64]> = query
            .prefixes
            .iter()
            .filter_map(|prefix| Some(prefix_entries?.entries_of(prefix)))
            .collect();
        is_cut |=
            prefix_entries.is_some_and(|prefix_entries| prefix_entries.is_cut && !lists.is_empty());
        let words = if query.phrases.is_empty() {
            block.query_words(
                &terms,
                |term| wanted.contains(term.stem.as_str()),
                &mut is_cut,
            )
        } else {
            block.query_phrases(query, &terms, &mut is_cut)
        };
        let found = block.load_offered(db, &words, &lists, filter, most)?;
        let found = found.into_iter();
        entries.extend(found.map(|(number, score)| CandidateEntry {
            number,
            score,
            block: block_index,
        }));
    }
    entries.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.number.cmp(&a.number)));
    entries.truncate(most);
    Ok(CandidateEntries {
        entries,
        terms,
        is_cut,
    })
}

/// A word in a range of a block's entries.
#[derive(Clone, Copy, Default)]
struct WordInBlock {
    /// About how many entries have it.
    found: i64,
    /// How many entries are visited for it.
    visited: i64,
}

impl std::ops::Add for WordInBlock {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            found: self.found + other.found,
            visited: self.visited + other.visited,
        }
    }
}

/// A range of a block's numbers, and the words in it.
struct SearchedRange {
    range: NumberRange,
    /// For each of the query's words: its counts, the lowest number that is scanned, and whether
    /// entries below are not.
    words: Vec<(WordInBlock, i64, bool)>,
}

/// A block that is searched.
struct BlockSearch<'a> {
    scope: &'a str,
    content_key: String,
    counts: BlockCounts,
    ranges: Vec<SearchedRange>,
}

impl<'a> BlockSearch<'a> {
    fn new(
        db: &dyn Database,
        block: &'a Definition,
        stems: &[String],
        most_filtered: Option<i64>,
    ) -> Result<Self> {
        let (scope, content_key) = (block.scope.as_str(), block.content_key());
        let counts = count_block(db, scope, &content_key)?;
        let mut searched = Self {
            scope,
            content_key,
            counts,
            ranges: Vec::new(),
        };
        for range in find_ranges(db, &counts)? {
            let words = stems
                .iter()
                .map(|stem| searched.count(db, range, stem, most_filtered))
                .collect::<Result<_>>()?;
            searched.ranges.push(SearchedRange { range, words });
        }
        Ok(searched)
    }

    fn words_at(&self, index: usize) -> Option<WordInBlock> {
        let words = self
            .ranges
            .iter()
            .filter_map(|range| range.words.get(index));
        words.map(|(word, ..)| *word).reduce(std::ops::Add::add)
    }

    /// SQL: the condition on an index row `found` to be of this block, and the table that it
    /// needs. In its own range, a block has all numbers.
    fn ownership(range: NumberRange) -> (&'static str, &'static str) {
        if range != EARLIER {
            ("", "AND ?2 = ?2 AND ?3 = ?3")
        } else {
            (
                "CROSS JOIN cf_agents_entries AS e ON e.number = found.rowid",
                "AND e.scope = ?2 AND e.block = ?3",
            )
        }
    }

    /// Counts a word from the newest entry on.
    fn count(
        &self,
        db: &dyn Database,
        range: NumberRange,
        stem: &str,
        most_filtered: Option<i64>,
    ) -> Result<(WordInBlock, i64, bool)> {
        let most = match (range == EARLIER, most_filtered) {
            (true, _) => MAX_COUNTED_EARLIER,
            (false, None) => MAX_COUNTED,
            (false, Some(most)) => most,
        };
        let NumberRange { first, last } = range;
        let (join, is_own) = Self::ownership(range);
        // FTS5 ignores the end of a range if it is not an integer. A bound number is not one.
        let sql = format!(
            "SELECT count(*), coalesce(min(id), {first})
               FROM (SELECT found.rowid AS id
                       FROM cf_agents_entries_search AS found
                      {join}
                      WHERE found.cf_agents_entries_search MATCH ?1
                        AND found.rowid BETWEEN {first} AND {last}
                        {is_own}
                      ORDER BY found.rowid DESC
                      LIMIT {most})"
        );
        let params = [
            find_word(stem).into(),
            self.scope.into(),
            self.content_key.as_str().into(),
        ];
        let (visited, least): (i64, i64) =
            find(db, &sql, &params)?.ok_or_else(|| Error::storage("a count is missing"))?;
        let is_cut = visited >= most;
        let numbers = self.counts.newest - first + 1;
        let scanned = self.counts.newest - least + 1;
        let found = if is_cut && scanned > 0 {
            (visited * numbers / scanned).clamp(visited, self.counts.entries.max(visited))
        } else {
            visited
        };
        let least = if is_cut { least } else { first };
        Ok((WordInBlock { found, visited }, least, is_cut))
    }

    /// The words that are searched in each range, each with its weight and the lowest number.
    fn query_words(
        &self,
        terms: &[QueryTerm],
        is_wanted: impl Fn(&QueryTerm) -> bool,
        is_cut: &mut bool,
    ) -> Vec<Vec<serde_json::Value>> {
        let of_range = |range: &SearchedRange| {
            let mut wanted_words = Vec::new();
            for (term, (word, least, is_part)) in terms.iter().zip(&range.words) {
                if is_wanted(term) {
                    *is_cut |= is_part;
                    wanted_words.push(json!([find_word(&term.stem), term.rarity, least]));
                } else {
                    *is_cut |= word.found > 0;
                }
            }
            wanted_words
        };
        self.ranges.iter().map(of_range).collect()
    }

    /// The phrases, in the entries that have the rarest of their words.
    fn query_phrases(
        &self,
        query: &WordQuery,
        terms: &[QueryTerm],
        is_cut: &mut bool,
    ) -> Vec<Vec<serde_json::Value>> {
        let stems = query.phrases.iter().flatten();
        let stems: Vec<String> = stems.map(|word| stem(word)).collect();
        let rarest = (0..)
            .zip(terms)
            .filter(|(_, term)| stems.contains(&term.stem))
            .min_by_key(|(_, term)| term.found);
        let rarest: Option<usize> = rarest.map(|(index, _)| index);
        let of_range = |range: &SearchedRange| {
            let counted = rarest.and_then(|index| range.words.get(index));
            *is_cut |= counted.is_some_and(|(.., is_part)| *is_part);
            let least = counted.map_or(range.range.first, |(_, least, _)| *least);
            vec![json!([query.phrases_to_fts(), 1.0, least])]
        };
        self.ranges.iter().map(of_range).collect()
    }

    /// The entries that match, each with the sum of the weights of what it has: the best ones
    /// first. `words` has a list for each range.
    fn load_offered(
        &self,
        db: &dyn Database,
        words: &[Vec<serde_json::Value>],
        by_prefix: &[&[i64]],
        filter: Option<&Filter>,
        most: usize,
    ) -> Result<Vec<(i64, f64)>> {
        if self.ranges.is_empty() {
            return Ok(Vec::new());
        }
        let ranges = self.ranges.iter().enumerate();
        let mut found: Vec<String> = ranges
            .map(|(index, SearchedRange { range, .. })| {
                let (join, is_own) = Self::ownership(*range);
                let last = range.last;
                format!(
                    "SELECT found.rowid AS number, wanted.value ->> 1 AS weight
                       FROM json_each(?1, '$.words[{index}]') AS wanted
                      CROSS JOIN cf_agents_entries_search AS found
                      {join}
                      WHERE found.cf_agents_entries_search MATCH wanted.value ->> 0
                        AND found.rowid BETWEEN wanted.value ->> 2 AND {last}
                        {is_own}"
                )
            })
            .collect();
        found.push(
            "SELECT entry.value, 1.0
               FROM json_each(?1, '$.prefixes') AS prefix
              CROSS JOIN json_each(prefix.value) AS entry"
                .to_owned(),
        );
        let passes = filter.map_or_else(String::new, |filter| {
            format!(
                "WHERE EXISTS (SELECT 1
                                 FROM cf_agents_entries AS e
                                WHERE e.number = found.number
                                  AND {})",
                filter.condition(&FilteredColumns::of_note("e.note"), "?4")
            )
        });
        let sql = format!(
            "SELECT number, score
               FROM (SELECT number, sum(weight) AS score
                       FROM ({})
                      GROUP BY number) AS found
              {passes}
              ORDER BY score DESC, number DESC
              LIMIT {most}",
            found.join(" UNION ALL ")
        );
        let mut params = vec![
            json::encode(&json!({"words": words, "prefixes": by_prefix}))?.into(),
            self.scope.into(),
            self.content_key.as_str().into(),
        ];
        params.extend(filter.map(|filter| SqlValue::from(filter.param())));
        let offered: Vec<(i64, Option<f64>)> = load(db, &sql, &params)?;
        let offered = offered.into_iter();
        Ok(offered
            .map(|(number, score)| (number, score.unwrap_or(0.0)))
            .collect())
    }
}
