//! What one session sees of its agent's memory: the agent's blocks, then its
//! own. A block of its own hides the agent's of the same label.

use super::definition::Definition;
use super::definitions::{find_definition, get_definition, load_definitions};
use super::label::Label;
use super::{Memory, Scope};
use crate::error::Result;

pub fn load_view(memory: &Memory<'_>, scope: Scope<'_>) -> Result<Vec<Definition>> {
    let mut blocks = load_definitions(memory, Scope::Agent)?;
    if let Scope::Session(_) = scope {
        let own = load_definitions(memory, scope)?;
        blocks.retain(|block| !own.iter().any(|own| own.label.key() == block.label.key()));
        blocks.extend(own);
    }
    Ok(blocks)
}

/// The session's block of this label, or the agent's.
pub fn get_in_view(memory: &Memory<'_>, scope: Scope<'_>, label: &Label) -> Result<Definition> {
    if let Scope::Session(_) = scope
        && let Some(own) = find_definition(memory, scope, label)?
    {
        return Ok(own);
    }
    get_definition(memory, Scope::Agent, label)
}
