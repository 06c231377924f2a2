//! Bookmarks: the platform's answers are passed on, and its absence is reported.

use serde_json::json;

use crate::Alice;

#[test]
fn without_the_platforms_recovery_a_sentence_says_so() {
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
fn a_bookmark_is_of_now_or_of_a_time_and_a_restore_says_how_to_undo_it() {
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
fn a_wrong_confirmation_a_time_too_long_ago_and_no_bookmark_change_nothing() {
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
