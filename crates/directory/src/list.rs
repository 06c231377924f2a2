//! The list of agents, assembled from the shards of the directory.

use crate::json_schema::JsonSchema;
use serde::Serialize;

use super::ask::{ask, check_bound};
use super::{DirectoryCall, DirectoryPage, ListedAgent, ROOT, beginning, part_of};
use base::error::{Error, Result};
use base::outbound::Outbound;

/// The most parts that one page reads. A page with fewer agents than requested still has a
/// cursor.
const MAX_PARTS: usize = 32;

/// Sorts after every name of a part: the highest character.
const END: char = char::MAX;

/// The longest name of an agent, in characters.
pub const MAX_NAME_CHARS: usize = 200;

/// A page of the list.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct AgentPage {
    /// Sorted by name, byte by byte.
    pub agents: Vec<ListedAgent>,
    /// For the next page; `null` at the end.
    pub cursor: Option<String>,
}

/// The agents whose names start with `prefix`. A prefix longer than any name matches
/// nothing.
pub async fn list_agents(
    outbound: &dyn Outbound,
    prefix: &str,
    after: &str,
    limit: usize,
) -> Result<AgentPage> {
    check_bound(outbound)?;
    // A cursor is a name, or a prefix of names followed by `END`.
    if after.chars().count() > MAX_NAME_CHARS + 1 {
        return Err(Error::invalid(
            "cursor",
            "`cursor` is not from a page of this list.",
        ));
    }
    if prefix.chars().count() > MAX_NAME_CHARS {
        return Ok(AgentPage {
            agents: Vec::new(),
            cursor: None,
        });
    }
    let mut walk = Walk {
        outbound,
        prefix,
        limit,
        agents: Vec::new(),
    };
    let cursor = match beginning(prefix) {
        Some(beginning) => walk.part(beginning, after).await?,
        None => walk.all(after).await?,
    };
    let agents = walk.agents;
    Ok(AgentPage { agents, cursor })
}

struct Walk<'a> {
    outbound: &'a dyn Outbound,
    prefix: &'a str,
    limit: usize,
    agents: Vec<ListedAgent>,
}

impl Walk<'_> {
    async fn ask(&self, part: &str, after: &str) -> Result<DirectoryPage> {
        let call = DirectoryCall::List {
            prefix: self.prefix.to_owned(),
            after: after.to_owned(),
            limit: self.limit - self.agents.len(),
        };
        ask(self.outbound, part, &call).await
    }

    /// Adds the next agents of one part. `Some`: the part has more agents after this name.
    async fn part(&mut self, beginning: &str, after: &str) -> Result<Option<String>> {
        let page = self.ask(&part_of(Some(beginning)), after).await?;
        self.agents.extend(page.agents);
        let last = self.agents.last().filter(|_| page.more);
        Ok(last.map(|agent| agent.name.clone()))
    }

    /// Adds the next agents of all parts. The root lists a part at the position that its
    /// names have in the list.
    async fn all(&mut self, after: &str) -> Result<Option<String>> {
        let mut position = after.to_owned();
        let mut opened = 0;
        if let Some(beginning) = beginning(after) {
            if let Some(last) = self.part(beginning, after).await? {
                return Ok(Some(last));
            }
            opened += 1;
            position = beginning.to_owned();
        }
        loop {
            let behind = match beginning(&position) {
                Some(beginning) => format!("{beginning}{END}"),
                None => position.clone(),
            };
            if self.agents.len() >= self.limit || opened >= MAX_PARTS {
                return Ok(Some(behind));
            }
            let page = self.ask(ROOT, &position).await?;
            let Some(count) = page.agents.len().checked_sub(1) else {
                return Ok(None);
            };
            for (at, entry) in page.agents.into_iter().enumerate() {
                let is_last = at == count && !page.more;
                let name = entry.name.clone();
                match beginning(&name) {
                    None => self.agents.push(entry),
                    Some(beginning) => {
                        opened += 1;
                        if let Some(last) = self.part(beginning, "").await? {
                            return Ok(Some(last));
                        }
                    }
                }
                if is_last {
                    return Ok(None);
                }
                position = name;
                if self.agents.len() >= self.limit || opened >= MAX_PARTS {
                    break;
                }
            }
        }
    }
}
