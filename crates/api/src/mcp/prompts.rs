//! The one prompt: the memory as a system prompt.

use serde::Deserialize;
use serde_json::Value;

use super::message::{Request, RpcError};
use super::outcome::Outcome;
use super::scope::{PROMPTS, Scope, unknown};
use base::action::Role;
use base::json::{self, json};

const NAME: &str = "system";
const FORMATS: [&str; 2] = ["text", "xml"];
const DESCRIPTION: &str = "The agent's current memory, as a system prompt.";

#[derive(Deserialize)]
struct PromptArguments {
    format: Option<String>,
}

#[derive(Deserialize)]
struct Rendered {
    prompt: String,
}

pub fn list(scope: &Scope<'_>, _: &Request) -> Result<Outcome, RpcError> {
    scope.permit_one(PROMPTS)?;
    Outcome::list(&json!({"prompts": [{
        "name": NAME,
        "description": DESCRIPTION,
        "arguments": [{
            "name": "format",
            "description": "`text` (the default) or `xml`.",
            "required": false,
        }],
    }]}))
}

/// The values of a prompt's argument. A prompt that is not there has none.
pub fn values_of(name: &str, argument: &str) -> Vec<String> {
    match (name, argument) {
        (NAME, "format") => FORMATS.map(str::to_owned).to_vec(),
        _ => Vec::new(),
    }
}

pub async fn get(scope: &Scope<'_>, request: &Request) -> Result<Outcome, RpcError> {
    scope.permit_one(PROMPTS)?;
    if request.text("name")? != NAME {
        return Err(unknown("prompt"));
    }
    let given: PromptArguments = json::decode(request.arguments()?.as_str())
        .map_err(|_| RpcError::params("format", "`format` must be `text` or `xml`."))?;
    let input = match given.format {
        Some(format) => json!({"format": format}),
        None => json!({}),
    };
    let rendered: Rendered = scope.ask("renderPrompt", scope.session_id(), input).await?;
    let content: Value = json!({"type": "text", "text": rendered.prompt});
    Outcome::new(&json!({
        "description": DESCRIPTION,
        "messages": [{"role": Role::User.name(), "content": content}],
    }))
}
