//! Errors in the shape and with the status of each API.

use serde_json::Value;

use crate::calls::ApiFamily;
use crate::numbers::set;
use base::error::{Code, Error};
use base::json::{self, json};

/// The error detail that contains the code by which Anthropic's clients know the error.
pub const ERROR_CODE: &str = "error_code";

pub struct ApiRefusal {
    pub status: u16,
    /// JSON.
    pub body: String,
}

pub fn render(family: ApiFamily, error: &Error) -> ApiRefusal {
    let status = status_of(family, error);
    let body = match family {
        ApiFamily::OpenAi => json!({"error": {
            "message": error.message.clone(),
            "type": openai_type(status),
            "param": error.field.as_deref().map_or(Value::Null, Value::from),
            "code": openai_code(error)
        }}),
        ApiFamily::Anthropic => {
            let mut body = json!({"type": "error", "error": {
                "type": anthropic_type(status),
                "message": error.message.clone()
            }});
            let details = error.details();
            let code = details.get(ERROR_CODE).and_then(Value::as_str);
            if let (Some(code), Some(error_body)) = (code, body.get_mut("error")) {
                set(error_body, "details", json!({ERROR_CODE: code}));
            }
            body
        }
    };
    ApiRefusal {
        status,
        body: json::text(&body),
    }
}

fn status_of(family: ApiFamily, error: &Error) -> u16 {
    if error.code == Code::ModelFailed {
        // A request that the provider rejected would be rejected for the provider's own client,
        // too.
        let status = error.details().get("status").and_then(Value::as_u64);
        return status
            .and_then(|status| u16::try_from(status).ok())
            .filter(|status| matches!(status, 400 | 404 | 413 | 422))
            .unwrap_or(502);
    }
    match (error.code, family) {
        (Code::ModelOverloaded, ApiFamily::Anthropic) => 529,
        (code, _) => code.status(),
    }
}

fn openai_type(status: u16) -> &'static str {
    match status {
        429 => "rate_limit_error",
        401 => "authentication_error",
        403 => "permission_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

/// The code by which clients of OpenAI know an error, or ours.
fn openai_code(error: &Error) -> &'static str {
    match error.code {
        Code::Unauthorized => "invalid_api_key",
        Code::RateLimited => "rate_limit_exceeded",
        code => code.name(),
    }
}

fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}
