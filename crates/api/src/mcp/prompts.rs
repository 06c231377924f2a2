//! MCP prompts: the memory as a system prompt, and the prompts of a class that extends this
//! one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::exchange::Exchange;
use super::message::{Request, RpcError};
use super::offered::{self, OfferedArgument, OfferedPrompt};
use super::outcome::Outcome;
use super::page::{Listed, cut};
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Prompts {
    prompts: Vec<OfferedPrompt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Listed for OfferedPrompt {
    fn list_key(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        json::encode(self).map_or(0, |text| text.len())
    }
}

pub async fn list(scope: &Scope<'_>, request: &Request) -> Result<Outcome, RpcError> {
    scope.permit_one(PROMPTS)?;
    let system = OfferedPrompt {
        name: NAME.to_owned(),
        title: None,
        description: Some(DESCRIPTION.to_owned()),
        arguments: vec![OfferedArgument {
            name: "format".to_owned(),
            title: None,
            description: Some("`text` (the default) or `xml`.".to_owned()),
            required: false,
        }],
    };
    let mut prompts = vec![system];
    let offered = offered::list_prompts(scope).await?;
    prompts.extend(offered.into_iter().filter(|prompt| prompt.name != NAME));
    let page = cut(prompts, request)?;
    Outcome::list(&Prompts {
        prompts: page.items,
        next_cursor: page.next_cursor,
    })
}

/// The values of a prompt's argument. `None`: the name isn't a built-in prompt, so the
/// class may define it.
pub fn values_of(name: &str, argument: &str) -> Option<Vec<String>> {
    match (name, argument) {
        (NAME, "format") => Some(FORMATS.map(str::to_owned).to_vec()),
        (NAME, _) => Some(Vec::new()),
        _ => None,
    }
}

pub async fn get(
    scope: &Scope<'_>,
    exchange: &Exchange<'_>,
    request: &Request,
) -> Result<Outcome, RpcError> {
    scope.permit_one(PROMPTS)?;
    let name = request.text("name")?;
    if name != NAME {
        let offered = offered::get(scope, exchange, request, name).await?;
        return offered.ok_or_else(|| unknown("prompt"));
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
