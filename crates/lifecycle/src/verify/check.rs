//! How a table is checked: the rules that each row must keep, as SQL.

use super::finding::{Finding, FindingCode, FindingPlace};
use crate::table_pages::{OwnRows, PageRange, PageRoom, TableRows};
use base::action::Action;
use base::columns::load;
use base::database::{Database, SqlValue};
use base::error::{Error, Result};
use base::ids::Id;
use base::json;
use base::numbers::{BEYOND_PLACES, CURSORS_A_SEQ, MAX_SEQ, place_sql};
use base::row;
use memory::number_range::{OWN_NUMBERS, RANGE};

/// The most rows that one statement checks.
pub const PAGE_ROWS: i64 = 500;

/// The owner of a table's rows.
#[derive(Clone, Copy)]
pub enum RowsOwner {
    /// This column has the session, or is empty in rows of the agent.
    Column(&'static str),
    /// The session's rows are a range of keys: SQL on a row `t`. `?s` is the session's id.
    Range(&'static str),
    /// The agent's, or not distinguishable: a check of one session omits the table.
    Agent,
}

/// A rule, as SQL on a row `t` that is true if the row breaks it. Names with a colon are
/// placeholders for constants: see [`fill_numbers`].
pub struct RowRule(pub FindingCode, pub &'static str);

/// A check of the rows of a page that SQL can't make.
pub type DeeperCheck = fn(&dyn Database, &PageRange) -> Result<Vec<Finding>>;

/// How a table is checked.
pub struct Check {
    pub table: &'static str,
    /// The columns of the primary key, in its order.
    pub key: &'static [&'static str],
    pub owner: RowsOwner,
    /// SQL: the position of a row `t`, as the JSON of a [`FindingPlace`].
    pub place: &'static str,
    /// SQL: how many bytes the rules read of a row `t`.
    pub length: &'static str,
    pub page_rows: i64,
    pub rules: &'static [RowRule],
    pub deeper: Option<DeeperCheck>,
}

/// The defaults for the check of one of the agent's tables.
pub const OF_AGENT: Check = Check {
    table: "",
    key: &[],
    owner: RowsOwner::Agent,
    place: "'{}'",
    length: "0",
    page_rows: PAGE_ROWS,
    rules: &[],
    deeper: None,
};

/// The defaults for the check of a table whose rows belong to sessions.
pub const OF_SESSION: Check = Check {
    owner: RowsOwner::Column("session_id"),
    place: "json_object('sessionId', t.session_id)",
    ..OF_AGENT
};

/// A page of checked rows.
pub struct CheckedPage {
    pub findings: Vec<Finding>,
    /// The key of the last row.
    pub last: Vec<SqlValue>,
}

/// A row that breaks rules.
struct BrokenRow {
    place: FindingPlace,
    /// The numbers of the rules, each between two commas.
    broken: String,
}

row! {
    for BrokenRow(place: &str, broken: &str) {
        place: &str = place,
        broken: String = broken,
    }
    {
        let unread = |_| Error::storage("the place of a damaged row can't be read");
        Ok(Self {
            place: json::decode(place).map_err(unread)?,
            broken,
        })
    }
}

impl Check {
    /// Whether this is a check of the table, or of the table in which the virtual table stores its
    /// rows.
    #[cfg(test)]
    pub fn is_of(&self, table: &str) -> bool {
        self.table == table || self.table.strip_suffix("_docsize") == Some(table)
    }

    /// Checks the next rows of the table. `None`: the table is at its end. `indexed_from`: SQL,
    /// see [`indexed_from_sql`](conversation::index::indexed::indexed_from_sql).
    pub fn page(
        &self,
        db: &dyn Database,
        only: Option<&Id>,
        indexed_from: &str,
        after: &[SqlValue],
        room: &mut PageRoom,
    ) -> Result<Option<CheckedPage>> {
        let Some(rows) = self.rows(only) else {
            return Ok(None);
        };
        let mut page_room = PageRoom {
            rows: room.rows.min(self.page_rows),
            bytes: room.bytes,
        };
        let Some((end, range)) = rows.next_page(db, after, &mut page_room)? else {
            return Ok(None);
        };
        room.rows -= end.rows;
        room.bytes -= end.bytes;
        let mut findings = self.find_broken(db, indexed_from, &range)?;
        if let Some(deeper) = self.deeper {
            findings.append(&mut deeper(db, &range)?);
        }
        let last = end.key;
        Ok(Some(CheckedPage { findings, last }))
    }

    fn rows<'a>(&'a self, only: Option<&'a Id>) -> Option<TableRows<'a>> {
        let own = match (only, self.owner) {
            (None, _) => None,
            (Some(_), RowsOwner::Agent) => return None,
            (Some(session_id), RowsOwner::Column(column)) => Some(OwnRows {
                session_id,
                condition: format!("t.{column} = ?s"),
                is_range: false,
            }),
            (Some(session_id), RowsOwner::Range(condition)) => Some(OwnRows {
                session_id,
                condition: fill_numbers(condition),
                is_range: true,
            }),
        };
        Some(TableRows {
            name: self.table,
            key: self.key,
            length: self.length.to_owned(),
            only: own,
        })
    }

    fn find_broken(
        &self,
        db: &dyn Database,
        indexed_from: &str,
        range: &PageRange,
    ) -> Result<Vec<Finding>> {
        let broken = self.broken(indexed_from);
        let sql = format!(
            "SELECT {columns}
               FROM {table} AS t
              WHERE {range}
                AND {broken} <> ','
              ORDER BY {order}
              LIMIT {PAGE_ROWS}",
            columns = BrokenRow::columns(self.place, &broken),
            table = self.table,
            range = range.condition,
            order = range.order,
        );
        let mut findings = Vec::new();
        for BrokenRow { place, broken } in load(db, &sql, &range.params)? {
            let codes = self.codes().enumerate();
            let broken = codes.filter(|(rule, _)| broken.contains(&format!(",{rule},")));
            findings.extend(broken.map(|(_, code)| Finding::new(code, self.table, place.clone())));
        }
        Ok(findings)
    }

    fn codes(&self) -> impl Iterator<Item = FindingCode> {
        let own =
            matches!(self.owner, RowsOwner::Column(_)).then_some(FindingCode::RowsWithoutSession);
        let rules = self.rules.iter().map(|RowRule(code, _)| *code);
        rules.chain(own)
    }

    /// SQL: the numbers of the rules that a row `t` breaks.
    fn broken(&self, indexed_from: &str) -> String {
        let mut rules: Vec<String> = self
            .rules
            .iter()
            .map(|RowRule(_, sql)| fill_numbers(sql).replace(":from", indexed_from))
            .collect();
        if let RowsOwner::Column(column) = self.owner {
            rules.push(self.without_session(column));
        }
        let numbers = rules
            .iter()
            .enumerate()
            .map(|(rule, sql)| format!("iif({sql}, '{rule},', '')"));
        format!("(',' || {})", numbers.collect::<Vec<_>>().join(" || "))
    }

    /// SQL: whether the row `t` is the first of a session that does not exist. The rows of an
    /// import precede their session.
    fn without_session(&self, column: &str) -> String {
        let key = self.key.join(", t.");
        let before = self.key.join(", before.");
        format!(
            "CASE
               WHEN t.{column} = '' THEN 0
               WHEN EXISTS (SELECT 1 FROM cf_agents_sessions AS s WHERE s.id = t.{column}) THEN 0
               WHEN EXISTS (SELECT 1 FROM cf_agents_imports AS i WHERE i.session_id = t.{column}) THEN 0
               ELSE NOT EXISTS (SELECT 1
                                  FROM {table} AS before
                                 WHERE before.{column} = t.{column}
                                   AND (before.{before}) < (t.{key}))
             END",
            table = self.table,
        )
    }
}

/// Replaces the placeholders in a rule with constants.
fn fill_numbers(sql: &str) -> String {
    let action = |action: Action| format!("'{}'", action.name());
    sql.replace(":place", &place_sql("s.number", "t.seq"))
        .replace(":user_message", &action(Action::UserMessage))
        .replace(":agent_message", &action(Action::AgentMessage))
        .replace(":tool_call_request", &action(Action::ToolCallRequest))
        .replace(":beyond", &BEYOND_PLACES.to_string())
        .replace(":max_seq", &MAX_SEQ.to_string())
        .replace(":cursors", &CURSORS_A_SEQ.to_string())
        .replace(":own_numbers", &OWN_NUMBERS.to_string())
        .replace(":numbers", &RANGE.to_string())
}
