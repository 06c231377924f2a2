//! Finds every row that contains a text or that is derived from an event: in logs, memory,
//! versions, summaries, frozen prompts. A request reads a bounded part of the tables; its cursor
//! names the row where the next request continues.
//!
//! The tables are read, not the index of words: the index has no summaries and no versions, it may
//! be incomplete, and a row that it lacks would not be erased. SQLite searches the texts itself,
//! so only the snippets are loaded into memory.

use crate::json_schema::JsonSchema;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::mention_tables::{MentionTable, mention_tables};
use super::table_pages::{OwnRows, PageBudget, PageCursor, TableRows};
use base::columns::load;
use base::database::{Database, SqlValue};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, json, quoted};
use base::row;
use conversation::log::find::find_seqs;
use conversation::messages::tree::path::{Branches, PathSegment, is_on_path};

/// The most characters of a query. Each form of it is searched in each text.
pub const MAX_QUERY_CHARS: usize = 200;

/// The most rows, and the most bytes of text, that one request reads: about 100 ms of the engine. A
/// row with more bytes than that is read by itself.
const MAX_ROWS: i64 = 20_000;
const MAX_BYTES: i64 = 8 << 20;

/// What to find.
pub enum Wanted<'a> {
    /// Texts that contain this text, in upper or lower case.
    Text(&'a str),
    /// These events, the summaries that cover them, and the memory derived from them.
    Events(&'a [Id]),
}

/// A kind of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MentionKind {
    /// An event of a log: `sessionId`, `id`.
    Event,
    /// A summary: `sessionId`, `id`.
    Summary,
    /// A session's name or metadata: `sessionId`.
    Session,
    /// A block's definition: `label`.
    Definition,
    /// The text of a block: `label`, `version`.
    Block,
    /// An entry: `label`, `key`.
    Entry,
    /// A document: `label`, `key`.
    Document,
    /// An earlier version: `label`, `version`, and the `key` of an entry or a document.
    Version,
    /// A document as a session loaded it: `sessionId`, `label`, `key`.
    LoadedDocument,
    /// A frozen prompt.
    Prompt,
    /// A report that was not delivered to `onTurnEnd` or `onMemoryChange`: `sessionId`, `id`.
    Report,
    /// A proposal to change memory: `id`.
    Proposal,
}

impl MentionKind {
    /// Whether such a place belongs to the agent, even if it names a session: a proposal is about
    /// the agent's memory, a report is for the operator. A caller of one session finds none.
    pub fn is_agents(self) -> bool {
        match self {
            Self::Report | Self::Proposal => true,
            Self::Event
            | Self::Summary
            | Self::Session
            | Self::Definition
            | Self::Block
            | Self::Entry
            | Self::Document
            | Self::Version
            | Self::LoadedDocument
            | Self::Prompt => false,
        }
    }
}

/// A place that contains a mention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mention {
    pub kind: MentionKind,
    /// The session that the place belongs to. Absent or `null`: the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// The text around it, as it is stored. `erase` ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Mentions {
    pub places: Vec<Mention>,
    /// Where the next request continues, even after an empty page. `null`: everything was
    /// searched.
    pub cursor: Option<String>,
}

/// Finds up to `limit` mentions. `only`: only in this session.
pub fn find_mentions(
    db: &dyn Database,
    wanted: &Wanted<'_>,
    only: Option<&Id>,
    limit: usize,
    cursor: Option<&str>,
) -> Result<Mentions> {
    let key_columns = |table: usize| Some(mention_tables().nth(table)?.rows.key.len());
    let mut at = PageCursor::read(cursor, key_columns)?;
    let pattern = wanted.pattern()?;
    let mut found = Mentions {
        places: Vec::new(),
        cursor: None,
    };
    let mut capacity = PageBudget {
        rows: MAX_ROWS,
        bytes: MAX_BYTES,
    };
    while let Some(table) = mention_tables().nth(at.table) {
        if capacity.is_full() || found.places.len() >= limit {
            found.cursor = Some(at.encode());
            break;
        }
        let search = TableSearch {
            db,
            searched: &table,
            only,
            pattern: &pattern,
            wanted,
        };
        let left = limit - found.places.len();
        match search.step(&at.after, left, &mut capacity, &mut found.places)? {
            Some(after) => at.after = after,
            None => at.leave_table(),
        }
    }
    Ok(found)
}

impl Wanted<'_> {
    /// The parameter of the conditions: JSON.
    fn pattern(&self) -> Result<String> {
        match self {
            Wanted::Text(text) => json::encode(&forms(text)),
            Wanted::Events(ids) => {
                let events = ids.iter().map(|id| json!([id.as_str(), id.find_seq()]));
                Ok(json::text(&json!(events.collect::<Vec<_>>())))
            }
        }
    }
}

/// The forms in which a row may contain a text: upper and lower case, since SQLite's `lower`
/// changes only ASCII, and escaped as in JSON.
fn forms(text: &str) -> Vec<String> {
    let mut title: String = text.chars().take(1).flat_map(char::to_uppercase).collect();
    title.extend(text.chars().skip(1).flat_map(char::to_lowercase));
    let mut forms = Vec::new();
    for written in [
        text.to_owned(),
        text.to_lowercase(),
        text.to_uppercase(),
        title,
    ] {
        let in_json = quoted(&written);
        let in_json = in_json.get(1..in_json.len() - 1).unwrap_or_default();
        for form in [written.clone(), in_json.to_owned(), escaped(&written)] {
            let form = form.to_ascii_lowercase();
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    forms
}

/// The text with everything but ASCII as `\u` escapes, as some programs write JSON.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let in_json = quoted(text);
    for c in in_json
        .get(1..in_json.len() - 1)
        .unwrap_or_default()
        .chars()
    {
        if c.is_ascii() {
            escaped.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

/// One table's part of a request.
struct TableSearch<'a> {
    db: &'a dyn Database,
    searched: &'a MentionTable,
    only: Option<&'a Id>,
    pattern: &'a str,
    wanted: &'a Wanted<'a>,
}

/// The numbers of the wanted events in one session.
struct WantedSeqs {
    seqs: BTreeSet<i64>,
    branches: Branches,
}

/// A matching row.
struct FoundMention {
    mention: Mention,
    key: Vec<SqlValue>,
}

row! {
    for FoundMention(mention: &str, snippet: &str, key: &str) {
        mention: &str = mention,
        snippet: Option<String> = snippet,
        key: Vec<SqlValue> = key,
    }
    {
        let unread = |_| Error::storage("a mention that can't be read");
        let mention: Mention = json::decode(mention).map_err(unread)?;
        Ok(Self {
            mention: Mention { snippet, ..mention },
            key,
        })
    }
}

impl TableSearch<'_> {
    /// Reads the next rows of the table. Returns the key of the last of them; `None`: the table has
    /// no more.
    fn step(
        &self,
        after: &[SqlValue],
        limit: usize,
        capacity: &mut PageBudget,
        mentions: &mut Vec<Mention>,
    ) -> Result<Option<Vec<SqlValue>>> {
        let Some(condition) = self.condition() else {
            return Ok(None);
        };
        let rows = self.rows();
        let Some((end, range)) = rows.next_page(self.db, after, capacity)? else {
            return Ok(None);
        };
        let mut params = range.params;
        let pattern = params.len() + 1;
        params.push(self.pattern.into());
        params.push((limit as i64).into());
        let snippet = match self.wanted {
            Wanted::Text(_) => self
                .searched
                .snippet()
                .replace("?p", &format!("?{pattern}")),
            Wanted::Events(_) => "NULL".to_owned(),
        };
        let sql = format!(
            "SELECT {columns}
               FROM {name} AS t
              WHERE {range}
                AND {condition}
              ORDER BY {order}
              LIMIT ?{limit}",
            columns = FoundMention::columns(
                self.searched.rows.location,
                &snippet,
                &self.searched.rows.key.join(", ")
            ),
            range = range.condition,
            order = range.order,
            name = self.searched.table.name,
            condition = condition.replace("?p", &format!("?{pattern}")),
            limit = pattern + 1,
        );
        let found: Vec<FoundMention> = load(self.db, &sql, &params)?;
        let is_full = found.len() >= limit;
        let mut last = end.key;
        let mut sessions = BTreeMap::new();
        for FoundMention { mention, key } in found {
            if self.is_on_its_path(&mention, &key, &mut sessions)? {
                mentions.push(mention);
            }
            // A full page ends at its last mention, and the rows after it are read again.
            if is_full {
                last = key;
            }
        }
        Ok(Some(last))
    }

    /// Whether a summary covers one of the wanted events: an event on a branch next to the summary
    /// may have a number between those of the summary's ends. `true` for any other mention.
    fn is_on_its_path(
        &self,
        mention: &Mention,
        key: &[SqlValue],
        sessions: &mut BTreeMap<String, WantedSeqs>,
    ) -> Result<bool> {
        let (Wanted::Events(ids), MentionKind::Summary, Some(session_id)) =
            (self.wanted, mention.kind, &mention.session_id)
        else {
            return Ok(true);
        };
        let [
            _,
            SqlValue::Integer(to_seq),
            SqlValue::Integer(from_seq),
            ..,
        ] = key
        else {
            return Err(Error::storage("a summary without its ends"));
        };
        let wanted = match sessions.entry(session_id.as_str().to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(WantedSeqs {
                seqs: find_seqs(self.db, session_id, ids.iter())?
                    .into_values()
                    .collect(),
                branches: Branches::load(self.db, session_id)?,
            }),
        };
        let path: Vec<PathSegment> = wanted.branches.path_up(*to_seq).collect();
        let mut within = wanted.seqs.range(from_seq..=to_seq);
        Ok(within.any(|seq| is_on_path(&path, *seq)))
    }

    fn rows(&self) -> TableRows<'_> {
        let own = |(session_id, owner)| OwnRows {
            session_id,
            condition: format!("t.{owner} = ?s"),
            is_range: false,
        };
        TableRows {
            name: self.searched.table.name,
            key: self.searched.rows.key,
            length: self.searched.length(),
            only: self.only.zip(self.searched.owner()).map(own),
        }
    }

    /// The SQL condition for a matching row. `?p` is the pattern. `None`: no row of this table
    /// matches.
    fn condition(&self) -> Option<String> {
        if self.only.is_some() && self.searched.owner().is_none() {
            return None;
        }
        let condition = match self.wanted {
            Wanted::Text(_) => self.searched.contains_text(),
            Wanted::Events(_) => self.searched.rows.comes_from?.to_owned(),
        };
        Some(format!("{condition} AND {}", self.searched.is_visible()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_matched_in_each_stored_spelling() {
        assert_eq!(forms("Bob"), ["bob"]);
        let forms = forms("Ä\"b");
        for form in [
            "Ä\"b",
            "ä\"b",
            "ä\\\"b",
            "Ä\"b",
            "\\u00e4\\\"b",
            "\\u00c4\\\"b",
        ] {
            assert!(forms.contains(&form.to_owned()), "{form}: {forms:?}");
        }
    }
}
