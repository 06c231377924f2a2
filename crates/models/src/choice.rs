//! Chooses the model that answers: the agent's own, otherwise the Worker's `MODEL`,
//! otherwise Workers AI if it is bound, otherwise the built-in demo. If a named model
//! fails, that is an error; only the default is replaced by the demo.

use crate::json_schema::JsonSchema;
use std::fmt;

use serde::Deserialize;

use base::error::{Error, Result};
use base::settings::Setting;

/// The default model if `AI` is bound. It calls tools, accepts long contexts and is among
/// the cheapest models that do both.
pub const DEFAULT_WORKERS_AI_MODEL: &str = "@cf/zai-org/glm-4.7-flash";

/// The longest name of a model, after the provider's name.
pub const MAX_MODEL_CHARS: usize = 200;

/// A model, by its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelName {
    /// A provider, and its name for the model.
    Served(Provider, String),
    /// The built-in demo, which has no provider.
    Demo,
}

// Use a `match` that names each provider, so that the compiler reports every place that a
// new provider affects.
/// The provider that serves a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    #[serde(rename = "workers-ai")]
    WorkersAi,
    /// OpenAI, or any server with a compatible API.
    OpenAi,
    Anthropic,
    /// A class that extends this one, whose method answers. An input has no format of this name.
    #[serde(skip)]
    Own,
}

/// The model of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChoice {
    pub name: ModelName,
    /// No model was named, so the demo answers if a local run can't use this one.
    pub is_default: bool,
}

impl ModelName {
    /// `field` is where the name comes from, for the error.
    pub fn parse(field: &str, text: &str) -> Result<Self> {
        if text == "demo" {
            return Ok(Self::Demo);
        }
        let (provider, model) = text.split_once(':').unwrap_or((text, ""));
        let Some(provider) = Provider::ALL.iter().find(|one| one.name() == provider) else {
            let names = Provider::ALL.map(|provider| format!("`{}:<model>`", provider.name()));
            return Err(Error::invalid(
                field,
                format!("`{field}` must be {} or `demo`.", names.join(", ")),
            ));
        };
        check_model(field, model)?;
        Ok(Self::Served(*provider, model.to_owned()))
    }

    /// The provider, and its name for the model. `None` for the demo, which has no
    /// provider.
    pub fn served(&self) -> Option<(Provider, &str)> {
        match self {
            Self::Served(provider, model) => Some((*provider, model)),
            Self::Demo => None,
        }
    }
}

impl Provider {
    /// All providers. A test compares them with the variants.
    pub const ALL: [Self; 4] = [Self::WorkersAi, Self::OpenAi, Self::Anthropic, Self::Own];

    /// The provider's name at the start of an error's sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::WorkersAi => "Workers AI",
            Self::OpenAi => "The OpenAI-compatible endpoint",
            Self::Anthropic => "Anthropic",
            Self::Own => "The model of this class",
        }
    }

    /// The provider's name in models' names and in error details.
    pub fn name(self) -> &'static str {
        match self {
            Self::WorkersAi => "workers-ai",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Own => "own",
        }
    }
}

/// Validates the model's part of a name.
pub fn check_model(field: &str, model: &str) -> Result<()> {
    let is_printable = |c: char| !c.is_whitespace() && !c.is_control();
    let chars = model.chars().take(MAX_MODEL_CHARS + 1).count();
    if (1..=MAX_MODEL_CHARS).contains(&chars) && model.chars().all(is_printable) {
        return Ok(());
    }
    Err(Error::invalid(
        field,
        format!(
            "`{field}` must name a model after the colon: 1 to {MAX_MODEL_CHARS} printable characters without spaces."
        ),
    ))
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Served(provider, model) => write!(f, "{}:{model}", provider.name()),
            Self::Demo => f.write_str("demo"),
        }
    }
}

/// `agent_model` is the agent's own, `setting` the Worker's `MODEL`.
pub fn choose(
    agent_model: Option<&str>,
    setting: Option<&str>,
    has_ai_binding: bool,
) -> Result<ModelChoice> {
    let named = agent_model
        .map(|text| ModelName::parse("model", text))
        .or_else(|| {
            let setting = setting.filter(|text| !text.is_empty());
            setting.map(|text| ModelName::parse(Setting::Model.name(), text))
        })
        .transpose()?;
    let is_default = named.is_none();
    let name = named.unwrap_or_else(|| {
        if has_ai_binding {
            ModelName::Served(Provider::WorkersAi, DEFAULT_WORKERS_AI_MODEL.to_owned())
        } else {
            ModelName::Demo
        }
    });
    Ok(ModelChoice { name, is_default })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_providers_is_complete() {
        // The error lists every variant, as spelled in JSON.
        let error = serde_json::from_str::<Provider>("\"nobody\"").unwrap_err();
        let formats = Provider::ALL.iter().filter(|one| **one != Provider::Own);
        let names: Vec<String> = formats.map(|one| format!("`{}`", one.name())).collect();
        let expected = format!("expected one of {} at", names.join(", "));
        assert!(
            error.to_string().contains(&expected),
            "`Provider::ALL` has others: {error}"
        );
    }

    #[test]
    fn the_chat_guide_names_each_provider() {
        let guide = format!(
            "{}/docs/chat.md",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../..")
        );
        let guide = std::fs::read_to_string(guide).unwrap();
        for provider in Provider::ALL {
            let model = format!("`{}:<model>`", provider.name());
            assert!(guide.contains(&model), "docs/chat.md doesn't name {model}");
        }
    }

    #[test]
    fn a_model_name_round_trips() {
        for text in [
            "workers-ai:@cf/meta/llama-3.3-70b-instruct-fp8-fast",
            "openai:gpt-4o-mini",
            "openai:org/model:free",
            "anthropic:claude-sonnet-4-5",
            "demo",
        ] {
            let name = ModelName::parse("model", text).unwrap();
            assert_eq!(name.to_string(), text);
        }
    }

    #[test]
    fn an_invalid_model_name_is_refused_by_its_field() {
        let long = format!("openai:{}", "x".repeat(201));
        for text in [
            "",
            "gpt-4o",
            "openai",
            "openai:",
            "google:gemini",
            "demo:1",
            "openai:a b",
            "openai:a\n",
            "OpenAI:gpt-4o",
            &long,
        ] {
            let error = ModelName::parse("model", text).unwrap_err();
            assert_eq!(error.code.name(), "invalid_request", "{text}");
            assert_eq!(error.details()["field"], "model", "{text}");
        }
        assert!(ModelName::parse("model", &long[..long.len() - 1]).is_ok());
    }

    #[test]
    fn the_agents_model_precedes_the_workers_and_the_default() {
        let chosen = |agent, setting, has_ai| {
            let choice = choose(agent, setting, has_ai).unwrap();
            (choice.name.to_string(), choice.is_default)
        };
        let named = |text: &str| (text.to_owned(), false);
        assert_eq!(
            chosen(Some("openai:a"), Some("demo"), true),
            named("openai:a")
        );
        assert_eq!(
            chosen(None, Some("anthropic:b"), true),
            named("anthropic:b")
        );
        assert_eq!(chosen(None, Some("demo"), true), named("demo"));
        assert_eq!(
            chosen(None, None, true),
            (format!("workers-ai:{DEFAULT_WORKERS_AI_MODEL}"), true)
        );
        assert_eq!(chosen(None, None, false), ("demo".to_owned(), true));
    }

    #[test]
    fn an_invalid_setting_is_an_error() {
        let error = choose(None, Some("gpt"), true).unwrap_err();
        assert_eq!(error.details()["field"], "MODEL");
        assert!(choose(Some("demo"), Some("gpt"), true).is_ok());
    }
}
