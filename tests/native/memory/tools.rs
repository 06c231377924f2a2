//! The memory tools are the same in every list of tools.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::shared::examples::populated;
use context::tools::TOOLS;

#[test]
fn each_listed_tool_is_documented_and_runs() {
    let alice = populated();
    alice.ok("configureAgent", json!({"sessionSearch": true}));
    let listed = alice.ok("getTools", json!({"sessionId": "s"}));
    let listed = listed["tools"].as_array().unwrap();
    let name_of = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    let names: BTreeSet<String> = listed.iter().map(name_of).collect();
    let table = TOOLS.iter().map(|tool| tool.name.to_owned());
    assert_eq!(
        names,
        table.collect(),
        "left: the tools of `populated`; right: context/tools/mod.rs"
    );
    let guides = ["docs/memory.md", "docs/search.md"].map(|file| {
        std::fs::read_to_string(format!(
            "{}/{file}",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../..")
        ))
        .unwrap()
    });
    for tool in listed {
        let name = name_of(tool);
        let is_documented = guides
            .iter()
            .any(|guide| guide.contains(&format!("`{name}`")));
        assert!(is_documented, "docs/memory.md doesn't name `{name}`");
        let body = json!({"sessionId": "s", "name": name, "arguments": {}});
        let outcome = alice.ok("callTool", body);
        // The tool is found, and its error names the missing arguments.
        let output = outcome["output"].as_str().unwrap();
        let required = tool["parameters"]["required"].as_array();
        let needs_some = required.is_some_and(|names| !names.is_empty());
        assert_eq!(outcome["isError"], needs_some, "{name}: {output}");
        assert!(!output.contains("no such tool"), "{name}: {output}");
    }
}

#[test]
fn a_tool_accepts_block_as_an_alias_of_label() {
    let alice = crate::Alice::default();
    alice.ok("createSession", json!({"id": "s"}));
    alice.ok(
        "defineBlock",
        json!({"label": "guides", "kind": "loadable"}),
    );
    let document = json!({"label": "guides", "key": "deploy", "content": "Test, then ship."});
    alice.ok("putSkill", document);
    let call = |name: &str, arguments: Value| {
        let body = json!({"sessionId": "s", "name": name, "arguments": arguments});
        let outcome = alice.ok("callTool", body);
        (
            outcome["isError"].as_bool().unwrap(),
            outcome["output"].as_str().unwrap().to_owned(),
        )
    };
    let named = json!({"block": "guides", "key": "deploy"});
    assert_eq!(
        call("load_context", named.clone()),
        (false, "Test, then ship.".to_owned())
    );
    assert_eq!(
        call("unload_context", named),
        (false, "Unloaded guides/deploy.".to_owned())
    );
    // A call with both uses the label, and one with neither gets an error that names it.
    let both = json!({"label": "guides", "block": "nothing", "key": "deploy"});
    assert!(!call("load_context", both).0);
    for arguments in [
        json!({"key": "deploy"}),
        json!({"block": 7, "key": "deploy"}),
        json!({"block": "nothing", "key": "deploy"}),
    ] {
        let (is_error, output) = call("load_context", arguments);
        assert!(is_error && output.contains("`label`"), "{output}");
    }
}

#[test]
fn a_call_reads_the_blocks_once() {
    let rows_with = |blocks: usize| {
        let alice = populated();
        for number in 0..blocks {
            let label = format!("more{number}");
            alice.ok("defineBlock", json!({"label": label, "kind": "writable"}));
        }
        alice.db.take_costs();
        let body = json!({"name": "set_context", "arguments": {}});
        assert_eq!(alice.ok("callTool", body)["isError"], true);
        alice.db.take_costs().0
    };
    assert_eq!(rows_with(9) - rows_with(2), 7);
}
