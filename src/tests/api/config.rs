use serde_json::json;

use crate::base::database::Database;
use crate::store::schema;
use crate::tests::Alice;

#[test]
fn what_was_never_set_has_its_default() {
    assert_eq!(
        Alice::default().ok("getConfig", json!({})),
        json!({
            "model": null, "systemInstructions": [], "maxSteps": 10,
            "sessionSearch": false, "vectors": false, "reservedMetadataKeys": []
        })
    );
}

#[test]
fn each_field_of_the_configuration_can_be_changed() {
    let alice = Alice::default();
    let config = alice.ok("getConfig", json!({}));
    for name in config.as_object().unwrap().keys() {
        if let Err(error) = alice.call("configureAgent", json!({ name: null })) {
            panic!("`ConfigureAgent` in store/config.rs: {}", error.message);
        }
    }
}

#[test]
fn what_is_left_out_stays_and_null_goes_back_to_the_default() {
    let alice = Alice::default();
    alice.ok(
        "configureAgent",
        json!({"model": "demo", "maxSteps": 3, "reservedMetadataKeys": ["internal"]}),
    );
    let config = alice.ok(
        "configureAgent",
        json!({"systemInstructions": ["Be brief."], "maxSteps": null}),
    );
    assert_eq!(
        config,
        json!({
            "model": "demo", "systemInstructions": ["Be brief."], "maxSteps": 10,
            "sessionSearch": false, "vectors": false, "reservedMetadataKeys": ["internal"]
        })
    );
    assert_eq!(alice.ok("getConfig", json!({})), config);
    for (body, field) in [
        (json!({"maxSteps": 0}), "maxSteps"),
        (json!({"maxSteps": 101}), "maxSteps"),
        (json!({"systemInstructions": "text"}), "systemInstructions"),
        (json!({"modle": "demo"}), "modle"),
    ] {
        assert_eq!(
            alice.call("configureAgent", body).unwrap_err().details["field"],
            field
        );
    }
}

#[test]
fn destroy_wants_the_agents_name_and_leaves_a_working_empty_object() {
    let alice = Alice::with_session();
    alice.say(&["one"]);
    let before = alice.db.dump();
    let error = alice
        .call("destroy", json!({"confirm": "Alice"}))
        .unwrap_err();
    assert_eq!(
        (error.code.name(), &error.details["field"]),
        ("invalid_request", &json!("confirm"))
    );
    assert_eq!(alice.db.dump(), before);

    assert_eq!(
        alice.ok("destroy", json!({"confirm": "alice"})),
        json!({"destroyed": true})
    );
    assert_eq!(
        alice
            .db
            .rows("SELECT name FROM sqlite_master", &[])
            .unwrap(),
        []
    );
    schema::migrate(&alice.db, &alice.host).unwrap();
    assert_eq!(
        alice.ok("listSessions", json!({})),
        json!({"sessions": [], "cursor": null})
    );
}
