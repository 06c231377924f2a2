//! Bookmarks: the platform's answers are passed on, and its absence is reported.

use serde_json::json;

use crate::Alice;

#[test]
fn without_point_in_time_recovery_the_error_explains_it() {
    let alice = Alice::with_session();
    for (operation, body) in [
        ("getBookmark", json!({})),
        ("getBookmark", json!({"at": 5})),
        (
            "restoreBookmark",
            json!({"bookmark": "state-5", "confirm": "alice"}),
        ),
    ] {
        let error = alice.call(operation, body).unwrap_err();
        assert_eq!(error.code.name(), "not_configured", "{operation}");
        assert_eq!(error.details()["binding"], "point-in-time recovery");
        assert!(error.message.contains("deployed Worker"));
    }
    assert_eq!(*alice.starter.restarts.borrow(), 0);
}

#[test]
fn a_bookmark_is_of_now_or_a_past_time_and_a_restore_can_be_undone() {
    let alice = Alice::with_session();
    alice.recovery.since_ms.set(Some(100));
    assert_eq!(
        alice.ok("getBookmark", json!({})),
        json!({"bookmark": "state-now", "at": 1_000_000})
    );
    assert_eq!(
        alice.ok("getBookmark", json!({"at": 100})),
        json!({"bookmark": "state-100", "at": 100})
    );
    let before = alice.db.dump();
    let restored = alice.ok(
        "restoreBookmark",
        json!({"bookmark": "state-100", "confirm": "alice"}),
    );
    assert_eq!(restored, json!({"restored": true, "undo": "state-before"}));
    assert_eq!(*alice.recovery.restored.borrow(), ["state-100"]);
    assert_eq!(*alice.starter.restarts.borrow(), 1);
    assert!(alice.db.dump() == before, "the platform restores");
}

#[test]
fn an_invalid_restore_changes_nothing() {
    let alice = Alice::with_session();
    alice.recovery.since_ms.set(Some(100));
    let wrong = [
        (
            "restoreBookmark",
            json!({"bookmark": "state-100", "confirm": "Alice"}),
            "confirm",
        ),
        (
            "restoreBookmark",
            json!({"bookmark": "nonsense", "confirm": "alice"}),
            "bookmark",
        ),
        ("getBookmark", json!({"at": 99}), "bookmark"),
    ];
    for (operation, body, field) in wrong {
        let error = alice.call(operation, body).unwrap_err();
        assert_eq!(error.code.name(), "invalid_request");
        assert_eq!(error.details()["field"], field);
    }
    assert!(alice.recovery.restored.borrow().is_empty());
    assert_eq!(*alice.starter.restarts.borrow(), 0);
}
