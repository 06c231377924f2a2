//! The Worker as a client of OAuth: the description of the client, and the page that a person
//! sees after an authorization.

use crate::operation::Agent;
use crate::route::{Route, unknown_state};
use base::error::{Error, Result};
use base::json::{self, json};
use base::outbound::Outbound;
use base::settings::Setting;
use chat::tools::mcp::oauth::begin::is_own_nonce;
use chat::tools::mcp::oauth::finish::{Return, finish};
use chat::tools::mcp::oauth::settings::{CLIENT_NAME, OAuthSettings};

/// A page, and the error that it reports.
pub struct ReturnPage {
    pub status: u16,
    pub html: String,
    pub failure: Option<Error>,
}

/// The headers of a page. The page loads nothing, and sends its address, which contains the code, to no
/// other site.
pub const PAGE_HEADERS: [(&str, &str); 4] = [
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "no-store"),
    (
        "content-security-policy",
        "default-src 'none'; frame-ancestors 'none'",
    ),
    ("referrer-policy", "no-referrer"),
];

/// Describes the client, for authorization servers that read such a document. `None`: the Worker's
/// settings name no address from which they could read it.
pub fn describe_client(outbound: &dyn Outbound) -> Option<String> {
    let settings = OAuthSettings::read(outbound).ok()?;
    Some(json::text(&json!({
        "client_id": settings.client_document()?,
        "client_name": CLIENT_NAME,
        "redirect_uris": [settings.redirect_uri()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    })))
}

/// Refuses a redirect for an authorization that no agent of this deployment began, before an agent is woken.
pub fn check_return(outbound: &dyn Outbound, agent: &str, returned: &Return) -> Result<()> {
    let is_own = OAuthSettings::read(outbound)
        .is_ok_and(|settings| is_own_nonce(&settings, agent, &returned.server, &returned.nonce));
    is_own.then_some(()).ok_or_else(unknown_state)
}

/// Whether tokens of an issuer are accepted at this address.
pub fn accepts_issuer(outbound: &dyn Outbound, route: &Route) -> bool {
    let needed = [
        Setting::OAuthIssuer,
        Setting::OAuthAudience,
        Setting::SessionAgentToken,
    ];
    let is_set = |setting: &Setting| outbound.find_setting(*setting).is_some();
    matches!(route, Route::Mcp { .. }) && needed.iter().all(is_set)
}

/// Finishes an authorization, and renders the page that the person sees.
pub async fn answer_return(agent: &Agent<'_>, returned: &Return) -> ReturnPage {
    let memory = agent.memory();
    match finish(&memory, &agent.deployed.tools, returned).await {
        Ok(()) => ReturnPage {
            status: 200,
            html: page(
                "Authorized",
                "The agent can use the server now. You can close this page.",
            ),
            failure: None,
        },
        Err(error) => ReturnPage {
            status: error.code.status(),
            html: page("Not authorized", &error.message),
            failure: Some(error),
        },
    }
}

fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

fn page(title: &str, text: &str) -> String {
    let text = escape_html(text);
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><h1>{title}</h1><p>{text}</p></html>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route;
    use base::testing::Script;

    #[test]
    fn issuer_tokens_are_accepted_for_mcp_only_when_fully_configured() {
        let outbound = Script::default();
        let at = |method, end| {
            route::parse(method, &format!("/agents/session-agent/alice/{end}")).unwrap()
        };
        let (mcp, rpc) = (at("POST", "mcp"), at("POST", "rpc/getSession"));
        for setting in [
            Setting::OAuthIssuer,
            Setting::OAuthAudience,
            Setting::SessionAgentToken,
        ] {
            assert!(!accepts_issuer(&outbound, &mcp));
            let mut settings = outbound.settings.borrow_mut();
            settings.insert(setting.name().to_owned(), "value".to_owned());
        }
        assert!(accepts_issuer(&outbound, &mcp));
        assert!(!accepts_issuer(&outbound, &rpc));
    }

    #[test]
    fn the_page_escapes_untrusted_text() {
        let html = page("Not authorized", "<script>alert(\"1\")</script> & more");
        assert!(html.contains("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; more"));
    }
}
