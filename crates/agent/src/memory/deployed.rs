//! Blocks that are deployed with the Worker: every agent has them. An agent's own
//! definition replaces the deployed definition of the same label.
//!
//! A block that is written wrong is left out and reported. The other blocks still hold,
//! and no conversation fails because of it.

use std::collections::HashSet;

use super::definition::{DefineBlock, Definition};
use crate::base::deployed::{Deployed, PartReader};
use crate::base::error::{Error, Result};
use crate::base::json::{self, RawValue};

/// The most deployed blocks.
const MAX_DEPLOYED: i64 = 100;

/// The deployed blocks, in the order in which they were written. They are not placed yet:
/// each agent reads the same ones.
#[derive(Default)]
pub struct DeployedBlocks(Vec<Definition>);

/// Reads a JSON list of inputs of `defineBlock`.
pub fn read_blocks(reader: &mut PartReader<'_>, list: &RawValue) -> DeployedBlocks {
    let mut keys = HashSet::new();
    DeployedBlocks(reader.items(list, MAX_DEPLOYED, |item| read_block(item, &mut keys)))
}

fn read_block(item: &RawValue, keys: &mut HashSet<String>) -> Result<Definition> {
    let block: DefineBlock = json::parse(item.get().as_bytes())?;
    if block.session_id.is_some() {
        return Err(Error::invalid(
            "sessionId",
            "A deployed block belongs to the agent: leave `sessionId` out.",
        ));
    }
    let block = block.into_definition()?;
    if !keys.insert(block.label.key()) {
        return Err(Error::invalid(
            "label",
            "Another block has this `label` already.",
        ));
    }
    Ok(block)
}

pub fn load_deployed(deployed: &Deployed) -> &[Definition] {
    deployed
        .find::<DeployedBlocks>()
        .map_or(&[], |blocks| &blocks.0)
}

/// The deployed block with this key. It is not placed.
pub fn find_deployed(deployed: &Deployed, key: &str) -> Option<Definition> {
    let mut blocks = load_deployed(deployed).iter();
    blocks.find(|block| block.label.key() == key).cloned()
}
