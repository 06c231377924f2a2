//! Blocks that are deployed with the Worker: every agent has them. An agent's own
//! definition replaces the deployed definition of the same label.
//!
//! An invalid block is skipped and reported. The other blocks still apply, and no
//! conversation fails because of it.

use std::collections::HashSet;

use std::rc::Rc;

use super::definition::{DefineBlock, Definition};
use base::deployed::PartReader;
use base::error::{Error, Result};
use base::json::{self, RawValue};
use store::config::DeployedConfig;

/// The maximum number of deployed blocks.
const MAX_DEPLOYED: i64 = 100;

/// The deployed part of every agent's memory, and the configuration.
#[derive(Default)]
pub struct DeployedMemory {
    pub config: Rc<DeployedConfig>,
    /// In the order of the list. They have no position yet: all agents share them.
    pub blocks: Vec<Definition>,
}

/// Parses a JSON list of inputs of `defineBlock`.
pub fn read_blocks(reader: &mut PartReader<'_>, list: &RawValue) -> Vec<Definition> {
    let mut keys = HashSet::new();
    reader.items(list, MAX_DEPLOYED, |item| read_block(item, &mut keys))
}

fn read_block(item: &RawValue, keys: &mut HashSet<String>) -> Result<Definition> {
    let block: DefineBlock = json::parse(item.get().as_bytes())?;
    if block.session_id.is_some() {
        return Err(Error::invalid(
            "sessionId",
            "A deployed block belongs to the agent: omit `sessionId`.",
        ));
    }
    let block = block.into_definition()?;
    if !keys.insert(block.label.key()) {
        return Err(Error::invalid(
            "label",
            "Another block already has this `label`.",
        ));
    }
    Ok(block)
}

impl DeployedMemory {
    /// The deployed block with this key. It has no position.
    pub fn find_block(&self, key: &str) -> Option<Definition> {
        let mut blocks = self.blocks.iter();
        blocks.find(|block| block.label.key() == key).cloned()
    }
}
