//! Completes arguments: a prompt's format, the labels of blocks and the keys of documents.
//! The values are those that `resources/list` shows to the same caller. A class that
//! extends this one completes the arguments of its own prompts and templates.

use serde_json::Value;

use super::message::{Request, RpcError};
use super::offered;
use super::outcome::Outcome;
use super::prompts;
use super::resources;
use super::scope::{PROMPTS, RESOURCES, Scope};
use base::json::json;

/// The most values of one answer, according to the protocol.
const MAX_VALUES: usize = 100;

/// The longest prefix of a value that is accepted.
const MAX_BEGINNING_BYTES: usize = 1_000;

pub async fn complete(scope: &Scope<'_>, request: &Request) -> Result<Outcome, RpcError> {
    let field = |name: &str, value: &Value| match value.as_str() {
        Some(text) if text.len() <= MAX_BEGINNING_BYTES => Ok(text.to_owned()),
        _ => Err(RpcError::params(
            name,
            format!("`{name}` must be a string of at most {MAX_BEGINNING_BYTES} bytes."),
        )),
    };
    let (of, argument, context) = request.completion();
    let argument_name = field("argument.name", &argument["name"])?;
    let typed = field("argument.value", &argument["value"])?;
    let all = match of["type"].as_str() {
        Some("ref/prompt") => {
            scope.permit_one(PROMPTS)?;
            let name = field("ref.name", &of["name"])?;
            match prompts::values_of(&name, &argument_name) {
                Some(values) => values,
                None => offered::complete(scope, of, &argument_name, &typed, context).await?,
            }
        }
        Some("ref/resource") => {
            scope.permit_one(RESOURCES)?;
            let template = field("ref.uri", &of["uri"])?;
            let label = context.pointer("/arguments/label").and_then(Value::as_str);
            match resources::values_of(scope, &template, &argument_name, label).await? {
                Some(values) => values,
                None => offered::complete(scope, of, &argument_name, &typed, context).await?,
            }
        }
        _ => {
            let message = "`ref.type` must be `ref/prompt` or `ref/resource`.";
            return Err(RpcError::params("ref", message));
        }
    };
    let typed = typed.to_lowercase();
    let fitting = |value: &String| value.to_lowercase().starts_with(&typed);
    let mut values: Vec<String> = all.into_iter().filter(fitting).collect();
    values.sort_unstable();
    values.dedup();
    let total = values.len();
    values.truncate(MAX_VALUES);
    Outcome::new(&json!({"completion": {
        "values": values,
        "total": total,
        "hasMore": total > MAX_VALUES,
    }}))
}
