//! Who may do what. Fails closed: without a secret, and without `AUTH = "open"` or
//! `AUTH = "local"` chosen on purpose, nobody may do anything.
//!
//! It knows nothing of HTTP beyond the headers in which a credential may stand or a
//! browser says where a request comes from, and no message of it ever repeats one.

mod reach;
mod scope;
mod token;
mod visit;

pub use reach::Reach;
pub use scope::{Allow, Caller, Scope};
pub use token::{Claims, MAX_TOKEN_BYTES, MAX_TOKEN_SECONDS, MIN_SECRET_CHARS, Secret};
#[cfg(target_arch = "wasm32")]
pub use visit::{Sharing, Visit};

use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::ids::Id;

/// How this Worker is configured to let callers in.
#[derive(Clone, Default)]
pub struct Policy {
    secret: Held,
    auth: Auth,
    /// `ALLOWED_ORIGINS`: pages elsewhere that may read answers.
    origins: Vec<String>,
}

/// `SESSION_AGENT_TOKEN`.
#[derive(Clone, Default)]
enum Held {
    #[default]
    Nothing,
    /// It could be guessed: nobody gets in, whatever `AUTH` says.
    TooShort,
    Secret(Secret),
}

/// `AUTH`, where there is no secret. A secret, where there is one, holds all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Auth {
    /// Nobody gets in.
    #[default]
    Secret,
    /// Everybody does who reaches it: for a Worker that bindings alone reach.
    Open,
    /// Everybody on this machine, and no page that they visit.
    Local,
}

impl Policy {
    pub fn new(secret: Option<String>, auth: Option<&str>) -> Self {
        let secret = match secret.map(Secret::new) {
            None => Held::Nothing,
            Some(None) => Held::TooShort,
            Some(Some(secret)) => Held::Secret(secret),
        };
        let auth = match auth {
            Some("open") => Auth::Open,
            Some("local") => Auth::Local,
            _ => Auth::Secret,
        };
        Self {
            secret,
            auth,
            origins: Vec::new(),
        }
    }

    /// Lets pages of these origins in; gives the places of entries that are none.
    pub fn share_with(&mut self, origins: &str) -> Vec<usize> {
        let (origins, wrong) = visit::parse_origins(origins);
        self.origins = origins;
        wrong
    }

    /// What tokens are signed with.
    pub fn secret(&self) -> Option<&Secret> {
        match &self.secret {
            Held::Secret(secret) => Some(secret),
            Held::Nothing | Held::TooShort => None,
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

/// What an operation changes. It decides what of it a minted token must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touches {
    /// Nothing that anybody can read.
    Nothing,
    /// A session: what it is, what was spent on it, what goes and where it goes on.
    Session,
    /// What was said. With a minted token that is what a user says; for more it
    /// must allow `agentMessages`. The operation holds each message against that.
    Messages,
    /// What stands in prompts. A minted token runs it only if it names it.
    Prompts,
    /// What the agent is, or may reach.
    Agent,
}

/// What is asked of who runs an operation, or does by another door what it does.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The operation's name.
    pub operation: &'static str,
    pub needs: Needs,
    pub touches: Touches,
}

/// Finds out who is calling `agent` with this bearer token. `None`: what they
/// ask for is no agent's, and any agent's token will do.
pub fn identify(
    policy: &Policy,
    host: &dyn Host,
    agent: Option<&str>,
    bearer: Option<&str>,
) -> Result<Caller> {
    let secret = match &policy.secret {
        Held::Secret(secret) => secret,
        Held::TooShort => {
            return Err(unauthorized(format!(
                "SESSION_AGENT_TOKEN has fewer than {MIN_SECRET_CHARS} characters and could be guessed, so this Worker lets nobody in. Make another: `openssl rand -hex 32 | npx wrangler secret put SESSION_AGENT_TOKEN`.",
            )));
        }
        Held::Nothing if policy.auth == Auth::Secret => {
            return Err(unauthorized(
                "This Worker has no secret yet, so it lets nobody in. Set one with `openssl rand -hex 32 | npx wrangler secret put SESSION_AGENT_TOKEN`; or, where only bindings reach the Worker, choose `AUTH = \"open\"`.",
            ));
        }
        Held::Nothing => return Ok(Caller::Owner),
    };
    let Some(bearer) = bearer else {
        return Err(unauthorized(
            "Send `Authorization: Bearer …` with the Worker's secret, or with a token from `mintToken`.",
        ));
    };
    if secret.is(bearer) {
        return Ok(Caller::Owner);
    }
    let claims = secret.verify(bearer, host.now_ms()).map_err(unauthorized)?;
    if agent.is_some_and(|agent| claims.agent != agent) {
        return Err(unauthorized("This token is for another agent."));
    }
    Ok(Caller::Scoped(claims.scope))
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
    let Some(token) = token.filter(|_| bearer.is_none() && policy.secret().is_some()) else {
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

/// Whether `caller` may do what `rule` is about to `session_id` (`None`: it names none).
pub fn permit(caller: &Caller, rule: Rule, session_id: Option<&Id>) -> Result<()> {
    permit_by_name(caller, rule)?;
    match caller.only_session() {
        Some(only) if rule.needs == Needs::Session && session_id != Some(only) => {
            Err(forbidden("This token is for another session."))
        }
        _ => Ok(()),
    }
}

/// Whether `caller` may do what `rule` is about to any session at all: what can be
/// known before a request is read.
pub fn permit_by_name(caller: &Caller, rule: Rule) -> Result<()> {
    let Rule {
        operation, needs, ..
    } = rule;
    let Caller::Scoped(scope) = caller else {
        return Ok(());
    };
    if needs == Needs::Secret {
        return Err(forbidden(format!(
            "`{operation}` needs the Worker's secret; a minted token is not enough."
        )));
    }
    match &scope.operations {
        Some(names) if !names.iter().any(|name| name == operation) => {
            return Err(forbidden(format!(
                "This token does not allow `{operation}`."
            )));
        }
        None if rule.touches == Touches::Prompts => {
            return Err(forbidden(format!(
                "`{operation}` changes what stands in prompts: a token runs it only if its `operations` name it."
            )));
        }
        _ => {}
    }
    if scope.session_id.is_some() && needs == Needs::WholeAgent {
        return Err(forbidden(format!(
            "`{operation}` speaks of the whole agent; this token is for one session."
        )));
    }
    Ok(())
}

/// Whether `caller` may write this as it was said: by a user, or by the agent, its
/// tools or the system. `field` says who, in the request.
pub fn permit_voice(caller: &Caller, is_users: bool, field: &str) -> Result<()> {
    if is_users || caller.may_write_agent_messages() {
        return Ok(());
    }
    Err(forbidden(
        "A minted token writes a user's messages only. What the agent, its tools or the system said is written with the secret, or with a token that allows `agentMessages`.",
    )
    .with("field", field))
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

    const SECRET: &str = "a secret of exactly 32 characters";

    fn policy() -> Policy {
        Policy::new(Some(SECRET.to_owned()), None)
    }

    fn secret() -> Secret {
        Secret::new(SECRET.to_owned()).unwrap()
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
        for auth in ["open", "local"] {
            assert_eq!(
                identify(&Policy::new(None, Some(auth)), &host, Some("a"), None),
                Ok(Caller::Owner)
            );
        }
    }

    #[test]
    fn a_secret_that_could_be_guessed_shuts_the_worker() {
        let host = FixedHost::default();
        let long = "x".repeat(32);
        for short in ["", "let-me-in", &long[1..], "éééééééééééééééé"] {
            for auth in [None, Some("open"), Some("local")] {
                let policy = Policy::new(Some(short.to_owned()), auth);
                for bearer in [None, Some(short)] {
                    let error = identify(&policy, &host, Some("a"), bearer).unwrap_err();
                    assert_eq!(error.code, Code::Unauthorized);
                    assert!(error.message.contains("openssl rand -hex 32"));
                    assert!(short.is_empty() || !error.message.contains(short));
                    let page = identify_page(&policy, &host, "a", None, bearer).unwrap_err();
                    assert_eq!(page.code, Code::Unauthorized);
                }
            }
        }
        let policy = Policy::new(Some(long.clone()), None);
        assert_eq!(
            identify(&policy, &host, Some("a"), Some(&long)),
            Ok(Caller::Owner)
        );
    }

    #[test]
    fn a_token_is_signed_with_a_key_of_its_own() {
        use base64::Engine as _;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        use hmac::{Hmac, Mac};
        let host = FixedHost::default();
        let claims = Claims {
            agent: "a".to_owned(),
            scope: Scope {
                expires_at: i64::MAX,
                ..Scope::default()
            },
        };
        let claims = URL_SAFE_NO_PAD.encode(serde_json::to_string(&claims).unwrap());
        // Sealed with the secret itself, as tokens once were, in either format.
        for prefix in ["sa1", "sa2"] {
            let sealed = format!("{prefix}.{claims}");
            let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
            mac.update(sealed.as_bytes());
            let seal = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
            let token = format!("{sealed}.{seal}");
            assert_eq!(
                code(identify(&policy(), &host, Some("a"), Some(&token))),
                "unauthorized"
            );
        }
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
            &SECRET[1..],
            &format!("{SECRET} "),
            &SECRET.to_uppercase(),
            "sa2.x.y",
            "sa2..",
            "sa2",
            "sa1.x.y",
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
            scope: Scope {
                session_id: Some(id("s")),
                operations: Some(vec!["getSession".to_owned()]),
                allow: Allow {
                    models: vec![id("openai:one")],
                    client_tools: true,
                    ..Allow::default()
                },
                expires_at: host.now_ms() + 1000,
            },
        };
        let token = secret().mint(&claims);
        let caller = identify(&policy(), &host, Some("a"), Some(&token)).unwrap();
        assert_eq!(caller, Caller::Scoped(claims.scope));
        assert_eq!(
            code(identify(&policy(), &host, Some("b"), Some(&token))),
            "unauthorized"
        );
        let other = Policy::new(
            Some("another secret, as long as the first".to_owned()),
            None,
        );
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
            scope: Scope {
                session_id: Some(id("s")),
                expires_at: i64::MAX,
                ..Scope::default()
            },
        };
        let token = secret().mint(&claims);
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
                allow: Allow::default(),
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
            let rule = Rule {
                operation: "op",
                needs,
                touches: Touches::Messages,
            };
            let outcome = permit(&caller, rule, session);
            assert_eq!(outcome.is_ok(), allowed, "{caller:?} {needs:?} {session:?}");
            if let Err(error) = outcome {
                assert_eq!(error.code, Code::Forbidden);
            }
        }
    }

    #[test]
    fn what_changes_prompts_is_run_by_the_tokens_that_name_it() {
        let rule = Rule {
            operation: "op",
            needs: Needs::Session,
            touches: Touches::Prompts,
        };
        let mine = id("s");
        for (operations, allowed) in [
            (None, false),
            (Some(&["another"][..]), false),
            (Some(&["op"][..]), true),
        ] {
            for session_id in [None, Some(mine.clone())] {
                let caller = Caller::Scoped(Scope {
                    session_id,
                    operations: operations
                        .map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
                    ..Scope::default()
                });
                let outcome = permit(&caller, rule, Some(&mine));
                assert_eq!(outcome.is_ok(), allowed, "{caller:?}");
            }
        }
        assert!(permit(&Caller::Owner, rule, Some(&mine)).is_ok());
    }

    #[test]
    fn everything_a_token_may_allow_is_off_until_it_is_given() {
        let token = |session: Option<&str>, allow: Allow| {
            Caller::Scoped(Scope {
                session_id: session.map(id),
                allow,
                ..Scope::default()
            })
        };
        let can = |caller: &Caller| {
            [
                caller.may_choose_model("demo"),
                caller.may_set_system_instructions(),
                caller.may_bring_client_tools(),
                caller.may_write_agent_messages(),
                caller.lets_model_write_agent_memory(),
            ]
        };
        assert_eq!(can(&Caller::Owner), [true; 5]);
        assert_eq!(can(&token(Some("s"), Allow::default())), [false; 5]);
        let all = Allow {
            models: vec![id("demo")],
            system_instructions: true,
            client_tools: true,
            agent_messages: true,
            agent_memory: true,
            tools: vec![id("t")],
        };
        assert_eq!(can(&token(Some("s"), all.clone())), [true; 5]);
        assert!(!token(None, all).may_choose_model("openai:other"));
        // A token for the whole agent is not narrowed: its turns write what the agent's do.
        let whole = can(&token(None, Allow::default()));
        assert_eq!(whole, [false, false, false, false, true]);
    }

    #[test]
    fn a_page_may_bring_a_token_and_never_the_secret() {
        let host = FixedHost::default();
        let claims = Claims {
            agent: "a".to_owned(),
            scope: Scope {
                expires_at: i64::MAX,
                ..Scope::default()
            },
        };
        let token = secret().mint(&claims);
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
            (Some("sa2.x.y"), Some("sa2.x.y"), Some("sa2.x.y")),
            (Some("chat, sa2.x.y"), Some("sa2.x.y"), Some("chat")),
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
