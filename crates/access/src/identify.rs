//! The caller of a request: the holder of the secret, the holder of a token, or nobody.

use super::policy::{Auth, ConfiguredSecret, Policy, PreviousSecret, unauthorized};
use super::scope::Caller;
use super::token::{self, MIN_SECRET_CHARS, NO_TOKEN};
use base::error::Result;
use base::host::Host;

/// Finds the caller of `agent` with this bearer token. `None`: the request is for no
/// agent in particular, so a token of any agent is accepted.
pub fn identify(
    policy: &Policy,
    host: &dyn Host,
    agent: Option<&str>,
    bearer: Option<&str>,
) -> Result<Caller> {
    if let PreviousSecret::Wrong(sentence) = policy.previous {
        return Err(unauthorized(sentence));
    }
    match &policy.secret {
        ConfiguredSecret::Secret(_) => {}
        ConfiguredSecret::TooShort => {
            return Err(unauthorized(format!(
                "SESSION_AGENT_TOKEN has fewer than {MIN_SECRET_CHARS} characters and could be \
                 guessed, so this Worker refuses all requests. Generate a new one with `openssl \
                 rand -hex 32`, store it, and set it with `npx wrangler secret put \
                 SESSION_AGENT_TOKEN`.",
            )));
        }
        ConfiguredSecret::Nothing if policy.auth == Auth::Secret => {
            return Err(unauthorized(
                "This Worker has no secret yet, so it refuses all requests. To try it on this \
                 machine, write `AUTH=local` into `.dev.vars` and restart. For a deployed Worker, \
                 generate a secret with `openssl rand -hex 32`, store it, and set it with `npx \
                 wrangler secret put SESSION_AGENT_TOKEN`. If the Worker can only be reached through bindings, you can \
                 set `AUTH = \"open\"` instead.",
            ));
        }
        ConfiguredSecret::Nothing => return Ok(Caller::Owner),
    }
    let Some(bearer) = bearer else {
        return Err(unauthorized(
            "Send `Authorization: Bearer …` with the Worker's secret, or with a token from `mintToken`.",
        ));
    };
    // All are compared, so that the time does not reveal which one matched.
    if policy.secrets().filter(|secret| secret.is(bearer)).count() > 0 {
        return Ok(Caller::Owner);
    }
    let claims = policy
        .secrets()
        .find_map(|secret| secret.claims(bearer))
        .ok_or_else(|| unauthorized(NO_TOKEN))?;
    if claims.scope.expires_at <= host.now_ms() {
        return Err(unauthorized(
            "This token has expired. Get another one from `mintToken`.",
        ));
    }
    if agent.is_some_and(|agent| claims.agent != agent) {
        return Err(unauthorized("This token is for another agent."));
    }
    Ok(Caller::Scoped(claims.scope))
}

/// Finds the caller that opens a socket, or that reads the history that goes with it. The stock
/// client can't set headers there, so a minted token may come in the subprotocol or in the URL. The
/// secret may not, since subprotocols and URLs are logged.
pub fn identify_page(
    policy: &Policy,
    host: &dyn Host,
    agent: &str,
    bearer: Option<&str>,
    token: Option<&str>,
) -> Result<Caller> {
    let Some(token) = token.filter(|_| bearer.is_none() && policy.secret().is_some()) else {
        return identify(policy, host, Some(agent), bearer);
    };
    match identify(policy, host, Some(agent), Some(token))? {
        Caller::Scoped(scope) => Ok(Caller::Scoped(scope)),
        Caller::Owner => Err(unauthorized(
            "The secret must not be in a URL or a subprotocol. Mint a token with `mintToken`, or \
             send the secret in the `Authorization` header.",
        )),
    }
}

/// The token among the subprotocols that a socket offers, and the subprotocol of the
/// answer.
pub fn find_subprotocol(offered: Option<&str>) -> (Option<&str>, Option<&str>) {
    let offered: Vec<&str> = offered
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let token = offered.iter().find(|name| token::is_token(name)).copied();
    let other = offered.iter().find(|name| !token::is_token(name)).copied();
    (token, other.or(token))
}

/// The token in an `Authorization` header.
pub fn find_bearer(authorization: Option<&str>) -> Option<&str> {
    let (scheme, token) = authorization?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
