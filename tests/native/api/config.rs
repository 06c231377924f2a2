//! The agent's configuration: `configureAgent`, `getAgentConfig`, and the origin of each value.

use serde_json::{Value, json};

use crate::Alice;
use base::database::Database;
use store::schema;

#[test]
fn an_unset_setting_has_its_default() {
    let config = Alice::default().ok("getConfig", json!({}));
    let values = json!({
        "model": null, "systemInstructions": [], "maxSteps": 10,
        "sessionSearch": false, "vectors": false, "reservedMetadataKeys": []
    });
    for (name, value) in values.as_object().unwrap() {
        assert_eq!(&config[name], value, "{name}");
    }
    let origins = config["origins"].as_object().unwrap();
    assert!(origins.values().all(|origin| origin == "built-in"));
    assert_eq!(config["problems"], json!([]));
}

#[test]
fn each_field_of_the_configuration_can_be_changed() {
    let alice = Alice::default();
    let config = alice.ok("getConfig", json!({}));
    let origins = config["origins"].as_object().unwrap();
    let names: Vec<&String> = origins.keys().collect();
    let mut values: Vec<&String> = config.as_object().unwrap().keys().collect();
    values.retain(|name| !["origins", "problems"].contains(&name.as_str()));
    assert_eq!(values, names);
    for name in names {
        if let Err(error) = alice.call("configureAgent", json!({ name: null })) {
            panic!("`ConfigureAgent` in store/config.rs: {}", error.message);
        }
    }
}

#[test]
fn an_omitted_field_is_unchanged_and_null_resets_it() {
    let alice = Alice::default();
    alice.ok(
        "configureAgent",
        json!({"model": "demo", "maxSteps": 3, "reservedMetadataKeys": ["internal"]}),
    );
    let config = alice.ok(
        "configureAgent",
        json!({"systemInstructions": ["Be brief."], "maxSteps": null}),
    );
    let values = json!({
        "model": "demo", "systemInstructions": ["Be brief."], "maxSteps": 10,
        "sessionSearch": false, "vectors": false, "reservedMetadataKeys": ["internal"]
    });
    for (name, value) in values.as_object().unwrap() {
        assert_eq!(&config[name], value, "{name}");
    }
    let stored = alice.db.rows(
        "SELECT value FROM cf_agents_config WHERE key = 'agent'",
        &[],
    );
    let answer = json!({"model": "demo", "systemInstructions": ["Be brief."],
                      "reservedMetadataKeys": ["internal"]});
    let stored: Value = serde_json::from_str(stored.unwrap()[0].text(0).unwrap()).unwrap();
    assert_eq!(stored, answer);
    assert_eq!(alice.ok("getConfig", json!({})), config);
    for (body, field) in [
        (json!({"maxSteps": 0}), "maxSteps"),
        (json!({"maxSteps": 101}), "maxSteps"),
        (json!({"systemInstructions": "text"}), "systemInstructions"),
        (json!({"modle": "demo"}), "modle"),
    ] {
        assert_eq!(
            alice.call("configureAgent", body).unwrap_err().details()["field"],
            field
        );
    }
}

/// An agent of a Worker with these deployed defaults.
fn with_defaults(defaults: Value) -> Alice {
    let alice = Alice::default();
    let mut settings = alice.outbound.settings.borrow_mut();
    settings.insert("AGENT_DEFAULTS".to_owned(), defaults.to_string());
    drop(settings);
    alice
}

#[test]
fn an_empty_object_overrides_the_deployed_default() {
    let target = json!({"service": "LISTENER"});
    let defaults = json!({
        "learn": {"into": "facts"},
        "blocks": [{"label": "facts", "kind": "searchable"}],
        "onTurnEnd": target,
        "onMemoryChange": target,
    });
    let alice = with_defaults(defaults);
    let waiting = |alice: &Alice| alice.ok("getStats", json!({}))["learning"]["waiting"].clone();
    let own = json!({"learn": {}, "onTurnEnd": {}, "onMemoryChange": {}});
    let config = alice.ok("configureAgent", own);
    for setting in ["learn", "onTurnEnd", "onMemoryChange"] {
        assert_eq!(config[setting], Value::Null, "{setting}");
        assert_eq!(config["origins"][setting], "agent", "{setting}");
    }
    alice.ok("createSession", json!({"id": "s"}));
    alice.append_texts(&["I like tea."]);
    assert_eq!(waiting(&alice), 0);
    assert_eq!(
        alice.call("learn", json!({})).unwrap_err().code.name(),
        "not_configured"
    );
    alice.ok(
        "setEntry",
        json!({"label": "facts", "key": "a", "content": "x"}),
    );
    assert_eq!(alice.ok("getStats", json!({}))["callbacks"]["waiting"], 0);
    // `null` resets the agent's own value.
    let own = json!({"learn": null, "onTurnEnd": null, "onMemoryChange": null});
    let config = alice.ok("configureAgent", own);
    assert_eq!(config["learn"]["into"], "facts");
    assert_eq!(config["onTurnEnd"]["service"], "LISTENER");
    alice.append_texts(&["I like tea."]);
    assert_eq!(waiting(&alice), 1);
    // A value above 0 but below one block is refused.
    for learn in [
        json!({"review": "auto"}),
        json!({"into": "facts", "profile": ""}),
    ] {
        let error = alice
            .call("configureAgent", json!({"learn": learn}))
            .unwrap_err();
        assert_eq!(error.code.name(), "invalid_request");
    }
}

#[test]
fn an_empty_object_without_a_deployed_default_is_refused() {
    let alice = Alice::default();
    for (setting, field) in [
        ("learn", "learn.into"),
        ("summarize", "summarize.service"),
        ("onTurnEnd", "onTurnEnd"),
        ("onMemoryChange", "onMemoryChange"),
    ] {
        let error = alice
            .call("configureAgent", json!({setting: {}}))
            .unwrap_err();
        assert_eq!(error.code.name(), "invalid_request", "{setting}");
        assert_eq!(error.details()["field"], field);
        let deployed = with_defaults(json!({setting: {}}));
        let problems = deployed.ok("getConfig", json!({}))["problems"].clone();
        assert_eq!(problems.as_array().unwrap().len(), 1, "{setting}");
    }
}

#[test]
fn the_agents_value_precedes_the_deployed_and_the_built_in() {
    let alice = with_defaults(json!({"maxSteps": 4, "sessionSearch": true, "model": "demo"}));
    alice.ok("configureAgent", json!({"sessionSearch": false}));
    let config = alice.ok("getConfig", json!({}));
    assert_eq!(config["maxSteps"], 4);
    assert_eq!(config["sessionSearch"], false);
    assert_eq!(config["vectors"], false);
    let origins = &config["origins"];
    assert_eq!(origins["maxSteps"], "defaults");
    assert_eq!(origins["sessionSearch"], "agent");
    assert_eq!(origins["vectors"], "built-in");

    let config = alice.ok("configureAgent", json!({"sessionSearch": null}));
    assert_eq!(config["sessionSearch"], true);
    assert_eq!(config["origins"]["sessionSearch"], "defaults");
}

#[test]
fn deployed_defaults_write_no_row() {
    let alice = with_defaults(json!({"maxSteps": 4}));
    let before = alice.db.dump();
    assert_eq!(alice.ok("getConfig", json!({}))["maxSteps"], 4);
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn invalid_defaults_are_named_and_the_rest_applies() {
    let alice = with_defaults(json!({
        "model": "gpt-4o", "maxStep": 3, "maxSteps": 0, "vectors": "yes",
        "reservedMetadataKeys": ["a", ""], "sessionSearch": true, "systemInstructions": null
    }));
    let config = alice.ok("getConfig", json!({}));
    assert_eq!(config["sessionSearch"], true);
    assert_eq!(
        (&config["model"], &config["maxSteps"]),
        (&json!(null), &json!(10))
    );
    let problems = config["problems"].as_array().unwrap();
    let mut fields: Vec<&str> = problems
        .iter()
        .map(|problem| problem["field"].as_str().unwrap())
        .collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "maxStep",
            "maxSteps",
            "model",
            "reservedMetadataKeys[1]",
            "vectors"
        ]
    );
    for problem in problems {
        assert_eq!(problem["source"], "AGENT_DEFAULTS");
    }
    let near = problems
        .iter()
        .find(|problem| problem["field"] == "maxStep");
    let message = near.unwrap()["message"].as_str().unwrap();
    assert_eq!(
        message,
        "`maxStep` is not a field here. Did you mean `maxSteps`?"
    );
}

#[test]
fn defaults_that_are_not_an_object_are_reported() {
    for text in ["{", "[]", "null", "{\"maxSteps\": 3", "hunter2"] {
        let alice = Alice::default();
        let mut settings = alice.outbound.settings.borrow_mut();
        settings.insert("AGENT_DEFAULTS".to_owned(), text.to_owned());
        drop(settings);
        let config = alice.ok("getConfig", json!({}));
        assert_eq!(config["maxSteps"], 10);
        let problems = config["problems"].as_array().unwrap();
        assert_eq!(
            (problems.len(), &problems[0]["field"]),
            (1, &json!("")),
            "{text}"
        );
        assert!(!problems[0]["message"].as_str().unwrap().contains("hunter2"));
    }
}

#[test]
fn destroy_needs_the_agents_name_and_empties_the_object() {
    let alice = Alice::with_session();
    alice.append_texts(&["one"]);
    let before = alice.db.dump();
    let error = alice
        .call("destroy", json!({"confirm": "Alice"}))
        .unwrap_err();
    assert_eq!(
        (error.code.name(), &error.details()["field"]),
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

#[test]
fn learning_into_a_remote_block_is_refused() {
    let alice = Alice::default();
    for (label, kind, source) in [
        ("shared", "searchable", json!({"agent": "user:42"})),
        ("notes", "writable", Value::Null),
    ] {
        alice.ok(
            "defineBlock",
            json!({"label": label, "kind": kind, "source": source}),
        );
        let error = alice
            .call("configureAgent", json!({"learn": {"into": label}}))
            .unwrap_err();
        assert_eq!(error.details()["field"], "learn.into", "{label}");
    }
    alice.ok(
        "defineBlock",
        json!({"label": "facts", "kind": "searchable"}),
    );
    for label in ["facts", "later"] {
        alice.ok("configureAgent", json!({"learn": {"into": label}}));
    }
}
