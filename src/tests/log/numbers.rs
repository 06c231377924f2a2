//! A session's events have row numbers of their own, whatever a file says.

use serde_json::json;

use crate::base::database::Database;
use crate::base::numbers::{MAX_SEQ, MAX_SESSION_NUMBER};
use crate::tests::Alice;
use crate::tests::lifecycle::transfer::small;

/// The file of a session of three messages. The session's next event would get the number
/// `next`.
fn file_up_to(next: i64) -> String {
    let file = small().export("s").unwrap();
    let floor = format!("\"seqFloor\":{}", next - 1);
    assert!(file.contains("\"seqFloor\":3"));
    file.replacen("\"seqFloor\":3", &floor, 1)
}

#[test]
fn a_session_at_its_last_number_takes_no_more_and_harms_no_neighbour() {
    for is_indexed_first in [false, true] {
        let alice = Alice::default();
        if is_indexed_first {
            alice.search("anything");
        }
        // One session has an odd number and the other an even one: an overflow would
        // reach different rows.
        for id in ["s", "t"] {
            alice.import(id, &file_up_to(MAX_SEQ + 1)).unwrap();
            alice.ok("createSession", json!({"id": format!("after-{id}")}));
            let said = json!({"action": "user_message", "content": format!("the parrot of {id}")});
            let body = json!({"sessionId": format!("after-{id}"), "events": [said, said, said]});
            alice.ok("appendEvents", body);
        }
        for id in ["s", "t"] {
            let event = json!({"action": "user_message", "content": "overrun"});
            let body = json!({"sessionId": id, "events": [event]});
            let error = alice.call("appendEvents", body).unwrap_err();
            assert_eq!(
                (error.code.name(), &error.details["limit"]),
                ("payload_too_large", &json!(MAX_SEQ))
            );
            let message = json!({"role": "user", "parts": [{"type": "text", "text": "x"}]});
            let body = json!({"sessionId": id, "message": message});
            assert_eq!(alice.refused("appendMessage", body), "payload_too_large");
        }
        let found = alice.search("parrot");
        assert_eq!(found.len(), 6);
        assert!(
            found
                .iter()
                .all(|hit| hit["snippet"].as_str().unwrap().contains("parrot"))
        );
        alice.ok("deleteSession", json!({"sessionId": "s"}));
        assert_eq!(alice.search("parrot").len(), 6);
        // As the error suggests, a fork of the session can take more events.
        let fork = alice.ok("forkSession", json!({"sessionId": "t"}));
        let event = json!({"action": "user_message", "content": "on"});
        let body = json!({"sessionId": fork["id"], "events": [event]});
        assert_eq!(alice.ok("appendEvents", body)["events"][0]["seq"], 4);
    }
}

#[test]
fn an_append_that_would_overrun_half_way_writes_nothing() {
    let alice = Alice::default();
    alice.import("s", &file_up_to(MAX_SEQ)).unwrap();
    let event = json!({"action": "user_message", "content": "x"});
    let before = alice.db.dump();
    let two = json!({"sessionId": "s", "events": [event, event]});
    assert_eq!(alice.refused("appendEvents", two), "payload_too_large");
    assert_eq!(alice.db.dump(), before);
    let one = json!({"sessionId": "s", "events": [event]});
    assert_eq!(alice.ok("appendEvents", one)["events"][0]["seq"], MAX_SEQ);
}

#[test]
fn a_number_beyond_is_refused_by_its_line() {
    for (from, to) in [
        ("\"seqFloor\":3", "\"seqFloor\":4294967296"),
        ("\"seqFloor\":3", "\"seqFloor\":9007199254740991"),
        ("\"seqFloor\":3", "\"seqFloor\":-1"),
        ("\"seq\":3", "\"seq\":4294967296"),
    ] {
        let file = small().export("s").unwrap();
        assert!(file.contains(from));
        let bob = Alice::default();
        let error = bob.import("s", &file.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.code.name(), "invalid_request", "{to}");
    }
}

#[test]
fn the_last_number_of_a_session_is_given_once() {
    let alice = Alice::with_session();
    let sql = "UPDATE cf_agents_sessions SET number = ?1";
    alice.db.run(sql, &[MAX_SESSION_NUMBER.into()]).unwrap();
    let before = alice.db.dump();
    assert_eq!(
        alice.refused("createSession", json!({})),
        "payload_too_large"
    );
    let file = small().export("s").unwrap();
    let error = alice.import("t", &file).unwrap_err();
    assert_eq!(error.code.name(), "payload_too_large");
    assert_eq!(
        alice.refused("forkSession", json!({"sessionId": "s"})),
        "payload_too_large"
    );
    assert_eq!(alice.db.dump(), before);
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    alice.ok("createSession", json!({}));
}

#[test]
fn an_overrun_that_an_earlier_build_took_is_in_no_index() {
    let alice = Alice::with_session();
    alice.say(&["the parrot"]);
    alice.ok("createSession", json!({"id": "t"}));
    let said = json!({"action": "user_message", "content": "a neighbour's"});
    alice.ok("appendEvents", json!({"sessionId": "t", "events": [said]}));
    // With this number, the row of session 1 would be the first row of session 2.
    let sql = "UPDATE cf_agents_events SET seq = ?1, id_indexed = 1 WHERE session_id = 's'";
    alice.db.run(sql, &[(MAX_SEQ + 2).into()]).unwrap();
    assert_eq!(alice.search("parrot").len(), 0);
    assert_eq!(alice.search("neighbour").len(), 1);
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    assert_eq!(alice.search("neighbour").len(), 1);
}
