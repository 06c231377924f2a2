//! The tools of a request whose model is asked in Responses. The caller runs the functions. The
//! provider runs the others, or returns their calls as items that only the caller understands.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::request::ANY_OBJECT;
use crate::request::{RequestFields, parse_definition, parse_tools, tools_of};
use base::error::{Error, Result};
use base::json::{self, RawValue};
use models::ToolDefinition;

const FUNCTION: &str = "function";

/// What the ids of requests for approval begin with. They alone have the provider's own ids, since
/// an answer names the request by its id.
pub const APPROVAL_PREFIX: &str = "mcpr";

#[derive(Default)]
pub struct ToolList {
    /// All of them, as the caller wrote them.
    pub list: Vec<Box<RawValue>>,
    pub functions: Vec<ToolDefinition>,
    /// The functions as the caller wrote them, by name.
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
