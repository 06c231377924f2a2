//! MCP tools: the memory tools, `search`, and the registered tools that the caller may
//! call.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::capabilities::Capabilities;
use super::content;
use super::exchange::Exchange;
use super::message::{Request, RpcError};
use super::outcome::Outcome;
use super::page::{Listed, cut};
use super::scope::{Scope, unknown};
use crate::dispatch::dispatch;
use base::action::Role;
use base::error::Error;
use base::json::{self, JsonObject, RawValue, json};
use chat::tools::registered::RegisteredTool;
use chat::tools::rows::load_tools;
use context::tools::is_ours;
use models::ToolDefinition;
use search::query::MAX_QUERIES;

/// The tool that searches conversations. A registered tool can't use its name.
const SEARCH: &str = "search";

/// The operation behind the memory tools. They are only listed for callers that may call
/// it.
const CALL: &str = "callTool";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    description: String,
    input_schema: Box<RawValue>,
}

impl Listed for Tool {
    fn list_key(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        self.name.len() + self.description.len() + self.input_schema.get().len()
    }
}

/// The answer of `getTools`.
#[derive(Deserialize)]
struct MemoryTools {
    tools: Vec<ToolDefinition>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolPage {
    tools: Vec<Tool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub async fn list(
    scope: &Scope<'_>,
    exchange: &Exchange<'_>,
    request: &Request,
) -> Result<Outcome, RpcError> {
    scope.permit_tools()?;
    let can = exchange.capabilities(request);
    let mut tools = Vec::new();
    if scope.may(CALL) {
        let listed: MemoryTools = scope
            .ask_for_one(&[CALL], "getTools", scope.session_id(), json!({}))
            .await?;
        tools.extend(listed.tools.into_iter().map(|tool| Tool {
            name: tool.name,
            description: tool.description,
            input_schema: tool.parameters,
        }));
    }
    if scope.may(SEARCH) {
        tools.push(search_tool()?);
    }
    for tool in load_tools(scope.agent.db, &scope.agent.deployed.tools)? {
        if is_callable(scope, &can, &tool)
            && let Some(input_schema) = to_object_schema(&tool.definition.parameters)
        {
            tools.push(Tool {
                name: tool.definition.name,
                description: tool.definition.description,
                input_schema,
            });
        }
    }
    let page = cut(tools, request)?;
    Outcome::list(&ToolPage {
        tools: page.items,
        next_cursor: page.next_cursor,
    })
}

fn search_tool() -> Result<Tool, Error> {
    let tags = json!({"type": "array", "items": {"type": "string"}});
    let one_of = json!({"type": "array", "items": {"type": "string"}, "minItems": 1});
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words, a \"quoted phrase\", or a prefix*. Pass this or `queries`."},
            "queries": {
                "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_QUERIES,
                "description": "Several questions instead of `query`, if the answer may be in \
                                several places. All results are merged into one ranking."
            },
            "sessionId": {"type": "string", "description": "Search only this session."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
            "roles": {"type": "array", "items": {"type": "string", "enum": Role::ALL.map(Role::name)}},
            "since": {"type": "integer", "description": "Milliseconds since the epoch."},
            "until": {"type": "integer", "description": "Milliseconds since the epoch."},
            "where": {
                "type": "object",
                "properties": {
                    "tags": {
                        "type": "object",
                        "properties": {"all": &tags, "any": &one_of, "none": &tags},
                        "additionalProperties": false
                    },
                    "metadata": {"type": "object", "description": "A value for each key, or {in: [values]}, {gt: value}, {lt: value}."}
                },
                "additionalProperties": false,
                "description": "Only sessions with these tags and this metadata."
            }
        },
        "additionalProperties": false
    });
    Ok(Tool {
        name: SEARCH.to_owned(),
        description: "Search the messages and tool results of conversations. Returns the best \
                      matches, best first."
            .to_owned(),
        input_schema: json::raw(json::text(&schema))?,
    })
}

/// Whether the caller may call this registered tool here. A tool that needs approval
/// requires a client that can ask its user.
fn is_callable(scope: &Scope<'_>, can: &Capabilities, tool: &RegisteredTool) -> bool {
    let name = tool.definition.name.as_str();
    (!tool.needs_approval || can.accepts_forms())
        && name != SEARCH
        && !is_ours(name)
        && scope.agent.caller.may_call_tool(name)
}

/// The schema in the form that MCP requires: with `"type": "object"`. `None`: it is not an
/// object's schema.
fn to_object_schema(parameters: &RawValue) -> Option<Box<RawValue>> {
    let Value::Object(fields) = json::decode_tree(parameters.get()).ok()? else {
        return None;
    };
    match fields.get("type") {
        Some(Value::String(kind)) if kind == "object" => Some(parameters.to_owned()),
        Some(_) => None,
        None => {
            let rest = parameters.get().trim_start().strip_prefix('{')?;
            let comma = if fields.is_empty() { "" } else { "," };
            json::raw(format!(r#"{{"type":"object"{comma}{rest}"#)).ok()
        }
    }
}

pub async fn call(
    scope: &Scope<'_>,
    exchange: &Exchange<'_>,
    request: &Request,
) -> Result<Outcome, RpcError> {
    scope.permit_tools()?;
    let name = request.text("name")?;
    let arguments = request.arguments()?;
    if is_ours(name) {
        return call_memory_tool(scope, name, &arguments).await;
    }
    if name == SEARCH {
        return search(scope, &arguments).await;
    }
    let tools = load_tools(scope.agent.db, &scope.agent.deployed.tools)?;
    let can = exchange.capabilities(request);
    let tool = tools
        .iter()
        .find(|tool| tool.definition.name == name && is_callable(scope, &can, tool));
    // For this caller, a tool that they may not call doesn't exist.
    let tool = tool.ok_or_else(|| unknown("tool"))?;
    exchange.call(scope, request, tool, &arguments).await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MemoryToolAnswer {
    output: String,
    is_error: bool,
}

async fn call_memory_tool(
    scope: &Scope<'_>,
    name: &str,
    arguments: &JsonObject,
) -> Result<Outcome, RpcError> {
    let arguments = json::decode_tree(arguments.as_str())
        .map_err(|_| RpcError::params("arguments", "`arguments` must be an object."))?;
    let input = json!({"name": name, "arguments": arguments});
    let answer: MemoryToolAnswer = scope.ask(CALL, scope.session_id(), input).await?;
    Outcome::new(&content::of_text(&answer.output, answer.is_error))
}

/// Runs the operation `search`. Argument errors are returned to the model.
async fn search(scope: &Scope<'_>, arguments: &JsonObject) -> Result<Outcome, RpcError> {
    match dispatch(scope.agent, SEARCH, arguments.as_str()).await {
        Ok(reply) => {
            let found = content::of_text(&reply.body.into_string(), false);
            Ok(Outcome {
                indexing_continues: reply.indexing_continues,
                ..Outcome::new(&found)?
            })
        }
        Err(error) if matches!(error.code.status(), 400 | 404) => {
            Outcome::new(&content::of_text(&error.message, true))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_schema_has_type_object() {
        for (schema, expected) in [
            (
                r#"{"type": "object", "$defs": {}}"#,
                Some(r#"{"type": "object", "$defs": {}}"#),
            ),
            ("{}", Some(r#"{"type":"object"}"#)),
            (
                r#"{ "properties": {}}"#,
                Some(r#"{"type":"object", "properties": {}}"#),
            ),
            (r#"{"type": "string"}"#, None),
            (r#"{"type": ["object"]}"#, None),
        ] {
            let schema = json::raw(schema.to_owned()).unwrap();
            let object_schema = to_object_schema(&schema);
            assert_eq!(object_schema.as_deref().map(RawValue::get), expected);
        }
    }
}
