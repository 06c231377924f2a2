//! Receipts: counts, a digest that anybody can compute, and a signature.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::Alice;
use access::Policy;

fn purged(alice: &Alice) -> Value {
    let ids = alice.say(&["a secret"]);
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": ids, "purge": true}),
    )
}

#[test]
fn the_digest_is_of_the_receipt_with_sorted_names() {
    let alice = Alice::with_session();
    let gone = purged(&alice);
    assert_eq!(
        (&gone["agent"], &gone["operation"]),
        (&json!("alice"), &json!("deleteEvents"))
    );
    let counts: Vec<String> = gone["erased"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, count)| format!("\"{name}\":{count}"))
        .collect();
    let mut sorted = counts.clone();
    sorted.sort();
    let text = format!(
        "{{\"agent\":\"alice\",\"at\":{},\"erased\":{{{}}},\"operation\":\"deleteEvents\"}}",
        gone["at"],
        sorted.join(",")
    );
    assert_eq!(gone["digest"], format!("{:x}", Sha256::digest(text)));
    assert!(!gone.to_string().contains("a secret"));
}

#[test]
fn a_receipt_is_valid_until_somebody_changes_it() {
    let alice = Alice::with_session();
    let gone = purged(&alice);
    let check = |receipt: &Value| alice.ok("verifyReceipt", json!({"receipt": receipt}));
    assert_eq!(check(&gone), json!({"valid": true, "signed": true}));
    for (pointer, value) in [
        ("/erased/events", json!(7)),
        ("/at", json!(1)),
        ("/operation", json!("erase")),
        ("/agent", json!("bob")),
        ("/signature", json!("00")),
        ("/signature", json!("é")),
        ("/digest", json!("00")),
    ] {
        let mut changed = gone.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert_eq!(
            check(&changed),
            json!({"valid": false, "signed": false}),
            "{pointer}"
        );
    }
    // Without its signature a receipt says what it says, and nobody vouches for it.
    let mut unsigned = gone;
    unsigned.as_object_mut().unwrap().remove("signature");
    assert_eq!(check(&unsigned), json!({"valid": true, "signed": false}));
}

#[test]
fn without_a_secret_a_receipt_has_no_signature() {
    let alice = Alice {
        policy: Policy::new(None, Some("open")),
        ..Alice::with_session()
    };
    let gone = purged(&alice);
    assert_eq!(gone["signature"], Value::Null);
    assert_eq!(
        alice.ok("verifyReceipt", json!({"receipt": gone})),
        json!({"valid": true, "signed": false})
    );
}

#[test]
fn another_workers_signature_is_not_valid() {
    let alice = Alice::with_session();
    let gone = purged(&alice);
    let other = Alice {
        policy: Policy::new(Some("another secret of these tests, long".to_owned()), None),
        ..Alice::default()
    };
    assert_eq!(
        other.ok("verifyReceipt", json!({"receipt": gone})),
        json!({"valid": false, "signed": false})
    );
}
