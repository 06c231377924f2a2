//! Requests to OAuth servers: documents, forms and a registration. Answers must be short
//! and quick.

use serde::de::DeserializeOwned;

use crate::address::tool_address::check_url;
use base::error::{Error, Result};
use base::json;
use base::outbound::{
    CallFailure, CallLimits, CallPurpose, Endpoint, Outbound, OutboundRequest, RequestForm,
    read_all,
};
use base::percent::encode_percent;

const LIMITS: CallLimits = CallLimits {
    wait_ms: 10_000,
    silence_ms: 10_000,
    no_content_ms: None,
    total_ms: 15_000,
    max_bytes: 64 << 10,
};

/// The response of an authorization server.
pub struct ServerResponse {
    pub status: u16,
    body: Vec<u8>,
}

impl ServerResponse {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn decode<T: DeserializeOwned>(&self) -> Option<T> {
        json::decode_bytes(&self.body).ok()
    }
}

/// Sends a request to a URL, which must be allowed as a tool's URL.
pub async fn ask(
    outbound: &dyn Outbound,
    form: RequestForm,
    url: &str,
    mut headers: Vec<(String, String)>,
    body: String,
) -> Result<ServerResponse> {
    check_url(outbound, url, "mcp")?;
    headers.push(("accept".to_owned(), "application/json".to_owned()));
    let call = OutboundRequest {
        purpose: CallPurpose::Tool,
        endpoint: Endpoint::Url(url.to_owned()),
        headers,
        body,
        limits: LIMITS,
    };
    let asking = async {
        let mut answer = outbound.send_as(form, call).await?;
        let body = read_all(answer.body.as_mut()).await?;
        Ok(ServerResponse {
            status: answer.status,
            body,
        })
    };
    asking.await.map_err(|failure: CallFailure| {
        unusable(&format!(
            "of the authorization server, {}",
            failure.reason()
        ))
    })
}

/// Fetches a document; `None`: it doesn't exist.
pub async fn find_document<T: DeserializeOwned>(
    outbound: &dyn Outbound,
    url: &str,
) -> Result<Option<T>> {
    let received = ask(outbound, RequestForm::Get, url, Vec::new(), String::new()).await?;
    Ok(received.is_success().then(|| received.decode()).flatten())
}

/// `what` is the end of the sentence.
pub fn unusable(what: &str) -> Error {
    Error::invalid(
        "mcp",
        format!("The server requires an authorization that can't be obtained: {what}."),
    )
}

/// Encodes a form as `application/x-www-form-urlencoded`, or the query of a URL.
pub fn encode_form(fields: &[(&str, &str)]) -> String {
    let pairs = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", encode_percent(value)));
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_body_escapes_its_values() {
        assert_eq!(
            encode_form(&[("a", "b c&d=é"), ("e", "-._~")]),
            "a=b%20c%26d%3D%C3%A9&e=-._~"
        );
    }
}
