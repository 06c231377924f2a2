//! The models that a caller may name: the agent's own, and those that its token allows.

use serde_json::Value;

use crate::calls::ApiFamily;
use access::permit_by_name;
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::{self, json};
use chat::run::agent::{Agent, CHAT_RULE};
use models::call::choose_model;
use store::config::load_config;

/// The list, or the model of this name.
pub fn answer(agent: &Agent<'_>, family: ApiFamily, name: Option<&str>) -> Result<String> {
    permit_by_name(agent.caller, CHAT_RULE)?;
    let config = load_config(agent.db, &agent.deployed.memory.config)?;
    let own = choose_model(agent.outbound, config.model.as_ref().map(Id::as_str))?.name;
    let mut names = vec![shown(family, &own.to_string())];
    for allowed in agent.caller.allowed_models() {
        let allowed = shown(family, allowed.as_str());
        if !names.contains(&allowed) {
            names.push(allowed);
        }
    }
    let Some(name) = name else {
        return Ok(json::text(&list(family, &names)));
    };
    match names.iter().find(|known| *known == name) {
        Some(known) => Ok(json::text(&model(family, known))),
        None => Err(Error::new(
            Code::MessageNotFound,
            format!(
                "There is no model `{name}` for this caller. `GET …/models` lists the available ones."
            ),
        )),
    }
}

/// A model's name as the API's clients know it.
fn shown(family: ApiFamily, name: &str) -> String {
    let prefix = match family {
        ApiFamily::OpenAi => "openai:",
        ApiFamily::Anthropic => "anthropic:",
    };
    name.strip_prefix(prefix).unwrap_or(name).to_owned()
}

fn list(family: ApiFamily, names: &[String]) -> Value {
    let models: Vec<Value> = names.iter().map(|name| model(family, name)).collect();
    match family {
        ApiFamily::OpenAi => json!({"object": "list", "data": models}),
        ApiFamily::Anthropic => json!({
            "data": models,
            "has_more": false,
            "first_id": names.first().map_or(Value::Null, |name| name.as_str().into()),
            "last_id": names.last().map_or(Value::Null, |name| name.as_str().into())
        }),
    }
}

fn model(family: ApiFamily, name: &str) -> Value {
    match family {
        ApiFamily::OpenAi => json!({
            "id": name,
            "object": "model",
            "created": 0,
            "owned_by": "session-agent"
        }),
        ApiFamily::Anthropic => json!({
            "type": "model",
            "id": name,
            "display_name": name,
            "created_at": "1970-01-01T00:00:00Z"
        }),
    }
}
