//! The entries of a block that the index of words offers for a query.

use std::collections::HashMap;

use super::counts::count_block;
use super::definition::Definition;
use super::entry_number::find_ranges;
use super::number_range::NumberRange;
use crate::base::columns::load;
use crate::base::database::Database;
use crate::base::error::Result;
use crate::base::json;
use crate::search::query::{WordQuery, find_word};
use crate::search::terms::QueryTerm;

/// The entries that the index offers for a query.
pub struct LikelyEntries {
    /// The numbers of the likeliest entries, best first, each with its score.
    pub entries: Vec<(i64, f64)>,
    /// The query's words, and how rare each is among the block's entries.
    pub terms: Vec<QueryTerm>,
}

/// Finds at most so many entries of one block that match, and counts the query's words in this block.
/// The engine's own score and word counts are not used: they cover every block of the
/// agent, and the content of another session's blocks must not change an answer.
///
/// Visits a row for each entry of the block and each word that it holds, at most 10,000
/// entries.
pub fn load_matches(
    db: &dyn Database,
    block: &Definition,
    query: &WordQuery,
    most: usize,
) -> Result<LikelyEntries> {
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
    let sql = format!(
        "SELECT bits, entries, number
           FROM (SELECT bits, number,
                        count(*) OVER (PARTITION BY bits) AS entries,
                        row_number() OVER (PARTITION BY bits ORDER BY number DESC) AS place
                   FROM (SELECT number, sum(1 << bit) AS bits
                           FROM ({})
                          GROUP BY number))
          WHERE place <= {most}
          ORDER BY number DESC",
        found.join(" UNION ALL ")
    );
    let params = [
        json::encode(&wanted)?.into(),
        scope.into(),
        content_key.into(),
    ];
    let rows: Vec<(i64, i64, i64)> = match found.is_empty() {
        true => Vec::new(),
        false => load(db, &sql, &params)?,
    };
    let mut groups: HashMap<i64, i64> = HashMap::new();
    for (bits, entries, _) in &rows {
        groups.insert(*bits, *entries);
    }
    let terms: Vec<QueryTerm> = (0..)
        .zip(stems)
        .map(|(bit, stem)| {
            let holding = groups.iter().filter(|(bits, _)| *bits >> bit & 1 == 1);
            let found = holding.map(|(_, entries)| entries).sum();
            QueryTerm::new(stem, found, counts.entries)
        })
        .collect();
    let phrases = 1 << (terms.len() + 1);
    let mut entries: Vec<(i64, f64)> = rows
        .into_iter()
        .filter(|(bits, _, _)| query.phrases.is_empty() || bits & phrases != 0)
        .map(|(bits, _, number)| {
            let held = (0..).zip(&terms).filter(|(bit, _)| bits >> bit & 1 == 1);
            let score: f64 = held.map(|(_, term)| term.rarity).sum();
            // A phrase, or a beginning, counts as one word more.
            (
                number,
                score + f64::from(u8::from(bits >> terms.len() != 0)),
            )
        })
        .collect();
    entries.sort_by(|(a_number, a), (b_number, b)| b.total_cmp(a).then(b_number.cmp(a_number)));
    entries.truncate(most);
    Ok(LikelyEntries { entries, terms })
}
