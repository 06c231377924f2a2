//! The tools of the memory are the same wherever they are listed.

use std::collections::BTreeSet;

use serde_json::json;

use crate::context::tools::TOOLS;
use crate::tests::api::examples::furnished;

#[test]
fn every_tool_that_is_named_is_defined_and_run() {
    let alice = furnished();
    alice.ok("configureAgent", json!({"sessionSearch": true}));
    let listed = alice.ok("getTools", json!({"sessionId": "s"}));
    let defined: BTreeSet<&str> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(defined, TOOLS.iter().map(|tool| tool.name).collect());
    for name in TOOLS.iter().map(|tool| tool.name) {
        let body = json!({"sessionId": "s", "name": name, "arguments": {}});
        let outcome = alice.ok("callTool", body);
        // It runs, and asks for what it was not given.
        let output = outcome["output"].as_str().unwrap();
        assert_eq!(outcome["isError"], true, "{name}");
        assert!(!output.contains("no such tool"), "{name}: {output}");
    }
}
