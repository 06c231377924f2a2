//! Who may do what. Fails closed: without a secret, and without `AUTH = "open"`
//! chosen on purpose, nobody may do anything.
//!
//! It knows nothing of HTTP beyond the two places that a credential may stand
//! in, and no message of it ever repeats one.

mod token;

pub use token::{Claims, MAX_TOKEN_SECONDS, mint, verify};

use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::ids::Id;

/// How this Worker is configured to let callers in.
#[derive(Clone, Default)]
pub struct Policy {
    /// `SESSION_AGENT_TOKEN`.
    pub secret: Option<String>,
    /// `AUTH = "open"`. A secret, where there is one, holds all the same.
    pub is_open: bool,
}

impl Policy {
    /// An empty secret is none: it would be guessed at once.
    pub fn new(secret: Option<String>, auth: Option<&str>) -> Self {
        Self {
            secret: secret.filter(|secret| !secret.is_empty()),
            is_open: auth == Some("open"),
        }
    }
}

/// Whom a request speaks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Caller {
    /// The holder of the secret, or anybody where the Worker is open.
    Owner,
    /// The holder of a minted token.
    Scoped(Scope),
}

/// What a minted token allows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// This session and no other. `None`: all of the agent's.
    pub session_id: Option<Id>,
    /// These operations and no other. `None`: all that need no secret.
    pub operations: Option<Vec<String>>,
    /// Milliseconds since the epoch.
    pub expires_at: i64,
}

impl Caller {
    /// The only session that this caller may see, if it is narrowed to one.
    pub fn only_session(&self) -> Option<&Id> {
        match self {
            Caller::Owner => None,
            Caller::Scoped(scope) => scope.session_id.as_ref(),
        }
    }
}

/// What an operation asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// It reaches beyond the agent, or changes what the agent may reach: the secret.
    Secret,
    /// It speaks of the whole agent: not for a token that is narrowed to a session.
    WholeAgent,
    /// It speaks of one session, which must be the token's own.
    Session,
    /// It lists what it finds, and narrows itself to the caller's session.
    Narrowed,
}

/// Finds out who is calling `agent` with this bearer token. `None`: what they
/// ask for is no agent's, and any agent's token will do.
pub fn identify(
    policy: &Policy,
    host: &dyn Host,
    agent: Option<&str>,
    bearer: Option<&str>,
) -> Result<Caller> {
    let Some(secret) = &policy.secret else {
        if policy.is_open {
            return Ok(Caller::Owner);
        }
        return Err(unauthorized(
            "This Worker has no secret yet, so it lets nobody in. Set one with `npx wrangler secret put SESSION_AGENT_TOKEN`; or, where only bindings reach the Worker, choose `AUTH = \"open\"`.",
        ));
    };
    let Some(bearer) = bearer else {
        return Err(unauthorized(
            "Send `Authorization: Bearer …` with the Worker's secret, or with a token from `mintToken`.",
        ));
    };
    if token::is_same_secret(secret, bearer) {
        return Ok(Caller::Owner);
    }
    let claims = verify(secret, bearer, host.now_ms()).map_err(unauthorized)?;
    if agent.is_some_and(|agent| claims.agent != agent) {
        return Err(unauthorized("This token is for another agent."));
    }
    Ok(Caller::Scoped(Scope {
        session_id: claims.session_id,
        operations: claims.operations,
        expires_at: claims.expires_at,
    }))
}

/// Finds out who opens a socket, or reads the history that goes with it. The
/// stock client can't set headers there, so a minted token may come in the
/// subprotocol or in the address; the secret may not, since both are logged.
pub fn identify_page(
    policy: &Policy,
    host: &dyn Host,
    agent: &str,
    bearer: Option<&str>,
    token: Option<&str>,
) -> Result<Caller> {
    let Some(token) = token.filter(|_| bearer.is_none() && policy.secret.is_some()) else {
        return identify(policy, host, Some(agent), bearer);
    };
    match identify(policy, host, Some(agent), Some(token))? {
        Caller::Scoped(scope) => Ok(Caller::Scoped(scope)),
        Caller::Owner => Err(unauthorized(
            "The secret must not stand in an address or a subprotocol. Mint a token with `mintToken`, or send the secret in the `Authorization` header.",
        )),
    }
}

/// The token among a socket's subprotocols, and the one to answer with.
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

/// Whether `caller` may run `operation` on `session_id` (`None`: it names none).
pub fn permit(
    caller: &Caller,
    operation: &str,
    needs: Needs,
    session_id: Option<&Id>,
) -> Result<()> {
    let Caller::Scoped(scope) = caller else {
        return Ok(());
    };
    if needs == Needs::Secret {
        return Err(forbidden(format!(
            "`{operation}` needs the Worker's secret; a minted token is not enough."
        )));
    }
    if let Some(operations) = &scope.operations
        && !operations.iter().any(|allowed| allowed == operation)
    {
        return Err(forbidden(format!(
            "This token does not allow `{operation}`."
        )));
    }
    let Some(only) = &scope.session_id else {
        return Ok(());
    };
    match needs {
        Needs::Narrowed => Ok(()),
        Needs::Session if session_id == Some(only) => Ok(()),
        Needs::Session => Err(forbidden("This token is for another session.")),
        Needs::Secret | Needs::WholeAgent => Err(forbidden(format!(
            "`{operation}` speaks of the whole agent; this token is for one session."
        ))),
    }
}

/// The token in an `Authorization` header.
pub fn find_bearer(authorization: Option<&str>) -> Option<&str> {
    let (scheme, token) = authorization?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unauthorized(message: impl Into<String>) -> Error {
    Error::new(Code::Unauthorized, message)
}

fn forbidden(message: impl Into<String>) -> Error {
    Error::new(Code::Forbidden, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FixedHost;

    const SECRET: &str = "a long secret";

    fn policy() -> Policy {
        Policy::new(Some(SECRET.to_owned()), None)
    }

    fn id(text: &str) -> Id {
        Id::parse(text.to_owned()).unwrap()
    }

    fn code(result: Result<impl std::fmt::Debug>) -> &'static str {
        result.unwrap_err().code.name()
    }

    #[test]
    fn without_a_secret_nobody_gets_in_unless_it_was_opened() {
        let host = FixedHost::default();
        let shut = Policy::new(None, None);
        assert_eq!(
            code(identify(&shut, &host, Some("a"), None)),
            "unauthorized"
        );
        assert_eq!(
            code(identify(&shut, &host, Some("a"), Some(""))),
            "unauthorized"
        );
        assert!(
            identify(&shut, &host, Some("a"), None)
                .unwrap_err()
                .message
                .contains("SESSION_AGENT_TOKEN")
        );
        assert_eq!(
            code(identify(
                &Policy::new(Some(String::new()), None),
                &host,
                Some("a"),
                Some("")
            )),
            "unauthorized"
        );
        assert_eq!(
            code(identify(
                &Policy::new(None, Some("opened")),
                &host,
                Some("a"),
                None
            )),
            "unauthorized"
        );
        assert_eq!(
            identify(&Policy::new(None, Some("open")), &host, Some("a"), None),
            Ok(Caller::Owner)
        );
    }

    #[test]
    fn a_secret_holds_also_where_auth_is_open() {
        let host = FixedHost::default();
        let both = Policy::new(Some(SECRET.to_owned()), Some("open"));
        assert_eq!(
            code(identify(&both, &host, Some("a"), None)),
            "unauthorized"
        );
        assert_eq!(
            identify(&both, &host, Some("a"), Some(SECRET)),
            Ok(Caller::Owner)
        );
    }

    #[test]
    fn only_the_secret_itself_is_the_secret() {
        let host = FixedHost::default();
        for wrong in [
            "",
            "a",
            "a long secre",
            "a long secret ",
            "A long secret",
            "sa1.x.y",
            "sa1..",
            "sa1",
        ] {
            assert_eq!(
                code(identify(&policy(), &host, Some("a"), Some(wrong))),
                "unauthorized",
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_minted_token_speaks_for_its_scope_until_it_expires() {
        let host = FixedHost::default();
        let claims = Claims {
            agent: "a".to_owned(),
            session_id: Some(id("s")),
            operations: Some(vec!["getSession".to_owned()]),
            expires_at: host.now_ms() + 1000,
        };
        let token = mint(SECRET, &claims);
        let caller = identify(&policy(), &host, Some("a"), Some(&token)).unwrap();
        assert_eq!(
            caller,
            Caller::Scoped(Scope {
                session_id: Some(id("s")),
                operations: Some(vec!["getSession".to_owned()]),
                expires_at: host.now_ms() + 1000
            })
        );
        assert_eq!(
            code(identify(&policy(), &host, Some("b"), Some(&token))),
            "unauthorized"
        );
        let other = Policy::new(Some("another secret".to_owned()), None);
        assert_eq!(
            code(identify(&other, &host, Some("a"), Some(&token))),
            "unauthorized"
        );
        host.advance(1000);
        assert_eq!(
            code(identify(&policy(), &host, Some("a"), Some(&token))),
            "unauthorized"
        );
    }

    #[test]
    fn a_changed_token_is_no_token() {
        let host = FixedHost::default();
        let claims = Claims {
            agent: "a".to_owned(),
            session_id: Some(id("s")),
            operations: None,
            expires_at: i64::MAX,
        };
        let token = mint(SECRET, &claims);
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(
                code(identify(&policy(), &host, Some("a"), Some(&changed))),
                "unauthorized",
                "byte {at}"
            );
        }
        assert_eq!(
            code(identify(
                &policy(),
                &host,
                Some("a"),
                Some(&token[..token.len() - 1])
            )),
            "unauthorized"
        );
    }

    #[test]
    fn a_token_allows_what_its_scope_says_and_no_more() {
        let scoped = |session: Option<&str>, operations: Option<&[&str]>| {
            Caller::Scoped(Scope {
                session_id: session.map(id),
                operations: operations
                    .map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
                expires_at: i64::MAX,
            })
        };
        let (mine, other) = (id("s"), id("t"));
        let table = [
            (Caller::Owner, Needs::Secret, None, true),
            (Caller::Owner, Needs::Session, Some(&other), true),
            (scoped(None, None), Needs::Secret, None, false),
            (scoped(None, None), Needs::WholeAgent, None, true),
            (scoped(None, None), Needs::Session, Some(&other), true),
            (scoped(Some("s"), None), Needs::WholeAgent, None, false),
            (scoped(Some("s"), None), Needs::Session, Some(&mine), true),
            (scoped(Some("s"), None), Needs::Session, Some(&other), false),
            (scoped(Some("s"), None), Needs::Session, None, false),
            (scoped(Some("s"), None), Needs::Narrowed, None, true),
            (
                scoped(Some("s"), Some(&["op"])),
                Needs::Session,
                Some(&mine),
                true,
            ),
            (
                scoped(Some("s"), Some(&["another"])),
                Needs::Session,
                Some(&mine),
                false,
            ),
            (scoped(None, Some(&["op"])), Needs::Secret, None, false),
            (scoped(None, Some(&[])), Needs::Narrowed, None, false),
        ];
        for (caller, needs, session, allowed) in table {
            let outcome = permit(&caller, "op", needs, session);
            assert_eq!(outcome.is_ok(), allowed, "{caller:?} {needs:?} {session:?}");
            if let Err(error) = outcome {
                assert_eq!(error.code, Code::Forbidden);
            }
        }
    }

    #[test]
    fn a_page_may_bring_a_token_and_never_the_secret() {
        let host = FixedHost::default();
        let claims = Claims {
            agent: "a".to_owned(),
            session_id: None,
            operations: None,
            expires_at: i64::MAX,
        };
        let token = mint(SECRET, &claims);
        let identify = |bearer, token| identify_page(&policy(), &host, "a", bearer, token);
        assert!(matches!(
            identify(None, Some(token.as_str())),
            Ok(Caller::Scoped(_))
        ));
        assert_eq!(identify(Some(SECRET), None), Ok(Caller::Owner));
        assert_eq!(code(identify(None, Some(SECRET))), "unauthorized");
        assert_eq!(code(identify(None, Some("x"))), "unauthorized");
        assert_eq!(code(identify(None, None)), "unauthorized");
        // A header that is wrong is not made good by an address.
        assert_eq!(code(identify(Some("x"), Some(&token))), "unauthorized");
        let open = Policy::new(None, Some("open"));
        assert_eq!(
            identify_page(&open, &host, "a", None, Some("whatever")),
            Ok(Caller::Owner)
        );
    }

    #[test]
    fn a_subprotocol_that_is_a_token_is_told_from_one_that_is_a_name() {
        for (offered, token, answered) in [
            (None, None, None),
            (Some(""), None, None),
            (Some("chat"), None, Some("chat")),
            (Some("sa1.x.y"), Some("sa1.x.y"), Some("sa1.x.y")),
            (Some("chat, sa1.x.y"), Some("sa1.x.y"), Some("chat")),
        ] {
            assert_eq!(find_subprotocol(offered), (token, answered), "{offered:?}");
        }
    }

    #[test]
    fn the_bearer_scheme_is_read_in_any_case() {
        assert_eq!(find_bearer(Some("Bearer abc")), Some("abc"));
        assert_eq!(find_bearer(Some("bearer abc")), Some("abc"));
        assert_eq!(find_bearer(Some("Basic abc")), None);
        assert_eq!(find_bearer(Some("abc")), None);
        assert_eq!(find_bearer(None), None);
    }
}
