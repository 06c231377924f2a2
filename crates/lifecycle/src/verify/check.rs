//! Checks the rows of a table by its rules.

use super::deeper::{check_media, check_paths};
use super::finding::{Finding, FindingLocation};
use crate::table_pages::{OwnRows, PageBudget, PageRange, TableRows};
use base::action::Action;
use base::checks::{Check, DeeperCheck, FindingCode, PAGE_ROWS, RowRule, RowsOwner};
use base::columns::load;
use base::database::{Database, SqlValue};
use base::error::{Error, Result};
use base::ids::Id;
use base::json;
use base::numbers::{CURSORS_A_SEQ, MAX_SEQ, ROW_NUMBERS_END, row_number_sql};
use base::row;
use memory::number_range::{OWN_NUMBERS, RANGE};

/// A page of checked rows.
pub struct CheckedPage {
    pub findings: Vec<Finding>,
    /// The key of the last row.
    pub last: Vec<SqlValue>,
}

/// A row that breaks rules.
struct BrokenRow {
    location: FindingLocation,
    /// The numbers of the rules, each between two commas.
    broken: String,
}

row! {
    for BrokenRow(location: &str, broken: &str) {
        location: &str = location,
        broken: String = broken,
    }
    {
        let unread = |_| Error::storage("the location of a damaged row can't be read");
        Ok(Self {
            location: json::decode(location).map_err(unread)?,
            broken,
        })
    }
}

/// The checks of one table, as this request runs them.
pub struct TableCheck(pub &'static Check);

impl TableCheck {
    /// Checks the next rows of the table. `None`: the table is at its end. `indexed_from`: SQL,
    /// see [`indexed_from_sql`](conversation::index::indexed::indexed_from_sql).
    pub fn page(
        &self,
        db: &dyn Database,
        only: Option<&Id>,
        indexed_from: &str,
        after: &[SqlValue],
        capacity: &mut PageBudget,
    ) -> Result<Option<CheckedPage>> {
        let Some(rows) = self.rows(only) else {
            return Ok(None);
        };
        let mut page_capacity = PageBudget {
            rows: capacity.rows.min(self.0.page_rows),
            bytes: capacity.bytes,
        };
        let Some((end, range)) = rows.next_page(db, after, &mut page_capacity)? else {
            return Ok(None);
        };
        capacity.rows -= end.rows;
        capacity.bytes -= end.bytes;
        let mut findings = self.find_broken(db, indexed_from, &range)?;
        if let Some(deeper) = self.0.deeper {
            let check = match deeper {
                DeeperCheck::MediaHashes => check_media,
                DeeperCheck::SummaryPaths => check_paths,
            };
            findings.append(&mut check(db, &range)?);
        }
        let last = end.key;
        Ok(Some(CheckedPage { findings, last }))
    }

    fn rows<'a>(&'a self, only: Option<&'a Id>) -> Option<TableRows<'a>> {
        let own = match (only, self.0.owner) {
            (None, _) => None,
            (Some(_), RowsOwner::Agent | RowsOwner::Unindexed(_)) => return None,
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
            name: self.0.table,
            key: self.0.key,
            length: self.0.length.to_owned(),
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
            columns = BrokenRow::columns(self.0.location, &broken),
            table = self.0.table,
            range = range.condition,
            order = range.order,
        );
        let mut findings = Vec::new();
        for BrokenRow { location, broken } in load(db, &sql, &range.params)? {
            let codes = self.codes().enumerate();
            let broken = codes.filter(|(rule, _)| broken.contains(&format!(",{rule},")));
            findings
                .extend(broken.map(|(_, code)| Finding::new(code, self.0.table, location.clone())));
        }
        Ok(findings)
    }

    fn codes(&self) -> impl Iterator<Item = FindingCode> {
        let own = match self.0.owner {
            RowsOwner::Column(_) | RowsOwner::Unindexed(_) => Some(FindingCode::RowsWithoutSession),
            RowsOwner::Range(_) | RowsOwner::Agent => None,
        };
        let rules = self.0.rules.iter().map(|RowRule(code, _)| *code);
        rules.chain(own)
    }

    /// SQL: the numbers of the rules that a row `t` breaks.
    fn broken(&self, indexed_from: &str) -> String {
        let mut rules: Vec<String> = self
            .0
            .rules
            .iter()
            .map(|RowRule(_, sql)| fill_numbers(sql).replace(":from", indexed_from))
            .collect();
        match self.0.owner {
            RowsOwner::Column(column) => rules.push(self.without_session(column)),
            RowsOwner::Unindexed(column) => rules.push(format!(
                "t.{column} <> ''
                 AND NOT EXISTS (SELECT 1 FROM cf_agents_sessions AS s WHERE s.id = t.{column})"
            )),
            RowsOwner::Range(_) | RowsOwner::Agent => {}
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
        let key = self.0.key.join(", t.");
        let before = self.0.key.join(", before.");
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
            table = self.0.table,
        )
    }
}

/// Replaces the placeholders in a rule with constants.
fn fill_numbers(sql: &str) -> String {
    let action = |action: Action| format!("'{}'", action.name());
    sql.replace(":row_number", &row_number_sql("s.number", "t.seq"))
        .replace(":user_message", &action(Action::UserMessage))
        .replace(":agent_message", &action(Action::AgentMessage))
        .replace(":tool_call_request", &action(Action::ToolCallRequest))
        .replace(":beyond", &ROW_NUMBERS_END.to_string())
        .replace(":max_seq", &MAX_SEQ.to_string())
        .replace(":cursors", &CURSORS_A_SEQ.to_string())
        .replace(":own_numbers", &OWN_NUMBERS.to_string())
        .replace(":numbers", &RANGE.to_string())
}
