//! Block sources with placeholders: one deployed definition results in a separate backend for each
//! agent.

use serde_json::{Value, json};

use super::agents::Cluster;

fn deploy(cluster: &Cluster, blocks: &Value) {
    let defaults = json!({"blocks": blocks}).to_string();
    let mut settings = cluster.script.settings.borrow_mut();
    settings.insert("AGENT_DEFAULTS".to_owned(), defaults);
}

fn users() -> Value {
    json!([{"label": "profile", "kind": "writable", "source": {"agent": "user:{2}"}},
           {"label": "facts", "kind": "searchable", "source": {"agent": "user:{2}"}},
           {"label": "guides", "kind": "loadable", "source": {"agent": "user:{2}"}}])
}

#[test]
fn agents_of_a_user_share_the_users_blocks() {
    let cluster = Cluster::of(&[
        "coder:42",
        "writer:42:draft",
        "user:42",
        "coder:7",
        "user:7",
    ]);
    deploy(&cluster, &users());
    cluster.ok(
        "coder:42",
        "setBlock",
        json!({"label": "profile", "content": "Likes tea."}),
    );
    cluster.ok(
        "coder:7",
        "setBlock",
        json!({"label": "profile", "content": "Likes rum."}),
    );
    cluster.ok(
        "user:42",
        "setEntry",
        json!({"label": "facts", "key": "home", "content": "Oslo"}),
    );
    cluster.ok(
        "writer:42:draft",
        "putSkill",
        json!({"label": "guides", "key": "g", "content": "x"}),
    );
    for agent in ["coder:42", "writer:42:draft", "user:42"] {
        let block = cluster.ok(agent, "getBlock", json!({"label": "profile"}));
        assert_eq!(block["content"], "Likes tea.", "{agent}");
        assert_eq!(block["source"], json!({"agent": "user:{2}"}));
        let found = cluster.ok(
            agent,
            "searchContext",
            json!({"label": "facts", "query": "oslo"}),
        );
        assert_eq!(found["results"][0]["key"], "home", "{agent}");
        let skills = cluster.ok(agent, "listSkills", json!({"label": "guides"}));
        assert_eq!(skills["skills"][0]["key"], "g", "{agent}");
    }
    let block = cluster.ok("user:7", "getBlock", json!({"label": "profile"}));
    assert_eq!(block["content"], "Likes rum.");
}

#[test]
fn a_source_that_resolves_to_this_agent_is_its_own_block() {
    let cluster = Cluster::of(&["user:42", "coder:42"]);
    deploy(
        &cluster,
        &json!([{"label": "about you", "kind": "writable",
                 "source": {"agent": "user:{2}", "label": "profile"}}]),
    );
    let text = json!({"label": "about you", "content": "Likes tea."});
    cluster.ok("coder:42", "setBlock", text);
    let block = |agent: &str, label: &str| cluster.ok(agent, "getBlock", json!({"label": label}));
    assert_eq!(block("user:42", "about you")["content"], "Likes tea.");
    assert_eq!(block("user:42", "profile")["content"], "Likes tea.");
    let text = json!({"label": "about you", "content": "Likes rum."});
    cluster.calls.borrow_mut().clear();
    cluster.ok("user:42", "setBlock", text);
    assert!(cluster.calls.borrow().is_empty());
    assert_eq!(block("coder:42", "about you")["content"], "Likes rum.");
    assert_eq!(block("user:42", "profile")["content"], "Likes rum.");
    let purged = json!({"label": "about you", "purge": true});
    cluster.ok("user:42", "removeBlock", purged);
    assert_eq!(block("user:42", "profile")["content"], "Likes rum.");
}

const HOSTILE: &[&str] = &[
    "coder",
    "coder:",
    "coder::42",
    "coder:..",
    "coder:.",
    "coder:../user:42",
    "coder:42/../7",
    "coder:{name}",
    "coder:{2}",
    "coder:{1}",
    "/",
    "",
];

#[test]
fn a_hostile_name_reaches_no_other_agents_memory() {
    let cluster = Cluster::of(&[HOSTILE, &["user:42", "user:7"]].concat());
    deploy(&cluster, &users());
    for name in HOSTILE {
        for label in ["profile", "facts", "guides"] {
            let block = cluster.ok(name, "getBlock", json!({"label": label}));
            let why = block["unavailable"].as_str().unwrap();
            assert!(why.contains("this agent's name"), "{name}: {why}");
        }
        for (operation, body) in [
            ("setBlock", json!({"label": "profile", "content": "x"})),
            (
                "setEntry",
                json!({"label": "facts", "key": "a", "content": "x"}),
            ),
            ("deleteEntry", json!({"label": "facts", "key": "a"})),
            ("listEntries", json!({"label": "facts"})),
            ("searchContext", json!({"label": "facts", "query": "x"})),
            (
                "putSkill",
                json!({"label": "guides", "key": "a", "content": "x"}),
            ),
            ("deleteSkill", json!({"label": "guides", "key": "a"})),
            ("listSkills", json!({"label": "guides"})),
            ("getBlockVersions", json!({"label": "profile"})),
            ("revertBlock", json!({"label": "profile", "version": 1})),
        ] {
            let error = cluster.call(name, operation, body).unwrap_err();
            assert_eq!(
                error.code.name(),
                "invalid_request",
                "{operation} of {name}"
            );
            assert_eq!(error.details()["field"], "source");
        }
        // The prompt is still rendered, and the model gets the reason why its tool failed.
        let prompt = cluster.ok(name, "renderPrompt", json!({}));
        assert!(prompt["prompt"].as_str().unwrap().contains("unavailable"));
        let arguments = json!({"label": "profile", "content": "x"});
        let tool = json!({"name": "set_context", "arguments": arguments});
        assert_eq!(cluster.ok(name, "callTool", tool)["isError"], true);
    }
    assert!(cluster.calls.borrow().is_empty());
}

#[test]
fn a_hostile_name_reaches_no_other_object_in_the_bucket() {
    let cluster = Cluster::of(&[HOSTILE, &["coder:4", "coder:42"]].concat());
    cluster
        .script
        .bindings
        .borrow_mut()
        .push("SKILLS_BUCKET".to_owned());
    *cluster.script.bucket.borrow_mut() = Some(Default::default());
    deploy(
        &cluster,
        &json!([
            {"label": "note", "kind": "writable", "source": {"r2": "notes/{2}.md"}},
            {"label": "guides", "kind": "loadable", "source": {"r2Prefix": "guides/{2}/"}}
        ]),
    );
    for (agent, text) in [("coder:4", "four"), ("coder:42", "forty-two")] {
        cluster.ok(agent, "setBlock", json!({"label": "note", "content": text}));
        let skill = json!({"label": "guides", "key": text, "content": text});
        cluster.ok(agent, "putSkill", skill);
    }
    let skills = cluster.ok("coder:4", "listSkills", json!({"label": "guides"}));
    assert_eq!(skills["skills"].as_array().unwrap().len(), 1);
    assert_eq!(
        cluster.ok("coder:4", "getBlock", json!({"label": "note"}))["content"],
        "four"
    );
    for name in HOSTILE {
        for label in ["note", "guides"] {
            let block = cluster.ok(name, "getBlock", json!({"label": label}));
            assert!(block["unavailable"].is_string(), "{name}");
        }
        let text = json!({"label": "note", "content": "x"});
        assert!(cluster.call(name, "setBlock", text).is_err());
    }
    let bucket = cluster.script.bucket.borrow();
    let keys: Vec<&String> = bucket.as_ref().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "guides/4/four",
            "guides/42/forty-two",
            "notes/4.md",
            "notes/42.md"
        ]
    );
}

#[test]
fn the_model_writes_remotely_only_through_a_template() {
    let cluster = Cluster::of(&["coder:42"]);
    cluster
        .script
        .bindings
        .borrow_mut()
        .push("SKILLS_BUCKET".to_owned());
    for (source, kind, writes) in [
        (json!({"agent": "user:{2}"}), "writable", true),
        (json!({"agent": "of {name}"}), "writable", true),
        (json!({"agent": "user:42"}), "writable", false),
        (json!({"agent": "coder:42"}), "writable", true),
        (json!({"agent": "coder:{2}"}), "writable", true),
        (json!({"r2": "notes/{2}.md"}), "writable", false),
        (json!({"r2Prefix": "notes/{2}/"}), "loadable", false),
        (json!({"agent": "user:{2}"}), "readonly", false),
    ] {
        deploy(
            &cluster,
            &json!([{"label": "b", "kind": kind, "source": source}]),
        );
        let tools = cluster.ok("coder:42", "getTools", json!({}));
        let tools = tools["tools"].as_array().unwrap().iter();
        let has_tool = tools.clone().any(|tool| tool["name"] == "set_context");
        assert_eq!(has_tool, writes, "{source} {kind}");
    }
}

#[test]
fn an_unresolvable_source_is_refused_unless_it_is_a_template() {
    let cluster = Cluster::of(&["coder"]);
    cluster.ok("coder", "createSession", json!({"id": "s"}));
    let define = |source: Value, session: Value| {
        let block =
            json!({"label": "b", "kind": "writable", "source": source, "sessionId": session});
        cluster.call("coder", "defineBlock", block)
    };
    let error = define(json!({"agent": "coder"}), json!("s")).unwrap_err();
    assert_eq!(error.details()["field"], "source");
    let block = define(json!({"agent": "user:{2}"}), Value::Null).unwrap();
    assert_eq!(
        block["unavailable"],
        "there is no part 2 of this agent's name"
    );
    assert_eq!(
        define(json!({"agent": "coder"}), Value::Null).unwrap()["unavailable"],
        Value::Null
    );
}
