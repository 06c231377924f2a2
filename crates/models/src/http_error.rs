//! Converts a provider's failure into our error: `model_overloaded` if a retry may help,
//! `model_failed` if not.
//!
//! Only the provider's short name for the failure is passed on: its sentences quote keys, prompts
//! and addresses.

use serde_json::Value;

use super::choice::Provider;
use super::length::LengthRefusal;
use base::error::{Code, Error, ErrorKind};
use base::json;

/// Bytes of a failure's body that are read.
pub const MAX_BODY_BYTES: usize = 64 << 10;

const MAX_KIND_CHARS: usize = 64;

/// A provider's report of a failure.
#[derive(Debug, Default, PartialEq)]
pub struct ProviderError {
    /// The provider's name for the failure: `rate_limit_exceeded`, `3040`.
    pub kind: Option<String>,
    pub is_overload: bool,
    /// An allowance is used up: waiting for seconds won't help.
    pub is_exhausted: bool,
    /// The request is too long for the model.
    pub too_long: Option<LengthRefusal>,
}

/// The error in a JSON answer, if it is one.
pub fn find_problem(value: &Value) -> Option<ProviderError> {
    // Google's endpoint puts an answer of one error into a list.
    let value = value.as_array().map_or(Some(value), |list| list.first())?;
    let first = |name: &str| value.get(name).and_then(Value::as_array)?.first();
    let error = match value.get("error") {
        None | Some(Value::Null) => first("errors")?,
        // Cloudflare's gateway sends a list of errors.
        Some(Value::Array(_)) => first("error")?,
        Some(error) => error,
    };
    let word = |name: &str| match error.get(name) {
        Some(Value::String(text)) => clean(text),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    // A code is more specific than a type, unless the code is a bare number.
    let (code, kind) = (word("code"), word("type").or_else(|| word("status")));
    let is_number = |text: &String| text.bytes().all(|byte| byte.is_ascii_digit());
    let words: Vec<&String> = code.iter().chain(&kind).collect();
    let is_overload = words.iter().any(|word| is_overload_word(word));
    let is_exhausted = words.iter().any(|word| is_exhausted_word(word));
    let shown = match (&code, &kind) {
        (Some(code), Some(kind)) if is_number(code) => Some(kind.clone()),
        _ => code.clone().or(kind.clone()),
    };
    Some(ProviderError {
        kind: shown,
        is_overload,
        is_exhausted,
        too_long: LengthRefusal::find(&json::text(value)).filter(|_| !is_overload),
    })
}

/// Reads an exception of Workers AI: `InferenceUpstreamError: 3040: Capacity temporarily
/// exceeded, please try again.`
fn problem_of_text(text: &str) -> ProviderError {
    let name = text.split_once(':').map(|(name, _)| name.trim());
    let name = name.and_then(clean);
    // The code is near the front; further back is the model's own text.
    let head: String = text.chars().take(MAX_KIND_CHARS + 32).collect();
    let code = head
        .split(|c: char| !c.is_alphanumeric())
        .find(|word| word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_digit()));
    let lower = head.to_lowercase();
    let mentions = |phrase: &str| lower.contains(phrase);
    let kind = match (name, code) {
        (Some(name), Some(code)) => Some(format!("{name} {code}")),
        (name, code) => name.or(code.map(str::to_owned)),
    };
    ProviderError {
        is_overload: code.is_some_and(is_overload_word)
            || mentions("capacity temporarily exceeded")
            || mentions("too many requests"),
        is_exhausted: code.is_some_and(is_exhausted_word),
        too_long: LengthRefusal::find(text),
        kind,
    }
}

fn is_overload_word(word: &str) -> bool {
    const NUMBERS: &[&str] = &["429", "503", "529", "3036", "3040"];
    let lower = word.to_lowercase();
    NUMBERS.contains(&word)
        || [
            "overloaded",
            "rate_limit",
            "too_many_requests",
            "resource_exhausted",
        ]
        .iter()
        .any(|known| lower.contains(known))
}

fn is_exhausted_word(word: &str) -> bool {
    word == "3036" || word.eq_ignore_ascii_case("insufficient_quota")
}

/// The text, if it is a name and not a sentence.
fn clean(text: &str) -> Option<String> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name = !text.is_empty() && text.len() <= MAX_KIND_CHARS && text.chars().all(is_letter);
    is_name.then(|| text.to_owned())
}

/// Reads the failure from an answer's status and body.
pub fn read_problem(status: u16, body: &[u8]) -> ProviderError {
    let text = String::from_utf8_lossy(body);
    let json = json::decode_tree(&text).ok();
    let mut problem = match json {
        Some(value) => find_problem(&value).unwrap_or_default(),
        None => problem_of_text(&text),
    };
    problem.is_overload |= matches!(status, 429 | 503 | 529);
    if problem.too_long.is_none() {
        let is_too_large = status == 413;
        problem.too_long = LengthRefusal::find(&text).or(is_too_large.then(LengthRefusal::default));
    }
    if problem.is_overload {
        problem.too_long = None;
    }
    problem
}

/// The error that the caller receives.
pub fn to_error(
    provider: Provider,
    status: u16,
    problem: &ProviderError,
    retry_after: Option<i64>,
) -> Error {
    let kind = problem.kind.as_deref();
    let named = kind.map(|kind| format!(", `{kind}`")).unwrap_or_default();
    let about = format!("status {status}{named}");
    let title = provider.title();
    let (code, message) = if problem.is_exhausted {
        (
            Code::ModelOverloaded,
            format!(
                "{title} reports that the account's quota is used up ({about}). It works again \
                 after a top-up or when the quota resets."
            ),
        )
    } else if problem.is_overload {
        let when = match retry_after {
            Some(seconds) => format!("in {seconds} s"),
            None => "in a moment".to_owned(),
        };
        (
            Code::ModelOverloaded,
            format!("{title} is overloaded ({about}). Try again {when}."),
        )
    } else {
        (
            Code::ModelFailed,
            format!(
                "{title} {} ({about}). {}",
                what(status),
                advice(provider, status)
            ),
        )
    };
    let mut error = Error::new(code, message)
        .with("provider", provider.name())
        .with("status", status);
    if let Some(kind) = kind {
        error = error.with("type", kind);
    }
    error = match problem.too_long {
        Some(too_long) => too_long.mark(error),
        None => error.of_kind(ErrorKind::RefusedByModel),
    };
    match retry_after {
        Some(seconds) if code == Code::ModelOverloaded => error.with_retry_after(seconds),
        _ => error,
    }
}

fn what(status: u16) -> &'static str {
    match status {
        401 | 403 => "refused this Worker's credentials",
        404 => "doesn't recognize the model or the URL",
        300..=399 => "returned a redirect",
        400..=499 => "refused the request",
        _ => "failed",
    }
}

fn advice(provider: Provider, status: u16) -> &'static str {
    match (status, provider) {
        (_, Provider::Own) => "See the Worker's log for the reason.",
        (401 | 403, Provider::OpenAi) => "Check the secret OPENAI_API_KEY and OPENAI_BASE_URL.",
        (401 | 403, Provider::Anthropic) => "Check the secret ANTHROPIC_API_KEY.",
        (401 | 403, Provider::WorkersAi) => "Check that the account may use this model.",
        (300..=399 | 404, Provider::OpenAi) => "Check the model's name and OPENAI_BASE_URL.",
        (300..=499, Provider::WorkersAi | Provider::OpenAi | Provider::Anthropic) => {
            "Check the model's name, and that the conversation fits into its context."
        }
        _ => "Try again. If it keeps failing, check its status page.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(provider: Provider, status: u16, body: &str) -> Error {
        let problem = read_problem(status, body.as_bytes());
        to_error(provider, status, &problem, None)
    }

    #[test]
    fn each_failure_has_a_code_and_the_providers_error_type() {
        use Provider::{Anthropic, OpenAi, WorkersAi};
        for (provider, status, body, code, kind) in [
            (
                OpenAi,
                429,
                r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-x","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
                "model_overloaded",
                Some("rate_limit_exceeded"),
            ),
            (
                OpenAi,
                401,
                r#"{"error":{"message":"Incorrect API key provided: sk-secret","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
                "model_failed",
                Some("invalid_api_key"),
            ),
            (
                OpenAi,
                400,
                r#"{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
                "model_failed",
                Some("context_length_exceeded"),
            ),
            (
                OpenAi,
                500,
                r#"{"error":{"message":"x","type":"server_error","code":null}}"#,
                "model_failed",
                Some("server_error"),
            ),
            (
                OpenAi,
                503,
                "<html>Service Unavailable</html>",
                "model_overloaded",
                None,
            ),
            (OpenAi, 502, "", "model_failed", None),
            (
                OpenAi,
                400,
                r#"{"error":{"message":"x","code":429,"type":null}}"#,
                "model_overloaded",
                Some("429"),
            ),
            (
                OpenAi,
                400,
                r#"{"error":"a sentence with a secret"}"#,
                "model_failed",
                None,
            ),
            (
                Anthropic,
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "model_overloaded",
                Some("overloaded_error"),
            ),
            (
                Anthropic,
                500,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "model_overloaded",
                Some("overloaded_error"),
            ),
            (
                Anthropic,
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages: x"}}"#,
                "model_failed",
                Some("invalid_request_error"),
            ),
            (
                WorkersAi,
                500,
                "InferenceUpstreamError: 3040: Capacity temporarily exceeded, please try again.",
                "model_overloaded",
                Some("InferenceUpstreamError 3040"),
            ),
            (
                WorkersAi,
                500,
                "InferenceUpstreamError: Capacity temporarily exceeded, please try again.",
                "model_overloaded",
                Some("InferenceUpstreamError"),
            ),
            (
                WorkersAi,
                500,
                "AiError: 3036: you have used up your daily free allocation of 10,000 neurons",
                "model_overloaded",
                Some("AiError 3036"),
            ),
            (
                WorkersAi,
                500,
                "Error: 429 Too Many Requests",
                "model_overloaded",
                Some("Error 429"),
            ),
            (
                WorkersAi,
                500,
                "AiError: AiError: 5007: No such model @cf/x or task",
                "model_failed",
                Some("AiError 5007"),
            ),
            (
                WorkersAi,
                500,
                "AiError: 5006: required properties at '/' are 'prompt' 3040",
                "model_failed",
                Some("AiError 5006"),
            ),
            (
                WorkersAi,
                429,
                r#"{"errors":[{"message":"AiError","code":3040}],"success":false}"#,
                "model_overloaded",
                Some("3040"),
            ),
        ] {
            let error = error(provider, status, body);
            assert_eq!(error.code.name(), code, "{body}");
            assert_eq!(
                error.details().get("type").and_then(Value::as_str),
                kind,
                "{body}"
            );
            assert_eq!(error.details()["provider"], provider.name());
            assert!(
                error.message.contains(&status.to_string()),
                "{}",
                error.message
            );
        }
    }

    #[test]
    fn the_providers_message_is_not_exposed() {
        for body in [
            r#"{"error":{"message":"hunter2","type":"hunter2 in a sentence","code":["hunter2"]}}"#,
            r#"{"error":"hunter2","detail":"hunter2"}"#,
            r#"{"errors":["hunter2"]}"#,
            "hunter2",
            "no name hunter2: x",
            "Error: hunter2",
        ] {
            for status in [302, 400, 401, 404, 429, 500] {
                let body = error(Provider::OpenAi, status, body).body();
                assert!(!body.contains("hunter2"), "{body}");
            }
        }
    }

    #[test]
    fn the_providers_retry_time_is_passed_on() {
        let problem = read_problem(429, b"");
        let error = to_error(Provider::OpenAi, 429, &problem, Some(7));
        assert_eq!(error.details()["retryAfter"], 7);
        assert!(error.message.contains("in 7 s"));
        let untold = to_error(Provider::OpenAi, 429, &problem, None);
        assert!(!untold.details().contains_key("retryAfter"));
    }
}
