//! Receipts: counts, a reproducible digest, and a signature.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::Alice;
use access::Policy;

fn purged(alice: &Alice) -> Value {
    let ids = alice.append_texts(&["a secret"]);
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": ids, "purge": true}),
    )
}

#[test]
fn the_digest_covers_the_receipt_with_sorted_keys() {
    let alice = Alice::with_session();
    let receipt = purged(&alice);
    assert_eq!(
        (&receipt["agent"], &receipt["operation"]),
        (&json!("alice"), &json!("deleteEvents"))
    );
    let counts: Vec<String> = receipt["erased"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, count)| format!("\"{name}\":{count}"))
        .collect();
    let mut sorted = counts.clone();
    sorted.sort();
    let text = format!(
        "{{\"agent\":\"alice\",\"at\":{},\"erased\":{{{}}},\"operation\":\"deleteEvents\"}}",
        receipt["at"],
        sorted.join(",")
    );
    assert_eq!(receipt["digest"], format!("{:x}", Sha256::digest(text)));
    assert!(!receipt.to_string().contains("a secret"));
}

#[test]
fn a_changed_receipt_is_invalid() {
    let alice = Alice::with_session();
    let receipt = purged(&alice);
    let check = |receipt: &Value| alice.ok("verifyReceipt", json!({"receipt": receipt}));
    assert_eq!(check(&receipt), json!({"valid": true, "signed": true}));
    for (pointer, value) in [
        ("/erased/events", json!(7)),
        ("/at", json!(1)),
        ("/operation", json!("erase")),
        ("/agent", json!("bob")),
        ("/signature", json!("00")),
        ("/signature", json!("é")),
        ("/digest", json!("00")),
    ] {
        let mut changed = receipt.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert_eq!(
            check(&changed),
            json!({"valid": false, "signed": false}),
            "{pointer}"
        );
    }
}

/// A forger can compute a receipt's digest.
#[test]
fn a_forged_receipt_is_invalid() {
    let alice = Alice::with_session();
    let open = Alice {
        policy: Policy::new(None, Some("open")),
        ..Alice::with_session()
    };
    let mut real = purged(&alice);
    real.as_object_mut().unwrap().remove("deleted");
    let mut made_up = vec![purged(&open), real.clone()];
    for (pointer, value) in [
        ("/erased/events", json!(7)),
        ("/erased/events", json!(i64::MAX)),
        ("/at", json!(1)),
        ("/operation", json!("erase")),
        ("/agent", json!("bob")),
    ] {
        let mut other = real.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        made_up.push(other);
    }
    let mut checked = 0;
    for mut receipt in made_up {
        for field in ["digest", "signature", "deleted"] {
            receipt.as_object_mut().unwrap().remove(field);
        }
        let digest = json!(format!("{:x}", Sha256::digest(receipt.to_string())));
        receipt["digest"] = digest.clone();
        let signatures = [
            None,
            Some(json!("")),
            Some(json!("00")),
            Some(digest),
            Some(real["signature"].clone()),
        ];
        for signature in signatures {
            let mut given = receipt.clone();
            if let Some(signature) = signature {
                given["signature"] = signature;
            }
            let is_real = given == real;
            for (checker, is_valid) in [(&alice, is_real), (&open, false)] {
                assert_eq!(
                    checker.ok("verifyReceipt", json!({"receipt": given})),
                    json!({"valid": is_valid, "signed": is_valid}),
                    "{given}"
                );
                checked += 1;
            }
        }
    }
    println!("{checked} receipts");
}

#[test]
fn without_a_secret_a_receipt_is_unsigned_and_cannot_be_verified() {
    let alice = Alice {
        policy: Policy::new(None, Some("open")),
        ..Alice::with_session()
    };
    let receipt = purged(&alice);
    assert_eq!(receipt["signature"], Value::Null);
    assert_eq!(
        alice.ok("verifyReceipt", json!({"receipt": receipt})),
        json!({"valid": false, "signed": false})
    );
}

#[test]
fn another_workers_signature_is_invalid() {
    let alice = Alice::with_session();
    let receipt = purged(&alice);
    let other = Alice {
        policy: Policy::new(Some("another secret of these tests, long".to_owned()), None),
        ..Alice::default()
    };
    assert_eq!(
        other.ok("verifyReceipt", json!({"receipt": receipt})),
        json!({"valid": false, "signed": false})
    );
}
