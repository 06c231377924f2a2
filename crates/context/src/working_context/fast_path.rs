//! The fast path for working contexts: SQLite builds the messages as one text, and Rust
//! only counts its tokens.
//!
//! An event qualifies if its row is sufficient to build the model's message: the event is short, is
//! not a tool call or result, and has no slices or files. A context qualifies if all its events do,
//! if no document is loaded, and if the path has no branch and no summary there. Any other context
//! is built event by event (`build.rs`), with an identical result.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::Deserialize;

use super::budget::Budget;
use super::fitting::capacity_for_all;
use base::action::{Action, Role};
use base::budget::MAX_ANSWER_BYTES;
use base::database::{Database, SqlText};
use base::error::{Error, Result, StorageFailure};
use base::ids::Id;
use base::json;
use base::part::{field, kind};
use conversation::log::row::ROW_BYTES;
use conversation::log::tip::Leaf;
use conversation::log::tokens::of_content;
use conversation::messages::linear_path::{self, LinearPathRow};
use memory::skills::loaded::HAS_LOADED;

/// The most bytes of an event on the fast path. Texts this short are never truncated.
const SHORT_BYTES: usize = 8 << 10;

/// A message of the AI SDK (the column `message`) with exactly one text part. The message
/// is compared as a whole, which is faster than searching it for files and calls. A message
/// that differs still qualifies if a user's message has no file, or an agent's message has
/// no call. A JSON escape could hide both names.
static SHOWN: LazyLock<String> = LazyLock::new(|| {
    let [users, agents, systems] = [
        Action::UserMessage,
        Action::AgentMessage,
        Action::SystemInstruction,
    ]
    .map(Action::name);
    let [user, assistant, system] = [Role::User, Role::Assistant, Role::System].map(Role::name);
    let role = format!(
        "CASE e.action WHEN '{users}' THEN '{user}' WHEN '{agents}' THEN '{assistant}' ELSE '{system}' END"
    );
    let quoted_content = "json_quote(coalesce(e.content, ''))";
    let (file, call, text) = (kind::FILE, field::CALL_ID, kind::TEXT);
    format!(
        r#"
    CASE
      WHEN e.sliced_bytes = 0
       AND e.tool IS NULL
       AND e.media IS NULL
       AND {ROW_BYTES} <= ?4
       AND CASE
             WHEN e.message IS NULL
             THEN (e.action = '{users}' OR e.action = '{agents}' OR e.action = '{systems}')
             WHEN e.action = '{agents}' AND e.content = ''
             THEN 0
             WHEN e.message = concat('"role":"', {role}, '","parts":[{{"type":"{text}","text":', {quoted_content}, '}}]')
             THEN 1
             WHEN instr(e.message, iif(e.action = '{agents}', '"{call}"', '"{file}"')) > 0
             THEN 0
             WHEN instr(e.message, '\u') > 0
             THEN 0
             ELSE json_valid(concat('{{', e.message, '}}'))
           END
      THEN concat('{{"role":"', {role}, '","content":', {quoted_content}, '}}')
    END"#
    )
});

/// The messages up to the event ?2.
static SQL: LazyLock<String> = LazyLock::new(|| linear_path::up_to_leaf(&SHOWN, HAS_LOADED));

/// The messages up to a session's newest event, if that is the leaf.
static NEWEST_SQL: LazyLock<String> =
    LazyLock::new(|| linear_path::up_to_newest(&SHOWN, HAS_LOADED));

/// The messages of a fast-path context.
pub struct FastPathContext {
    /// JSON, oldest first, with commas between them.
    messages: SqlText,
    /// The estimated tokens of the messages.
    pub tokens: i64,
    leaf_id: String,
    /// Whether the first message is the path's first.
    is_whole: bool,
}

/// A message in the text that SQLite built.
#[derive(Deserialize)]
struct FastPathMessage<'a> {
    role: Role,
    #[serde(borrow)]
    content: Cow<'a, str>,
}

impl FastPathContext {
    /// The newest events up to a leaf, at most `limit`. `None`: they don't qualify.
    pub fn find(
        db: &dyn Database,
        session_id: &Id,
        leaf: &Leaf,
        limit: usize,
    ) -> Result<Option<Self>> {
        Self::read(db, session_id, &SQL, Some(leaf), limit)
    }

    /// Like [`Self::find`], up to the session's newest event. Also `None` if that event is
    /// not the leaf. One statement finds the event and reads the messages.
    pub fn find_newest(db: &dyn Database, session_id: &Id, limit: usize) -> Result<Option<Self>> {
        Self::read(db, session_id, &NEWEST_SQL, None, limit)
    }

    fn read(
        db: &dyn Database,
        session_id: &Id,
        sql: &str,
        leaf: Option<&Leaf>,
        limit: usize,
    ) -> Result<Option<Self>> {
        let max_bytes = SHORT_BYTES.min(MAX_ANSWER_BYTES / limit.max(1));
        let params = [
            session_id.as_str().into(),
            leaf.map(|leaf| leaf.seq).into(),
            (limit as i64).into(),
            (max_bytes as i64).into(),
        ];
        let found = match db.find_text_and_row(sql, &params) {
            Ok(found) => found,
            Err(error) => match error.storage_failure() {
                Some(StorageFailure::TextTooLong | StorageFailure::DamagedJson) => return Ok(None),
                _ => return Err(error),
            },
        };
        let Some((Some(messages), row)) = found else {
            return Ok(None);
        };
        let LinearPathRow { above_seq, leaf_id } = row.read()?;
        let Some(leaf_id) = leaf.map(|leaf| leaf.id.clone()).or(leaf_id) else {
            return Ok(None);
        };
        Ok(Some(Self {
            tokens: count_tokens(&messages.copy())?,
            messages,
            leaf_id,
            is_whole: above_seq.unwrap_or(0) == 0,
        }))
    }

    /// Whether all messages fit in the budget unchanged.
    pub fn fits(&self, instructions: &[String], budget: &Budget<'_>) -> bool {
        let capacity = capacity_for_all(instructions, budget);
        self.is_whole && capacity.is_some_and(|capacity| self.tokens <= capacity)
    }

    /// The context as JSON, with the fields of [`super::build::WorkingContext`].
    pub fn into_json(self, instructions: &[String], tokens_estimate: i64) -> Result<SqlText> {
        let instructions = json::encode(instructions)?;
        let leaf_id = json::quoted(&self.leaf_id);
        let head = format!(r#"{{"systemInstructions":{instructions},"messages":["#);
        let tail = format!(r#"],"leafId":{leaf_id},"tokensEstimate":{tokens_estimate}}}"#);
        Ok(self.messages.enclose(&head, &tail))
    }
}

fn count_tokens(messages: &str) -> Result<i64> {
    let list = ["[", messages, "]"].concat();
    let messages: Vec<FastPathMessage<'_>> =
        json::decode(&list).map_err(|_| Error::storage("messages that are not JSON"))?;
    let tokens = |message: &FastPathMessage<'_>| of_content(message.role, &message.content);
    Ok(messages.iter().map(tokens).sum())
}
