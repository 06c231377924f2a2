//! The reads whose answers are stored beside each fixture.

use serde_json::{Map, Value, json};

use crate::{Alice, ids};

/// Fields that may differ between builds: estimates, and how results are shown.
const MAY_DIFFER: &[&str] = &["tokens", "tokensEstimate", "score", "snippet", "total"];

/// Every read of every session and of the agent, and its answer.
pub fn read_all(alice: &Alice) -> Vec<Value> {
    let listed = alice.ok("listSessions", json!({}));
    let mut reads = vec![
        ("listSessions", json!({})),
        ("getConfig", json!({})),
        ("listTools", json!({})),
        ("configureCompaction", json!({})),
        ("search", json!({"query": "zeppelin", "limit": 100})),
        ("search", json!({"query": "first", "limit": 100})),
    ];
    let mut scopes = vec![Value::Null];
    scopes.extend(ids(&listed["sessions"]).into_iter().map(Value::from));
    for session in &scopes[1..] {
        let events = alice.ok("loadEvents", json!({"sessionId": session, "limit": 1000}));
        for operation in [
            "getSession",
            "getLatestLeaf",
            "getPathLength",
            "getCompactions",
        ] {
            reads.push((operation, json!({"sessionId": session})));
        }
        for operation in ["loadEvents", "getHistory", "getChanges"] {
            reads.push((operation, json!({"sessionId": session, "limit": 1000})));
        }
        // The pages above have every message, so every fifth event is enough.
        for id in ids(&events).iter().step_by(5) {
            for operation in ["getMessage", "getBranches"] {
                reads.push((operation, json!({"sessionId": session, "messageId": id})));
            }
        }
    }
    // The agent, and the one session that has its own memory. For the other sessions these reads
    // return those of the agent.
    for session in [Value::Null, json!("mixed")] {
        for operation in [
            "getBlocks",
            "renderPrompt",
            "freezePrompt",
            "getReminder",
            "getTools",
        ] {
            reads.push((operation, json!({"sessionId": session})));
        }
        for (operation, label) in [
            ("getBlockVersions", "memory"),
            ("listEntries", "kb"),
            ("listSkills", "skills"),
        ] {
            reads.push((operation, json!({"sessionId": session, "label": label})));
        }
        reads.push((
            "searchContext",
            json!({"sessionId": session, "label": "kb", "query": "drizzle"}),
        ));
    }
    reads.push(("listSkills", json!({"label": "runbooks"})));
    let answered = reads.into_iter().map(|(operation, body)| {
        let answer = answer_of(alice, operation, &body);
        json!({"operation": operation, "body": body, "answer": answer})
    });
    answered.collect()
}

/// The answer, without what another build may order or phrase differently.
pub fn answer_of(alice: &Alice, operation: &str, body: &Value) -> Value {
    // A search builds the index, and `freezePrompt` freezes. No read here depends on
    // that, so all reads share one object.
    let answer = alice.ok(operation, body.clone());
    let sorted = |list: &Value, field: &str| -> Value {
        let mut values: Vec<String> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item[field].as_str().unwrap().to_owned())
            .collect();
        values.sort();
        json!(values)
    };
    match operation {
        "search" => sorted(&answer["results"], "id"),
        "searchContext" => sorted(&answer["results"], "key"),
        "getTools" => sorted(&answer["tools"], "name"),
        _ => answer,
    }
}

/// Whether this build's answer contains everything in the older build's answer. It may have new fields.
pub fn agrees(then: &Value, now: &Value, at: &str) -> Result<(), String> {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => fields_agree(then, now, at),
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => then
            .iter()
            .zip(now)
            .enumerate()
            .try_for_each(|(index, (then, now))| agrees(then, now, &format!("{at}[{index}]"))),
        _ if then == now => Ok(()),
        _ => Err(format!("{at} was {then} and is {now}")),
    }
}

fn fields_agree(
    then: &Map<String, Value>,
    now: &Map<String, Value>,
    at: &str,
) -> Result<(), String> {
    for (name, value) in then {
        if MAY_DIFFER.contains(&name.as_str()) {
            continue;
        }
        let at = format!("{at}.{name}");
        match now.get(name) {
            Some(now) => agrees(value, now, &at)?,
            None => return Err(format!("{at} is gone; it was {value}")),
        }
    }
    Ok(())
}
