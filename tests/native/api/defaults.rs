//! The deployed defaults: the file and the variable.

use serde_json::{Value, json};

use crate::Alice;
use api::dispatch::dispatch;
use base::testing::wait_for;

/// An agent of a Worker with this file and these variables.
fn deployed(file: Value, variables: &[(&str, Value)]) -> Alice {
    let alice = Alice::default();
    *alice.outbound.defaults_file.borrow_mut() = (!file.is_null()).then(|| file.to_string());
    let mut settings = alice.outbound.settings.borrow_mut();
    for (name, value) in variables {
        settings.insert((*name).to_owned(), value.to_string());
    }
    settings.insert(
        "TOOL_ORIGINS".to_owned(),
        "https://tools.example".to_owned(),
    );
    drop(settings);
    alice
}

fn tool(name: &str, url: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "url": url})
}

fn names(alice: &Alice) -> Vec<String> {
    let tools = alice.ok("listTools", json!({}));
    let tools = tools["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn labels(alice: &Alice) -> Vec<String> {
    let blocks = alice.ok("getBlocks", json!({}));
    let blocks = blocks.as_array().unwrap().iter();
    blocks
        .map(|block| block["label"].as_str().unwrap().to_owned())
        .collect()
}

/// The paths of the problems that `getConfig` names.
fn problems(alice: &Alice) -> Vec<String> {
    let config = alice.ok("getConfig", json!({}));
    let problems = config["problems"].as_array().unwrap().iter();
    problems
        .map(|problem| {
            let text = |name: &str| problem[name].as_str().unwrap();
            assert!(text("message").ends_with(['.', '?']), "{problem}");
            format!("{}: {}", text("source"), text("field"))
        })
        .collect()
}

#[test]
fn a_new_agent_has_the_deployed_defaults_without_any_row() {
    let alice = deployed(
        json!({
            "systemInstructions": ["Be brief."],
            "blocks": [
                {"label": "soul", "kind": "readonly", "defaultContent": "You are kind."},
                {"label": "facts", "kind": "searchable"}
            ],
            "tools": [tool("weather", "https://tools.example/weather")],
            "compaction": {"compactAfter": 5000, "protectHead": 1}
        }),
        &[],
    );
    let before = alice.db.dump();
    assert_eq!(problems(&alice), [""; 0]);
    let prompt = alice.ok("renderPrompt", json!({}));
    assert!(prompt["prompt"].as_str().unwrap().contains("You are kind."));
    assert_eq!(labels(&alice), ["soul", "facts"]);
    assert_eq!(names(&alice), ["weather"]);
    alice.ok("searchContext", json!({"label": "facts", "query": "x"}));
    assert_eq!(alice.db.dump(), before);
    assert_eq!(
        alice.ok("configureCompaction", json!({})),
        json!({"compactAfter": 5000, "protectHead": 1, "tailTokenBudget": 20000,
               "minTailMessages": 2})
    );
}

#[test]
fn the_variable_overrides_the_file_and_its_older_name() {
    let block = |label: &str| json!([{"label": label, "kind": "writable"}]);
    let file = json!({"maxSteps": 3, "vectors": true, "blocks": block("filed")});
    let alice = deployed(file.clone(), &[("AGENT_DEFAULTS", json!({"maxSteps": 4}))]);
    let config = alice.ok("getConfig", json!({}));
    assert_eq!(
        (&config["maxSteps"], &config["vectors"]),
        (&json!(4), &json!(true))
    );
    assert_eq!(labels(&alice), ["filed"]);

    let older = ("MEMORY_BLOCKS", block("older"));
    let alice = deployed(file.clone(), std::slice::from_ref(&older));
    assert_eq!(labels(&alice), ["older"]);
    let newer = ("AGENT_DEFAULTS", json!({"blocks": block("newer")}));
    let alice = deployed(file, &[older, newer]);
    assert_eq!(labels(&alice), ["newer"]);
}

#[test]
fn an_invalid_default_is_named_and_skipped() {
    let alice = deployed(
        json!({
            "blocks": [
                {"label": "a", "kind": "writable"},
                {"label": "b", "kind": "list"},
                {"label": "A", "kind": "writable"},
                "nonsense",
                {"label": "c", "kind": "writable", "sessionId": "s"},
                {"label": "d", "kind": "loadable", "source": {"r2Prefix": "d/{1}"}},
                {"label": "e", "kind": "writable"}
            ],
            "tools": [
                tool("near", "https://tools.example/x"),
                tool("far", "https://elsewhere.example/x"),
                tool("set_context", "https://tools.example/x"),
                tool("near", "https://tools.example/y")
            ],
            "compaction": {"compactAfter": 0, "protectHead": 7, "sessionId": "s"},
            "blcks": [],
            "maxSteps": 200
        }),
        &[("AGENT_DEFAULTS", json!([1]))],
    );
    assert_eq!(labels(&alice), ["a", "e"]);
    assert_eq!(names(&alice), ["near"]);
    let compaction = alice.ok("configureCompaction", json!({}));
    assert_eq!(
        (&compaction["compactAfter"], &compaction["protectHead"]),
        (&json!(null), &json!(7))
    );
    let mut named = problems(&alice);
    named.sort();
    let of_file = |field: &str| format!("agent-defaults.json: {field}");
    let mut expected: Vec<String> = [
        "blcks",
        "blocks[1].kind",
        "blocks[2].label",
        "blocks[3]",
        "blocks[4].sessionId",
        "blocks[5].source",
        "compaction.compactAfter",
        "compaction.sessionId",
        "maxSteps",
        "tools[1].url",
        "tools[2].name",
        "tools[3].name",
    ]
    .into_iter()
    .map(of_file)
    .collect();
    expected.insert(0, "AGENT_DEFAULTS: ".to_owned());
    assert_eq!(named, expected);
}

#[test]
fn a_default_of_the_wrong_type_is_named() {
    for part in ["blocks", "tools", "compaction"] {
        for value in [json!("x"), json!(1), json!(true)] {
            let alice = deployed(json!({part: value, "maxSteps": 3}), &[]);
            assert_eq!(problems(&alice), [format!("agent-defaults.json: {part}")]);
            assert_eq!(alice.ok("getConfig", json!({}))["maxSteps"], 3);
        }
        let alice = deployed(json!({part: null}), &[]);
        assert_eq!(problems(&alice), [""; 0]);
    }
}

#[test]
fn an_agents_tool_overrides_the_deployed_one_and_can_hide_it() {
    let alice = deployed(
        json!({"tools": [
            tool("a", "https://tools.example/a"), tool("c", "https://tools.example/c")
        ]}),
        &[],
    );
    alice.ok("defineTool", tool("b", "https://tools.example/b"));
    alice.ok("defineTool", tool("a", "https://tools.example/own"));
    assert_eq!(names(&alice), ["a", "b", "c"]);
    let first = &alice.ok("listTools", json!({}))["tools"][0]["url"];
    assert_eq!(first, "https://tools.example/own");

    // The deployed tool is not listed again below the agent's own.
    let removed = |name: &str| alice.ok("removeTool", json!({"name": name}))["removed"].clone();
    assert_eq!(removed("a"), true);
    assert_eq!(removed("a"), false);
    assert_eq!(removed("c"), true);
    assert_eq!(removed("nobody"), false);
    assert_eq!(names(&alice), ["b"]);
    alice.ok("defineTool", tool("c", "https://tools.example/own"));
    assert_eq!(names(&alice), ["b", "c"]);
}

#[test]
fn a_deployed_tool_is_marked_and_can_be_restored() {
    let alice = deployed(
        json!({"tools": [tool("a", "https://tools.example/a"), tool("c", "https://tools.example/c")]}),
        &[],
    );
    alice.ok("defineTool", tool("b", "https://tools.example/b"));
    let shown = |name: &str| {
        let listed = alice.ok("listTools", json!({}));
        let tools = listed["tools"].as_array().unwrap().clone();
        let found = tools.iter().find(|tool| tool["name"] == name).cloned();
        (
            found.unwrap_or_default()["isDeployed"].clone(),
            listed["hidden"].clone(),
        )
    };
    assert_eq!(shown("a"), (json!(true), Value::Null));
    assert_eq!(shown("b"), (Value::Null, Value::Null));
    alice.ok("removeTool", json!({"name": "a"}));
    assert_eq!(shown("a"), (Value::Null, json!(["a"])));

    let restore = |name: &str| alice.ok("removeTool", json!({"name": name, "restore": true}));
    assert_eq!(restore("b"), json!({"removed": false, "restored": false}));
    assert_eq!(names(&alice), ["b", "c"]);
    assert_eq!(restore("a"), json!({"removed": false, "restored": true}));
    assert_eq!(shown("a"), (json!(true), Value::Null));
    assert_eq!(restore("a")["restored"], false);

    // The agent's own tool replaces the deployed one, so nothing is hidden.
    alice.ok("removeTool", json!({"name": "a"}));
    alice.ok("defineTool", tool("a", "https://tools.example/own"));
    assert_eq!(shown("a"), (Value::Null, Value::Null));
}

#[test]
fn compaction_settings_fall_back_from_session_to_deployment() {
    let alice = deployed(
        json!({"compaction": {"compactAfter": 5000, "protectHead": 1}}),
        &[],
    );
    alice.ok("createSession", json!({"id": "s"}));
    alice.ok(
        "configureCompaction",
        json!({"sessionId": "s", "protectHead": 2}),
    );
    alice.ok("configureCompaction", json!({"compactAfter": null}));
    let settings = alice.ok("configureCompaction", json!({"sessionId": "s"}));
    assert_eq!(settings["protectHead"], 2);
    assert_eq!(settings["compactAfter"], Value::Null);
    assert_eq!(alice.ok("configureCompaction", json!({}))["protectHead"], 1);
}

#[test]
fn deployed_compaction_runs_after_appends() {
    for (operation, body) in [
        (
            "appendEvents",
            json!({"sessionId": "s", "events": [{"action": "user_message", "content": "a"}]}),
        ),
        (
            "appendMessage",
            json!({"sessionId": "s", "message": {"role": "user", "parts": [{"type": "text", "text": "a"}]}}),
        ),
        (
            "persistWorkingContext",
            json!({"sessionId": "s", "messages": [{"role": "user", "content": "a"}]}),
        ),
    ] {
        let alice = deployed(json!({"compaction": {"compactAfter": 5000}}), &[]);
        alice.ok("createSession", json!({"id": "s"}));
        let grows = |alice: &Alice| {
            let agent = alice.agent(&alice.db);
            let reply = wait_for(dispatch(&agent, operation, body.to_string())).unwrap();
            reply.grown.is_some()
        };
        assert!(grows(&alice), "{operation}");
        alice.ok(
            "configureCompaction",
            json!({"sessionId": "s", "compactAfter": null}),
        );
        assert!(!grows(&alice), "{operation}");
    }
}

#[test]
fn an_agent_has_at_most_128_tools_including_deployed_ones() {
    let tools: Vec<Value> = (0..129)
        .map(|number| tool(&format!("t{number:03}"), "https://tools.example/x"))
        .collect();
    let alice = deployed(json!({"tools": tools}), &[]);
    assert_eq!(names(&alice).len(), 128);
    assert_eq!(problems(&alice), ["agent-defaults.json: tools[128]"]);
    let own = tool("own", "https://tools.example/x");
    assert_eq!(alice.refused("defineTool", own.clone()), "invalid_request");
    alice.ok("removeTool", json!({"name": "t000"}));
    alice.ok("defineTool", own);
}

#[test]
fn deployed_limits_apply_until_the_agent_sets_its_own() {
    let alice = deployed(json!({"limits": {"turnsPerMinute": 3}}), &[]);
    let config = alice.ok("getConfig", json!({}));
    assert_eq!(config["limits"], json!({"turnsPerMinute": 3}));
    assert_eq!(config["origins"]["limits"], "defaults");
    let own = alice.ok("configureAgent", json!({"limits": {}}));
    assert_eq!(own["limits"], json!({}));
    assert_eq!(own["origins"]["limits"], "agent");
    assert_eq!(problems(&alice), [""; 0]);
}

/// Whether a turn starts, or else the missing binding.
fn turn(alice: &Alice) -> Result<(), Value> {
    let parts = json!([{"type": "text", "text": "hi"}]);
    let body = json!({"id": "s", "message": {"id": "u", "role": "user", "parts": parts}});
    match alice.begin(&body) {
        Ok(_) => Ok(()),
        Err(error) => {
            assert_eq!(error.code.name(), "not_configured");
            Err(error.details()["binding"].clone())
        }
    }
}

#[test]
fn unreadable_limits_block_every_turn() {
    for (file, variable, named) in [
        (json!({"limits": 5}), None, "limits"),
        (json!({"limits": []}), None, "limits"),
        (
            json!({"limits": {"turnsPerMinute": 0}}),
            None,
            "limits.turnsPerMinute",
        ),
        (
            json!({"limits": {"turnsPerHour": 5}}),
            None,
            "limits.turnsPerHour",
        ),
        (json!({"limit": {"turnsPerMinute": 5}}), None, "limit"),
        (json!({"Limits": {"turnsPerMinute": 5}}), None, "Limits"),
        (
            json!({"maxSteps": 3}),
            Some("{\"limits\": {\"tokensPerDay\": 5}"),
            "limits",
        ),
    ] {
        let alice = deployed(file.clone(), &[]);
        if let Some(text) = variable {
            let mut settings = alice.outbound.settings.borrow_mut();
            settings.insert("AGENT_DEFAULTS".to_owned(), text.to_owned());
        }
        let is_named = |problem: &String| problem.ends_with(&format!(": {named}"));
        assert!(problems(&alice).iter().any(is_named), "{file} {named}");
        let before = alice.db.dump();
        assert_eq!(turn(&alice), Err(json!("AGENT_DEFAULTS")), "{file}");
        assert_eq!(alice.db.dump(), before);
        // Operations that start no turn still run, and the agent's own limits replace the deployed
        // ones.
        alice.ok("createSession", json!({"id": "s"}));
        alice.ok("configureAgent", json!({"limits": {"turnsPerMinute": 1}}));
        assert_eq!(turn(&alice), Ok(()), "{file}");
    }
    // A broken variable that sets no limits blocks no turn.
    let alice = deployed(json!({}), &[("AGENT_DEFAULTS", json!([1]))]);
    assert_eq!(turn(&alice), Ok(()));
}

#[test]
fn a_cost_limit_without_prices_blocks_every_turn() {
    let limits = json!({"costPerDay": 1});
    let alice = deployed(json!({"limits": limits}), &[]);
    assert_eq!(problems(&alice), ["agent-defaults.json: limits.costPerDay"]);
    assert_eq!(turn(&alice), Err(json!("prices")));
    alice.ok(
        "configureAgent",
        json!({"prices": {"input": 1, "output": 1}}),
    );
    assert_eq!(turn(&alice), Ok(()));
    let prices = (
        "AGENT_DEFAULTS",
        json!({"prices": {"input": 1, "output": 1}}),
    );
    let alice = deployed(json!({"limits": limits}), &[prices]);
    assert_eq!(problems(&alice), [""; 0]);
    assert_eq!(turn(&alice), Ok(()));
}
