//! A page of messages as a text, and the cursor of the page above.

use super::run::find_run_event;
use base::budget::MAX_ANSWER_BYTES;
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;

/// The bounds of a page, and the format of its text.
#[derive(Clone, Copy)]
pub struct PageQuery {
    pub limit: usize,
    /// Bytes of messages. A longer message is a page of its own.
    pub max_bytes: usize,
    pub form: PageForm,
}

impl PageQuery {
    /// No page is longer than an answer may be.
    pub fn within_answer(self) -> Self {
        Self {
            max_bytes: self.max_bytes.min(MAX_ANSWER_BYTES),
            ..self
        }
    }
}

/// The text around a page's messages.
#[derive(Clone, Copy, PartialEq)]
pub enum PageForm {
    /// The answer of `getHistory`.
    History,
    /// The messages as an array.
    List,
}

impl PageForm {
    pub fn head(self) -> &'static str {
        match self {
            Self::History => r#"{"messages":["#,
            Self::List => "[",
        }
    }

    /// `cursor`: the cursor of the page above, if there is one.
    pub fn tail(self, cursor: Option<HistoryCursor>) -> String {
        match (self, cursor) {
            (Self::List, _) => "]".to_owned(),
            (Self::History, None) => r#"],"truncated":false,"cursor":null}"#.to_owned(),
            (Self::History, Some(cursor)) => {
                format!(r#"],"truncated":true,"cursor":"{}"}}"#, cursor.render())
            }
        }
    }
}

/// SQL: the tail of a page from a table of events with `seq` and `parent_seq`, as
/// [`PageForm::tail`] writes it. `form`: a parameter with the page's head.
pub fn tail_sql(form: &str) -> String {
    format!(
        r#"iif({form} = '[',
               ']',
               iif(min(parent_seq) = 0,
                   '],"truncated":false,"cursor":null}}',
                   concat('],"truncated":true,"cursor":"', min(seq), '-', min(parent_seq), '"}}')))"#
    )
}

/// The oldest event of a page, and that event's parent. If either is deleted before
/// the next request, the other still leads to the next page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistoryCursor {
    first_seq: i64,
    parent_seq: i64,
}

impl HistoryCursor {
    pub fn parse(text: &str) -> Option<Self> {
        let (first_seq, parent_seq) = text.split_once('-')?;
        let cursor = Self {
            first_seq: first_seq.parse().ok()?,
            parent_seq: parent_seq.parse().ok()?,
        };
        (0 < cursor.parent_seq && cursor.parent_seq < cursor.first_seq).then_some(cursor)
    }

    fn render(self) -> String {
        format!("{}-{}", self.first_seq, self.parent_seq)
    }

    pub fn above(first_seq: i64, parent_seq: i64) -> Option<Self> {
        (parent_seq != 0).then_some(Self {
            first_seq,
            parent_seq,
        })
    }

    /// The last event of the page above; 0: there is no page above.
    pub fn resolve(self, db: &dyn Database, session_id: &Id) -> Result<i64> {
        if find_run_event(db, session_id, self.parent_seq)?.is_some() {
            return Ok(self.parent_seq);
        }
        match find_run_event(db, session_id, self.first_seq)? {
            Some(row) => Ok(row.parent_seq),
            None => Err(Error::invalid(
                "before",
                "The messages around `before` were deleted. Read the history again from its end.",
            )),
        }
    }
}
