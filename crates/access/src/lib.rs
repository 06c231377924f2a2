//! The callers and their rights. Access fails closed: without a secret, nobody may do anything,
//! unless the operator set `AUTH = "open"` or `AUTH = "local"`.
//!
//! This crate reads only the headers of a request that may contain a credential or name its origin,
//! and writes only the CORS headers of an answer (`cors.rs`). No error message repeats a
//! credential.

mod authority;
mod cors;
mod front;
mod identify;
pub mod json_schema;
mod policy;
mod rules;
mod scope;
mod seal;
mod token;

pub use authority::{Authority, MemoryScope, Principal, PrincipalKind};
pub use cors::{CorsPolicy, RequestOrigin};
pub use front::{FRONT_HEADER, LEASE_HEADER};
pub use identify::{find_bearer, find_subprotocol, identify, identify_page};
pub use policy::Policy;
pub use rules::{
    AccessRule, Effect, Needs, needs_allowance, needs_secret, permit, permit_by_name,
    permit_directory, permit_purge, permit_role, permit_session,
};
pub use scope::{Allow, Caller, TokenScope};
pub use seal::SealingKey;
pub use token::{Claims, MAX_TOKEN_BYTES, MAX_TOKEN_SECONDS, MIN_SECRET_CHARS, Secret};

#[cfg(test)]
mod tests {
    use super::*;
    use base::error::{Code, Result};
    use base::host::Host as _;
    use base::ids::Id;
    use base::testing::FixedHost;

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
    fn without_a_secret_all_requests_are_refused_unless_auth_is_open() {
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
    fn without_a_secret_the_error_explains_how_to_set_one() {
        let host = FixedHost::default();
        let error = identify(&Policy::new(None, None), &host, Some("a"), None).unwrap_err();
        assert_eq!(error.code, Code::Unauthorized);
        for advice in [
            "write `AUTH=local` into `.dev.vars`",
            "openssl rand -hex 32",
            "AUTH = \"open\"",
        ] {
            assert!(error.message.contains(advice), "{}", error.message);
        }
    }

    #[test]
    fn a_weak_secret_rejects_every_request() {
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
    fn tokens_are_signed_with_a_derived_key() {
        use base64::Engine as _;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        use hmac::{Hmac, Mac};
        let host = FixedHost::default();
        let claims = Claims {
            agent: "a".to_owned(),
            scope: TokenScope {
                expires_at: i64::MAX,
                ..TokenScope::default()
            },
        };
        let claims = URL_SAFE_NO_PAD.encode(serde_json::to_string(&claims).unwrap());
        // Sealed with the secret itself, as older tokens were, in either format.
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
    fn a_secret_applies_also_where_auth_is_open() {
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

    const PREVIOUS: &str = "the secret of last year, long enough";

    fn claims_of(host: &FixedHost) -> Claims {
        Claims {
            agent: "a".to_owned(),
            scope: TokenScope {
                session_id: Some(id("s")),
                expires_at: host.now_ms() + 1000,
                ..TokenScope::default()
            },
        }
    }

    #[test]
    fn the_previous_secret_and_its_tokens_stay_valid_during_rotation() {
        let host = FixedHost::default();
        let older = Secret::new(PREVIOUS.to_owned()).unwrap();
        let claims = claims_of(&host);
        let of_older = older.mint(&claims);
        let of_newer = secret().mint(&claims);
        let replacing = policy().with_previous(Some(PREVIOUS.to_owned()));
        for bearer in [SECRET, PREVIOUS] {
            let caller = identify(&replacing, &host, Some("a"), Some(bearer));
            assert_eq!(caller, Ok(Caller::Owner));
            // A URL must not contain a secret.
            let page = identify_page(&replacing, &host, "a", None, Some(bearer));
            assert_eq!(code(page), "unauthorized");
        }
        for token in [&of_older, &of_newer] {
            let caller = identify(&replacing, &host, Some("a"), Some(token));
            assert_eq!(caller, Ok(Caller::Scoped(claims.scope.clone())));
            let other = identify(&replacing, &host, Some("b"), Some(token));
            assert_eq!(code(other), "unauthorized");
        }
        // New tokens use the new secret, and a removed secret is invalid.
        assert_eq!(replacing.secret().unwrap().mint(&claims), of_newer);
        for bearer in [PREVIOUS, &of_older] {
            let after = identify(&policy(), &host, Some("a"), Some(bearer));
            assert_eq!(code(after), "unauthorized");
        }
        host.advance(1000);
        for token in [&of_older, &of_newer] {
            let late = identify(&replacing, &host, Some("a"), Some(token));
            assert!(late.unwrap_err().message.contains("expired"));
        }
    }

    #[test]
    fn a_short_or_lone_previous_secret_rejects_every_request() {
        let host = FixedHost::default();
        let long = "x".repeat(32);
        for (secret, auth, previous) in [
            (Some(SECRET), None, ""),
            (Some(SECRET), Some("open"), &long[1..]),
            (None, Some("open"), PREVIOUS),
            (None, Some("local"), PREVIOUS),
            (None, None, PREVIOUS),
        ] {
            let policy = Policy::new(secret.map(str::to_owned), auth)
                .with_previous(Some(previous.to_owned()));
            for bearer in [None, Some(SECRET), Some(previous)] {
                let error = identify(&policy, &host, Some("a"), bearer).unwrap_err();
                assert_eq!(error.code, Code::Unauthorized);
                assert!(error.message.contains("SESSION_AGENT_TOKEN_PREVIOUS"));
                assert!(previous.is_empty() || !error.message.contains(previous));
            }
        }
        // A new secret that is too short is invalid, even next to a valid old one.
        let policy = Policy::new(Some("short".to_owned()), Some("open"))
            .with_previous(Some(PREVIOUS.to_owned()));
        assert_eq!(
            code(identify(&policy, &host, Some("a"), Some(PREVIOUS))),
            "unauthorized"
        );
    }

    #[test]
    fn only_the_exact_secret_is_accepted() {
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
    fn a_minted_token_is_valid_for_its_scope_until_it_expires() {
        let host = FixedHost::default();
        let claims = Claims {
            agent: "a".to_owned(),
            scope: TokenScope {
                session_id: Some(id("s")),
                operations: Some(vec!["getSession".to_owned()]),
                allow: Allow {
                    models: vec![id("openai:one")],
                    client_tools: true,
                    ..Allow::default()
                },
                limits: None,
                session_memory: None,
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
    fn a_changed_token_is_not_valid() {
        let host = FixedHost::default();
        let claims = Claims {
            agent: "a".to_owned(),
            scope: TokenScope {
                session_id: Some(id("s")),
                expires_at: i64::MAX,
                ..TokenScope::default()
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
    fn a_token_allows_exactly_its_scope() {
        let scoped = |session: Option<&str>, operations: Option<&[&str]>| {
            Caller::Scoped(TokenScope {
                session_id: session.map(id),
                operations: operations
                    .map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
                allow: Allow::default(),
                limits: None,
                session_memory: None,
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
            let rule = AccessRule {
                operation: "op",
                needs,
                effect: Effect::Messages,
            };
            let outcome = permit(&caller, rule, session);
            assert_eq!(outcome.is_ok(), allowed, "{caller:?} {needs:?} {session:?}");
            if let Err(error) = outcome {
                assert_eq!(error.code, Code::Forbidden);
            }
        }
    }

    #[test]
    fn prompt_operations_need_a_token_that_names_them() {
        let rule = AccessRule {
            operation: "op",
            needs: Needs::Session,
            effect: Effect::Prompts,
        };
        let mine = id("s");
        for (operations, allowed) in [
            (None, false),
            (Some(&["another"][..]), false),
            (Some(&["op"][..]), true),
        ] {
            for session_id in [None, Some(mine.clone())] {
                let caller = Caller::Scoped(TokenScope {
                    session_id,
                    operations: operations
                        .map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
                    ..TokenScope::default()
                });
                let outcome = permit(&caller, rule, Some(&mine));
                assert_eq!(outcome.is_ok(), allowed, "{caller:?}");
            }
        }
        assert!(permit(&Caller::Owner, rule, Some(&mine)).is_ok());
    }

    #[test]
    fn every_optional_right_is_off_by_default() {
        let token = |session: Option<&str>, allow: Allow| {
            Caller::Scoped(TokenScope {
                session_id: session.map(id),
                allow,
                ..TokenScope::default()
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
            purge: true,
            tools: vec![id("t")],
        };
        assert_eq!(can(&token(Some("s"), all.clone())), [true; 5]);
        assert!(!token(None, all).may_choose_model("openai:other"));
        // A token for the whole agent is not restricted: its turns may write whatever the
        // agent's turns may write.
        let agent_rights = can(&token(None, Allow::default()));
        assert_eq!(agent_rights, [false, false, false, false, true]);
    }

    #[test]
    fn a_token_with_may_purge_purges_by_the_operations_it_names() {
        let token = |purge: bool, operations: Option<&[&str]>| {
            let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            Caller::Scoped(TokenScope {
                operations: operations.map(names),
                allow: Allow {
                    purge,
                    ..Allow::default()
                },
                ..TokenScope::default()
            })
        };
        for (caller, may) in [
            (Caller::Owner, true),
            (token(false, None), false),
            (token(true, None), false),
            (token(false, Some(&["erase"])), false),
            (token(true, Some(&["deleteEntry"])), false),
            (token(true, Some(&["deleteEntry", "erase"])), true),
        ] {
            assert_eq!(permit_purge(&caller, "erase").is_ok(), may, "{caller:?}");
        }
    }

    #[test]
    fn a_page_may_send_a_token_but_never_the_secret() {
        let host = FixedHost::default();
        let claims = Claims {
            agent: "a".to_owned(),
            scope: TokenScope {
                expires_at: i64::MAX,
                ..TokenScope::default()
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
        // A token in the URL does not replace a wrong header.
        assert_eq!(code(identify(Some("x"), Some(&token))), "unauthorized");
        let open = Policy::new(None, Some("open"));
        assert_eq!(
            identify_page(&open, &host, "a", None, Some("whatever")),
            Ok(Caller::Owner)
        );
    }

    #[test]
    fn a_token_subprotocol_is_distinguished_from_a_named_one() {
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
    fn the_bearer_scheme_is_case_insensitive() {
        assert_eq!(find_bearer(Some("Bearer abc")), Some("abc"));
        assert_eq!(find_bearer(Some("bearer abc")), Some("abc"));
        assert_eq!(find_bearer(Some("Basic abc")), None);
        assert_eq!(find_bearer(Some("abc")), None);
        assert_eq!(find_bearer(None), None);
    }
}
