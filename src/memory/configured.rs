//! Blocks that are deployed with the Worker: the variable `MEMORY_BLOCKS` holds a
//! JSON array of inputs of `defineBlock`. Every agent has these blocks. An agent's
//! own definition replaces the deployed definition of the same label.
//!
//! An invalid block is left out and reported. The other blocks still apply, and no
//! conversation fails because of the invalid block.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::Memory;
use super::definition::{DefineBlock, Definition};
use crate::base::error::{Error, Result};
use crate::base::json;
use crate::base::settings::Setting;

const SETTING: &str = Setting::MemoryBlocks.name();

/// The most blocks in the configuration.
const MAX_CONFIGURED: usize = 100;

#[derive(Default)]
pub struct Configured {
    pub blocks: Vec<Definition>,
    /// The first error in the configuration.
    pub mistake: Option<Error>,
}

pub fn load(memory: &Memory<'_>) -> Configured {
    memory
        .outbound
        .find_setting(Setting::MemoryBlocks)
        .map_or_else(Configured::default, |text| read(&text, memory.agent))
}

fn read(text: &str, own_name: &str) -> Configured {
    let mut configured = Configured::default();
    let items = match serde_json::from_str::<Vec<Box<RawValue>>>(text) {
        Ok(items) if items.len() <= MAX_CONFIGURED => items,
        Ok(_) => return wrong(SETTING, format!("holds more than {MAX_CONFIGURED} blocks.")),
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            let reason =
                format!("must be a JSON array of blocks; line {line}, column {column} is not.");
            return wrong(SETTING, reason);
        }
    };
    let mut keys = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        match read_block(item, own_name, &mut keys) {
            Ok(block) => configured.blocks.push(block),
            Err(error) => {
                let inner = error.details.get("field").and_then(|field| field.as_str());
                let field = match inner {
                    None | Some("body") => format!("{SETTING}[{index}]"),
                    Some(inner) => format!("{SETTING}[{index}].{inner}"),
                };
                configured
                    .mistake
                    .get_or_insert(mistake(&field, &error.message));
            }
        }
    }
    configured
}

fn read_block(item: &RawValue, own_name: &str, keys: &mut HashSet<String>) -> Result<Definition> {
    let block: DefineBlock = json::parse(item.get().as_bytes())?;
    if block.session_id.is_some() {
        return Err(Error::invalid(
            "sessionId",
            "A deployed block belongs to the agent: leave `sessionId` out.",
        ));
    }
    let block = block.into_definition(own_name)?;
    if !keys.insert(block.label.key()) {
        return Err(Error::invalid(
            "label",
            "Another block has this `label` already.",
        ));
    }
    Ok(block)
}

fn wrong(field: &str, reason: String) -> Configured {
    Configured {
        blocks: Vec::new(),
        mistake: Some(mistake(field, &format!("It {reason}"))),
    }
}

fn mistake(field: &str, message: &str) -> Error {
    Error::invalid(
        field,
        format!(
            "The Worker's variable `{SETTING}` is wrong at `{field}`: {message} The Worker ignores that block until the variable is right."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_block_is_named_and_the_others_hold() {
        let configured = read(
            r#"[{"label":"soul","kind":"readonly","defaultContent":"You are kind."},
                {"label":"todo","kind":"list"},
                {"label":"Soul","kind":"writable"},
                {"label":"memory","kind":"writable","maxTokens":1100}]"#,
            "alice",
        );
        let labels: Vec<&str> = configured
            .blocks
            .iter()
            .map(|block| block.label.as_str())
            .collect();
        assert_eq!(labels, ["soul", "memory"]);
        let mistake = configured.mistake.unwrap();
        assert_eq!(mistake.details["field"], "MEMORY_BLOCKS[1].kind");
    }

    #[test]
    fn what_is_no_list_of_blocks_is_said_to_be_none() {
        for text in [
            "{",
            "{}",
            "null",
            "[1]",
            r#"[{"label":"a","kind":"writable","sessionId":"s"}]"#,
        ] {
            let configured = read(text, "alice");
            assert!(configured.blocks.is_empty(), "{text}");
            assert!(configured.mistake.is_some(), "{text}");
        }
        assert!(read("[]", "alice").mistake.is_none());
    }
}
