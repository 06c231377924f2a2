//! The checks of a request before its body is read, for every operation of the table.

use crate::Alice;
use access::{Caller, Effect, Needs, TokenScope};
use api::admission::admit;
use api::route::Route;
use api::table::{NamedOperation, OPERATIONS, find_entry};
use base::error::Code;
use base::ids::Id;

fn of(operation: &str) -> Route {
    Route::Rpc {
        agent: "alice".to_owned(),
        operation: NamedOperation::find(operation.to_owned()),
    }
}

fn token(session_id: Option<&str>, operations: Option<&[&str]>) -> Caller {
    Caller::Scoped(TokenScope {
        session_id: session_id.map(|id| Id::parse(id.to_owned()).unwrap()),
        operations: operations.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        expires_at: i64::MAX,
        ..TokenScope::default()
    })
}

#[test]
fn every_operation_accepts_a_body_up_to_its_own_limit() {
    for entry in OPERATIONS {
        let name = entry.name;
        let limit = entry.max_body_bytes;
        let admission = admit(&Caller::Owner, &of(name)).unwrap();
        assert_eq!(admission.max_body_bytes, limit);
        let alice = Alice::with_session();
        let send = |length: usize| {
            let mut body = b"{}".to_vec();
            body.resize(length, b' ');
            alice.send(&alice.db, name, &body)
        };
        if let Err(error) = send(limit) {
            assert_ne!(error.code, Code::PayloadTooLarge, "{name}");
        }
        let error = send(limit + 1).expect_err(name);
        assert_eq!(error.code, Code::PayloadTooLarge, "{name}");
        assert_eq!(error.details()["limit"], limit, "{name}");
        assert_eq!(error.details()["actual"], limit + 1, "{name}");
    }
}

#[test]
fn a_forbidden_operation_is_refused_before_its_body_is_read() {
    let named_other = token(None, Some(&["nothing"]));
    let of_session = token(Some("s"), None);
    for entry in OPERATIONS {
        let refused = |caller: &Caller| match admit(caller, &of(entry.name)) {
            Err(error) => error.code == Code::Forbidden,
            Ok(_) => false,
        };
        assert!(refused(&named_other), "{}", entry.name);
        if matches!(entry.rule.needs, Needs::Secret | Needs::WholeAgent) {
            assert!(refused(&of_session), "{}", entry.name);
        }
        // The operation makes the same check without reading the body.
        let mut alice = Alice::with_session();
        alice.caller = token(None, Some(&["nothing"]));
        let error = alice
            .send(&alice.db, entry.name, b"{")
            .expect_err(entry.name);
        assert_eq!(error.code, Code::Forbidden, "{}", entry.name);
    }
    assert!(admit(&of_session, &of("getSession")).is_ok());
}

#[test]
fn an_unknown_path_is_refused_before_the_body_is_read() {
    let error = admit(&Caller::Owner, &of("getSesion")).unwrap_err();
    assert_eq!(error.code, Code::UnknownOperation);
    assert!(find_entry("chat").is_err());
}

#[test]
fn a_forbidden_chat_is_refused_by_name() {
    let chat = Route::Chat {
        agent: "alice".to_owned(),
        session_id: "s".to_owned(),
    };
    assert!(admit(&token(Some("s"), None), &chat).is_ok());
    let error = admit(&token(None, Some(&["getSession"])), &chat).unwrap_err();
    assert_eq!(error.code, Code::Forbidden);
}

#[test]
fn only_operations_without_effects_may_withhold_an_answer() {
    for entry in OPERATIONS {
        let admission = admit(&Caller::Owner, &of(entry.name)).unwrap();
        let changes_nothing = entry.rule.effect == Effect::Nothing;
        assert_eq!(admission.may_be_repeated, changes_nothing, "{}", entry.name);
    }
}
