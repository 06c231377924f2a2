//! The URLs of the provider APIs below an agent or a session, and our own headers.

use access::Caller;
use base::error::{Code, Error, Result};
use base::ids::Id;
use models::caller_fields::ProviderApi;
use store::config::Config;
use store::memory_use::MemoryUse;

/// The maximum length of `anthropic-beta`: about twenty names.
const MAX_BETA_BYTES: usize = 1_024;

/// The maximum length of an idempotency key.
const MAX_KEY_BYTES: usize = 255;

/// A family of URLs. It determines the format of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiFamily {
    OpenAi,
    Anthropic,
}

/// A request to a provider API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiCall {
    /// `POST chat/completions` and `POST messages`.
    Turn(ProviderApi),
    CountTokens,
    /// Gets an answer of `Responses` by its id.
    Response(String),
    /// Deletes the id of an answer of `Responses`.
    DeleteResponse(String),
    /// The list of models, or the model of this name.
    Models(ApiFamily, Option<String>),
}

impl ApiCall {
    /// The call at this path below `openai/` or `anthropic/`, and the methods that it
    /// accepts.
    pub fn find(method: &str, family: &str, rest: &str) -> Option<(Self, &'static [&'static str])> {
        const POST: &[&str] = &["POST"];
        const GET: &[&str] = &["GET", "HEAD"];
        const READ: &[&str] = &["GET", "HEAD", "DELETE"];
        let models = |family| match rest.strip_prefix("models/") {
            Some(name) if !name.is_empty() => Some(Self::Models(family, Some(name.to_owned()))),
            _ => (rest == "models").then_some(Self::Models(family, None)),
        };
        match (family, rest) {
            ("openai", "chat/completions") => {
                Some((Self::Turn(ProviderApi::ChatCompletions), POST))
            }
            ("anthropic", "messages") => Some((Self::Turn(ProviderApi::Messages), POST)),
            ("anthropic", "messages/count_tokens") => Some((Self::CountTokens, POST)),
            ("openai", "responses") => Some((Self::Turn(ProviderApi::Responses), POST)),
            ("openai", _) if rest.starts_with("responses/") => {
                let id = rest
                    .strip_prefix("responses/")
                    .unwrap_or_default()
                    .to_owned();
                Some(match method {
                    "DELETE" => (Self::DeleteResponse(id), READ),
                    _ => (Self::Response(id), READ),
                })
            }
            ("openai", _) => models(ApiFamily::OpenAi).map(|call| (call, GET)),
            ("anthropic", _) => models(ApiFamily::Anthropic).map(|call| (call, GET)),
            _ => None,
        }
    }

    /// The error for a path that OpenAI has and we do not: what to do instead.
    pub fn find_missing(family: &str, rest: &str) -> Option<Error> {
        let below = rest.strip_prefix("responses/").unwrap_or_default();
        let instead = match (family, below) {
            ("openai", "compact") => "The agent compacts its sessions itself.",
            ("openai", "input_tokens") => {
                "The agent counts tokens itself: see `usage` of an answer."
            }
            ("openai", _) if below.ends_with("/cancel") => "Run the operation `cancelTurn`.",
            ("openai", _) if below.ends_with("/input_items") => "Run the operation `getHistory`.",
            ("openai", _) if rest == "conversations" || rest.starts_with("conversations/") => {
                "Name a session in `conversation`: it is created on first use."
            }
            _ => return None,
        };
        let message = format!("`{rest}` is not supported. {instead}");
        Some(Error::new(Code::UnknownOperation, message))
    }

    /// The name of a request in the log and in traces.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Turn(ProviderApi::ChatCompletions) => "chatCompletions",
            Self::Turn(ProviderApi::Messages) => "messages",
            Self::Turn(ProviderApi::Responses) => "responses",
            Self::Response(_) => "getResponse",
            Self::DeleteResponse(_) => "deleteResponse",
            Self::CountTokens => "countTokens",
            Self::Models(..) => "models",
        }
    }

    pub fn family(&self) -> ApiFamily {
        match self {
            Self::Turn(ProviderApi::ChatCompletions | ProviderApi::Responses)
            | Self::Response(_)
            | Self::DeleteResponse(_) => ApiFamily::OpenAi,
            Self::Turn(ProviderApi::Messages) | Self::CountTokens => ApiFamily::Anthropic,
            Self::Models(family, _) => *family,
        }
    }
}

/// The values of a request's headers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApiHeaders {
    /// `x-session-id`
    pub session_id: Option<Id>,
    /// `x-session-history: stored`: the messages of the log are prepended to the request's.
    pub is_stored: bool,
    /// `x-session-memory`
    pub memory: Option<MemoryUse>,
    /// `idempotency-key`
    pub key: Option<String>,
    /// `anthropic-beta`
    pub beta: Option<String>,
}

impl ApiHeaders {
    /// The memory access that the request gives the model: from its header, else from its
    /// token, else from the agent's configuration. The token's value is also the maximum.
    pub fn memory_of(&self, caller: &Caller, config: &Config) -> Result<MemoryUse> {
        match (self.memory, caller.most_memory()) {
            (Some(requested), Some(most)) if requested > most => Err(Error::new(
                Code::Forbidden,
                "`x-session-memory` asks for more than the token allows: see `sessionMemory` of `mintToken`.",
            )
            .with_field("x-session-memory")),
            (Some(memory), _) | (None, Some(memory)) => Ok(memory),
            (None, None) => Ok(config.session_memory),
        }
    }

    /// `find`: returns the value of a header.
    pub fn read(find: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let session_id = find("x-session-id").map(|id| {
            Id::parse(id).map_err(|reason| {
                Error::invalid("x-session-id", format!("`x-session-id` {reason}."))
            })
        });
        let is_stored = match find("x-session-history").as_deref() {
            None | Some("request") => false,
            Some("stored") => true,
            Some(_) => {
                return Err(Error::invalid(
                    "x-session-history",
                    "`x-session-history` must be `stored` or `request`.",
                ));
            }
        };
        let memory = match find("x-session-memory").as_deref() {
            None => None,
            Some("on") => Some(MemoryUse::On),
            Some("read") => Some(MemoryUse::Read),
            Some("off") => Some(MemoryUse::Off),
            Some(_) => {
                return Err(Error::invalid(
                    "x-session-memory",
                    "`x-session-memory` must be `on`, `read` or `off`.",
                ));
            }
        };
        let within = |name: &str, most: usize| match find(name) {
            Some(value) if value.len() > most => Err(Error::invalid(
                name,
                format!("`{name}` must have at most {most} bytes."),
            )),
            value => Ok(value.filter(|value| !value.is_empty())),
        };
        Ok(Self {
            session_id: session_id.transpose()?,
            is_stored,
            memory,
            key: within("idempotency-key", MAX_KEY_BYTES)?,
            beta: within("anthropic-beta", MAX_BETA_BYTES)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_fields_are_named_in_the_error() {
        for rest in [
            "responses/compact",
            "responses/input_tokens",
            "responses/resp_a/cancel",
            "responses/resp_a/input_items",
            "conversations",
            "conversations/conv_a/items",
        ] {
            let error = ApiCall::find_missing("openai", rest).unwrap();
            assert!(error.message.contains(rest), "{}", error.message);
            assert_eq!(error.code.status(), 404);
        }
        for (family, rest) in [
            ("openai", "responses"),
            ("openai", "responses/resp_a"),
            ("openai", "models/m"),
            ("anthropic", "conversations"),
        ] {
            assert!(ApiCall::find_missing(family, rest).is_none(), "{rest}");
        }
    }
}
