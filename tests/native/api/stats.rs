//! `getStats`: the numbers about an agent's size.

use serde_json::{Value, json};

use crate::Alice;
use access::{Caller, TokenScope};
use base::ids::Id;

fn table<'a>(stats: &'a Value, name: &str) -> &'a Value {
    let tables = stats["tables"].as_array().unwrap();
    tables
        .iter()
        .find(|table| table["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn tables_and_running_work_are_reported() {
    let alice = Alice::with_session();
    alice.append_texts(&["one", "two", "three"]);
    let stats = alice.ok("getStats", json!({}));
    let events = json!({"name": "cf_agents_events", "rows": 3, "isAtLeast": false});
    assert_eq!(*table(&stats, "cf_agents_events"), events);
    assert_eq!(table(&stats, "cf_agents_sessions")["rows"], 1);
    assert_eq!(stats["eventsAtMost"], 3);
    assert!(stats["databaseBytes"].as_i64().unwrap() > 4096);
    assert_eq!(stats["turns"]["running"], 0);
    assert_eq!(stats["searchIndex"], "none");
    assert_eq!(stats["memory"]["wasmBytes"], 16 << 20);
    alice.ok("search", json!({"query": "two"}));
    assert_eq!(alice.ok("getStats", json!({}))["searchIndex"], "complete");
    // The list has every table of the schema and no view.
    let names = stats["tables"].as_array().unwrap();
    assert!(
        names.len() > 15
            && names
                .iter()
                .all(|table| table["name"] != "cf_agents_search_words")
    );
}

#[test]
fn a_long_table_is_counted_up_to_a_thousand() {
    let alice = Alice::with_session();
    for _ in 0..3 {
        alice.append_texts(&["x"; 500]);
    }
    let stats = alice.ok("getStats", json!({}));
    let events = json!({"name": "cf_agents_events", "rows": 1000, "isAtLeast": true});
    assert_eq!(*table(&stats, "cf_agents_events"), events);
    assert_eq!(stats["eventsAtMost"], 1500);
}

#[test]
fn a_session_token_gets_no_hint() {
    let mut alice = Alice::with_session();
    let mut scope = TokenScope {
        expires_at: i64::MAX,
        ..TokenScope::default()
    };
    alice.caller = Caller::Scoped(scope.clone());
    alice.ok("getStats", json!({}));
    scope.session_id = Some(Id::parse("s".to_owned()).unwrap());
    alice.caller = Caller::Scoped(scope);
    assert_eq!(alice.refused("getStats", json!({})), "forbidden");
}
