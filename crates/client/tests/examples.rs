//! The example of each operation in the API's document is what its struct reads and writes.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_macros,
    reason = "a test may panic"
)]

use serde::de::DeserializeOwned;
use serde_json::Value;
use session_agent_client::*;

fn holds<O: Operation + DeserializeOwned>(api: &Value) {
    let path = format!("/agents/session-agent/{{agent}}/rpc/{}", O::NAME);
    let body = &api["paths"][&path]["post"]["requestBody"]["content"]["application/json"];
    let example = &body["example"];
    assert!(example.is_object(), "{path}");
    let read: O = serde_json::from_value(example.clone()).unwrap();
    assert_eq!(&serde_json::to_value(&read).unwrap(), example, "{path}");
}

macro_rules! each {
    ($($operation:ident)*) => {
        const EACH: &[fn(&Value)] = &[$(holds::<$operation>,)*];
    };
}

include!(concat!(env!("OUT_DIR"), "/each.rs"));

#[test]
fn every_example_round_trips() {
    let api = std::fs::read("openapi.json").unwrap();
    let api: Value = serde_json::from_slice(&api).unwrap();
    assert!(EACH.len() > 60, "{}", EACH.len());
    for check in EACH {
        check(&api);
    }
}
