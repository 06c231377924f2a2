//! The tools of the memory are the same in every list of tools.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::context::tools::TOOLS;
use crate::tests::api::examples::furnished;

#[test]
fn each_tool_of_the_table_is_listed_documented_and_run() {
    let alice = furnished();
    alice.ok("configureAgent", json!({"sessionSearch": true}));
    let listed = alice.ok("getTools", json!({"sessionId": "s"}));
    let listed = listed["tools"].as_array().unwrap();
    let name_of = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    let names: BTreeSet<String> = listed.iter().map(name_of).collect();
    let table = TOOLS.iter().map(|tool| tool.name.to_owned());
    assert_eq!(
        names,
        table.collect(),
        "left: the tools of `furnished`; right: context/tools/mod.rs"
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
        // The tool is found, and asks for the arguments that it needs.
        let output = outcome["output"].as_str().unwrap();
        let required = tool["parameters"]["required"].as_array();
        let needs_some = required.is_some_and(|names| !names.is_empty());
        assert_eq!(outcome["isError"], needs_some, "{name}: {output}");
        assert!(!output.contains("no such tool"), "{name}: {output}");
    }
}
