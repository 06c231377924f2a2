//! The operation that reads the tables that another framework left in this object.

use crate::json_schema::JsonSchema;
use serde::Deserialize;

use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use access::{Effect, Needs};
use base::error::{Error, Result};
use lifecycle::foreign::ForeignPage;
use lifecycle::foreign::{ForeignPosition, read_page};

/// Reads the tables that the Agents SDK left in this object, a page at a time.
///
/// An object retains its storage when its class is transferred to this agent's. The rows
/// are those of conversations, their media, summaries and context memory; the client's
/// importer converts them. Only `destroy` changes these tables.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoadForeignRows {
    /// The `cursor` of the previous page.
    cursor: Option<String>,
}

impl Operation for LoadForeignRows {
    const NAME: &'static str = "loadForeignRows";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = ForeignPage;
}

impl RunAtOnce for LoadForeignRows {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let refused = || {
            Error::invalid(
                "cursor",
                "`cursor` must be the unchanged `cursor` of an earlier page.",
            )
        };
        let position = match self.cursor {
            None => ForeignPosition::default(),
            Some(text) => ForeignPosition::parse(&text).ok_or_else(refused)?,
        };
        Reply::json(&read_page(agent.db, position)?.ok_or_else(refused)?)
    }
}
