//! The tools of a request for a model that uses Responses. The caller runs the functions.
//! The provider runs the others, or returns their calls as items that only the caller can
//! interpret.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::request::ANY_OBJECT;
use crate::request::{RequestFields, parse_definition, parse_tools, tools_of};
use base::error::{Error, Result};
use base::json::{self, RawValue};
use models::ToolDefinition;

const FUNCTION: &str = "function";

/// The prefix of the ids of approval requests. Only these keep the provider's own ids,
/// because an answer references the request by its id.
pub const APPROVAL_PREFIX: &str = "mcpr";

#[derive(Default)]
pub struct ToolList {
    /// All tools, as the caller sent them.
    pub list: Vec<Box<RawValue>>,
    pub functions: Vec<ToolDefinition>,
    /// The functions as the caller sent them, by name.
    pub given: BTreeMap<String, Box<RawValue>>,
}

pub fn parse_tool_list(tools: &RawValue) -> Result<ToolList> {
    let list = tools_of(tools)?;
    let mut functions = Vec::new();
    for (index, tool) in list.iter().enumerate() {
        let field = format!("tools[{index}]");
        let fields = RequestFields::of(&field, tool.get())?;
        match fields.text("type").as_str() {
            "" => {
                let field = format!("{field}.type");
                return Err(Error::invalid(&field, format!("`{field}` is missing.")));
            }
            FUNCTION => functions.push(tool.get()),
            _ => {}
        }
    }
    let functions = json::raw(format!("[{}]", functions.join(",")))?;
    let (functions, given) = parse_tools(&functions, |field, fields, given| {
        let definition = parse_definition(field, fields, ("parameters", ANY_OBJECT))?;
        Ok((definition, given.to_owned()))
    })?;
    Ok(ToolList {
        list: list.into_iter().map(ToOwned::to_owned).collect(),
        functions,
        given,
    })
}

/// Whether the caller runs the tool.
pub fn is_function(tool: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "type")]
        kind: String,
    }
    json::decode::<Typed>(tool.get()).is_ok_and(|tool| tool.kind == FUNCTION)
}
