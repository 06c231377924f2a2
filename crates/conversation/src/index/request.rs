//! A search request: the words to find, and where.

use base::action::Action;
use base::database::SqlValue;
use base::filter::{Filter, FilteredColumns};
use base::ids::Id;
use base::json::{self, json};

/// A search request: the words to find, and where.
pub struct SearchRequest<'a> {
    /// The queries. Each is searched separately, and the results are merged into one
    /// ranking.
    pub queries: &'a [String],
    pub session_id: Option<&'a Id>,
    pub limit: usize,
    pub roles: Option<&'a [&'static str]>,
    pub since_ms: Option<i64>,
    pub until_ms: Option<i64>,
    /// The filter that an event's session must pass.
    pub filter: Option<&'a Filter>,
}

/// SQL conditions on an event `e`. [`SearchRequest::filters`] returns their values.
pub const FILTERS: &str = "(?2 IS NULL OR e.created_at >= ?2)
            AND (?3 IS NULL OR e.created_at <= ?3)
            AND (?4 IS NULL OR e.action IN (SELECT value FROM json_each(?4)))";

impl SearchRequest<'_> {
    pub fn is_filtered(&self) -> bool {
        self.roles.is_some()
            || self.since_ms.is_some()
            || self.until_ms.is_some()
            || self.filter.is_some()
    }

    /// SQL: `AND` and the condition on a session `s`. `param` is where
    /// [`Self::session_param`] is bound.
    pub fn session_condition(&self, param: &str) -> String {
        self.filter.map_or_else(String::new, |filter| {
            let columns = FilteredColumns::of_session();
            format!("AND {}", filter.condition(&columns, param))
        })
    }

    /// The last value of a statement with [`Self::session_condition`]. `None` if there is
    /// no filter.
    pub fn session_param(&self) -> Option<SqlValue> {
        self.filter.map(|filter| filter.param().into())
    }

    /// The values of [`FILTERS`], starting at ?2.
    pub fn filters(&self) -> Vec<SqlValue> {
        let actions = self.roles.map(|roles| {
            let chosen: Vec<&str> = Action::ALL
                .into_iter()
                .filter(|action| roles.contains(&action.role().name()))
                .map(Action::name)
                .collect();
            json::text(&json!(chosen))
        });
        vec![self.since_ms.into(), self.until_ms.into(), actions.into()]
    }
}
