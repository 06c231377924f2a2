//! The entries of some blocks that the index of words offers for a query.

use std::collections::HashMap;

use super::counts::count_block;
use super::definition::Definition;
use super::entry_number::find_ranges;
use super::number_range::NumberRange;
use base::columns::load;
use base::database::{Database, SqlValue};
use base::error::Result;
use base::filter::{Filter, FilteredColumns};
use base::json;
use search::query::{WordQuery, find_word};
use search::terms::QueryTerm;

/// The entries that the index offers for a query.
pub struct LikelyEntries {
    /// The numbers of the likeliest entries, best first, each with its score and with the
    /// place of its block.
    pub entries: Vec<LikelyEntry>,
    /// The query's words, and how rare each is among the blocks' entries.
    pub terms: Vec<QueryTerm>,
}

/// An entry that the index offers.
#[derive(Clone, Copy)]
pub struct LikelyEntry {
    pub number: i64,
    pub score: f64,
    /// The place of the entry's block among those that are searched.
    pub block: usize,
}

/// Finds at most so many entries of some blocks that match, and counts the query's words in
/// these blocks, as if all entries were in one.
pub fn load_matches(
    db: &dyn Database,
    blocks: &[Definition],
    query: &WordQuery,
    filter: Option<&Filter>,
    most: usize,
) -> Result<LikelyEntries> {
    let mut offered = Vec::new();
    let mut groups: HashMap<i64, i64> = HashMap::new();
    let mut all = 0;
    for (place, block) in blocks.iter().enumerate() {
        let found = load_offered(db, block, query, filter, most)?;
        all += found.all;
        for (bits, entries) in found.groups {
            *groups.entry(bits).or_default() += entries;
        }
        let entries = found.entries.into_iter();
        offered.extend(entries.map(|(bits, number)| (bits, number, place)));
    }
    let terms: Vec<QueryTerm> = (0..)
        .zip(query.terms())
        .map(|(bit, stem)| {
            let holding = groups.iter().filter(|(bits, _)| *bits >> bit & 1 == 1);
            let found = holding.map(|(_, entries)| entries).sum();
            QueryTerm::new(stem, found, all)
        })
        .collect();
    let phrases = 1 << (terms.len() + 1);
    let mut entries: Vec<LikelyEntry> = offered
        .into_iter()
        .filter(|(bits, ..)| query.phrases.is_empty() || bits & phrases != 0)
        .map(|(bits, number, block)| {
            let held = (0..).zip(&terms).filter(|(bit, _)| bits >> bit & 1 == 1);
            let score: f64 = held.map(|(_, term)| term.rarity).sum();
            // A phrase, or a beginning, counts as one word more.
            let score = score + f64::from(u8::from(bits >> terms.len() != 0));
            LikelyEntry {
                number,
                score,
                block,
            }
        })
        .collect();
    entries.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.number.cmp(&a.number)));
    entries.truncate(most);
    Ok(LikelyEntries { entries, terms })
}

/// The entries of one block that match.
struct Offered {
    /// For each entry, which words it holds, and its number.
    entries: Vec<(i64, i64)>,
    /// How many entries hold which words, also those that a filter leaves out.
    groups: HashMap<i64, i64>,
    /// How many entries the block has.
    all: i64,
}

/// The engine's own score and word counts are not used: they cover every block of the
/// agent, and the content of another session's blocks must not change an answer.
///
/// Visits a row for each entry of the block and each word that it holds, at most 10,000
/// entries. A filter looks at the note of each entry that matches, once.
fn load_offered(
    db: &dyn Database,
    block: &Definition,
    query: &WordQuery,
    filter: Option<&Filter>,
    most: usize,
) -> Result<Offered> {
    let [scope, content_key] = [block.scope.as_str(), &block.content_key()];
    let counts = count_block(db, scope, content_key)?;
    let ranges = find_ranges(db, &counts)?;
    let stems = query.terms();
    // A bit for each word, one for all beginnings of words, and one for the phrases: 50.
    let mut wanted: Vec<Option<String>> = stems.iter().map(|stem| Some(find_word(stem))).collect();
    let beginnings: Vec<String> = query.prefixes_to_fts().collect();
    wanted.push(Some(beginnings.join(" OR ")).filter(|asked| !asked.is_empty()));
    wanted.push((!query.phrases.is_empty()).then(|| query.to_fts()));
    let found: Vec<String> = ranges
        .iter()
        .map(|NumberRange { first, last }| {
            // FTS5 ignores the end of a range if it is not an integer. A bound number is
            // not one.
            format!(
                "SELECT e.number, wanted.key AS bit
                   FROM json_each(?1) AS wanted
                  CROSS JOIN cf_agents_entries_search AS found
                  CROSS JOIN cf_agents_entries AS e
                     ON e.number = found.rowid
                  WHERE wanted.value IS NOT NULL
                    AND found.cf_agents_entries_search MATCH wanted.value
                    AND found.rowid BETWEEN {first} AND {last}
                    AND e.scope = ?2
                    AND e.block = ?3"
            )
        })
        .collect();
    let passes = match filter {
        None => "1".to_owned(),
        Some(filter) => format!(
            "EXISTS (SELECT 1
                       FROM cf_agents_entries AS e
                      WHERE e.number = held.number
                        AND {})",
            filter.condition(&FilteredColumns::of_note("e.note"), "?4")
        ),
    };
    // Of entries that a filter leaves out, one row says how many hold the same words.
    let sql = format!(
        "SELECT bits, entries, iif(passes, number, NULL)
           FROM (SELECT bits, number, passes,
                        count(*) OVER (PARTITION BY bits) AS entries,
                        row_number() OVER (PARTITION BY bits, passes ORDER BY number DESC) AS place
                   FROM (SELECT held.number, held.bits, {passes} AS passes
                           FROM (SELECT number, sum(1 << bit) AS bits
                                   FROM ({})
                                  GROUP BY number) AS held))
          WHERE place <= iif(passes, {most}, 1)
          ORDER BY number DESC",
        found.join(" UNION ALL ")
    );
    let mut params = vec![
        json::encode(&wanted)?.into(),
        scope.into(),
        content_key.into(),
    ];
    params.extend(filter.map(|filter| SqlValue::from(filter.param())));
    let rows: Vec<(i64, i64, Option<i64>)> = match found.is_empty() {
        true => Vec::new(),
        false => load(db, &sql, &params)?,
    };
    let groups = rows
        .iter()
        .map(|(bits, entries, _)| (*bits, *entries))
        .collect();
    let entries = rows
        .into_iter()
        .filter_map(|(bits, _, number)| Some((bits, number?)));
    Ok(Offered {
        entries: entries.collect(),
        groups,
        all: counts.entries,
    })
}
