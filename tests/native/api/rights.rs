//! Rights granted by `mintToken` and by a class's `authorize`, which have the same fields. An
//! omitted field grants more than a present one, so what is accepted is compared with what was
//! written, field by field. A token's holder can't choose the trace.

use serde_json::{Map, Value, json};

use crate::Alice;
use access::{Caller, TokenScope};
use api::operations::tokens::MintToken;
use api::tracing::find_parent;
use base::json;
use base::testing::{Dice, FixedHost};
use base::trace::Trace;
use base::trace::sampler::Sampler;

fn minted(alice: &Alice, body: &Value) -> Result<TokenScope, String> {
    let input: MintToken = json::parse(body.to_string().as_bytes()).map_err(field_of)?;
    input.scope(&alice.agent(&alice.db)).map_err(field_of)
}

fn granted(alice: &Alice, body: &Value) -> Result<TokenScope, String> {
    let input: MintToken = json::parse(body.to_string().as_bytes()).map_err(field_of)?;
    input.grant(&alice.agent(&alice.db)).map_err(field_of)
}

fn field_of(error: base::error::Error) -> String {
    assert_eq!(error.code.name(), "invalid_request", "{}", error.message);
    error.details()["field"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn an_invalid_right_is_refused_by_name() {
    let alice = Alice::with_session();
    let full = json!({"sessionId": "s", "preset": "chat", "operations": ["search"], "holder": "h",
        "limits": {"turnsPerMinute": 5, "tokensPerDay": 5}, "expiresIn": 60,
        "allow": {"agentMemory": true, "models": ["demo"], "tools": ["t"]}});
    assert!(minted(&alice, &full).is_ok() && granted(&alice, &full).is_ok());
    let wrong = [
        Value::Null,
        json!(true),
        json!(0),
        json!(""),
        json!(" "),
        json!([]),
        json!([null]),
        json!({}),
        json!([["search"]]),
        json!("x".repeat(201)),
        json!({"sessionId": null}),
    ];
    let mut tried = 0;
    let mut accepted = Vec::new();
    for field in [
        "sessionId",
        "preset",
        "operations",
        "holder",
        "limits",
        "limits/turnsPerMinute",
        "limits/tokensPerDay",
        "limits/costPerDay",
        "expiresIn",
        "allow",
        "allow/agentMemory",
        "allow/models",
        "allow/tools",
    ] {
        for value in &wrong {
            let mut body = full.clone();
            let mut place = &mut body;
            for name in field.split('/') {
                place = &mut place[name];
            }
            *place = value.clone();
            for outcome in [minted(&alice, &body), granted(&alice, &body)] {
                match outcome {
                    Ok(_) => accepted.push((field, value.to_string())),
                    Err(named) => {
                        let named = named.replace('.', "/");
                        // A body with an object in place of a name is invalid.
                        let is_named = named.starts_with(field) || named == "body";
                        assert!(is_named, "{field} {value}: {named}");
                    }
                }
                tried += 1;
            }
        }
    }
    accepted.dedup();
    // Custom names, and empty lists and objects.
    let fine = [
        ("sessionId", "\" \""),
        ("operations", "[]"),
        ("holder", "\" \""),
        ("allow", "{}"),
        ("allow/agentMemory", "true"),
        ("allow/models", "[]"),
        ("allow/tools", "[]"),
    ];
    assert_eq!(
        accepted,
        fine.map(|(field, value)| (field, value.to_owned()))
    );
    println!("{tried} rights");
}

/// Random combinations of fields: an accepted grant has every restriction that the body contains.
#[test]
fn every_accepted_grant_keeps_all_its_restrictions() {
    let alice = Alice::with_session();
    let choices: [(&str, &[Value]); 6] = [
        (
            "sessionId",
            &[json!("s"), json!("S"), json!("s "), Value::Null, json!("")],
        ),
        (
            "preset",
            &[json!("read"), json!("chat"), json!("all"), Value::Null],
        ),
        (
            "operations",
            &[
                json!([]),
                json!(["search"]),
                json!(["nothing"]),
                Value::Null,
            ],
        ),
        (
            "limits",
            &[
                json!({"turnsPerMinute": 1}),
                json!({"turnsPerMinute": 1, "tokensPerDay": null}),
                json!({}),
                Value::Null,
            ],
        ),
        ("holder", &[json!("user-42"), Value::Null, json!("")]),
        ("agent", &[json!("alice"), json!("bob"), Value::Null]),
    ];
    let mut dice = Dice(33);
    let (mut tried, mut accepted) = (0, 0);
    for _ in 0..20_000 {
        let mut body = Map::new();
        body.insert("expiresIn".to_owned(), json!(60));
        for (field, values) in &choices {
            let chance = if *field == "agent" { 20 } else { 2 };
            if dice.roll(chance) == 0 {
                let value = values[dice.roll(values.len())].clone();
                body.insert((*field).to_owned(), value);
            }
        }
        let has = |field| body.contains_key(field);
        let input = Value::from(body.clone());
        for (is_grant, outcome) in [
            (false, minted(&alice, &input)),
            (true, granted(&alice, &input)),
        ] {
            tried += 1;
            let Ok(scope) = outcome else {
                continue;
            };
            accepted += 1;
            assert!(!body.values().any(Value::is_null), "{input}");
            let session = scope.session_id.map(|id| id.as_str().to_owned());
            assert_eq!(
                session.as_deref(),
                body.get("sessionId").and_then(Value::as_str),
                "{input}"
            );
            assert_eq!(
                scope.operations.is_some(),
                has("preset") || has("operations"),
                "{input}"
            );
            assert!(!has("agent"), "{input}");
            match &scope.limits {
                Some(limits) => assert!(limits.most.turns_per_minute.is_some(), "{input}"),
                None => assert!(!has("limits"), "{input}"),
            }
            // Each request has its own grant, so a grant has no count of its own.
            assert!(!is_grant || has("limits") == has("holder"), "{input}");
            if let Some(limits) = scope.limits.filter(|_| has("holder")) {
                assert_eq!(limits.holder, "holder user-42");
            }
        }
    }
    assert!(accepted > 1_000, "{accepted}");
    println!("{tried} rights, {accepted} accepted");
}

#[test]
fn limits_of_a_grant_need_a_holder() {
    let alice = Alice::with_session();
    let limited = json!({"preset": "read", "limits": {"turnsPerMinute": 1}, "expiresIn": 60});
    assert_eq!(granted(&alice, &limited).unwrap_err(), "holder");
    // A token has its own count.
    assert!(minted(&alice, &limited).is_ok());
    let mut with_holder = limited;
    with_holder["holder"] = json!("user-42");
    let of = |scope: TokenScope| scope.limits.unwrap().holder;
    let holders = [
        granted(&alice, &with_holder),
        granted(&alice, &with_holder),
        minted(&alice, &with_holder),
    ];
    assert_eq!(
        holders.map(|scope| of(scope.unwrap())),
        ["holder user-42"; 3]
    );
}

/// `traceparent` and `tracestate`, with every kind of caller and every sampler.
#[test]
fn a_trace_sent_with_a_token_is_neither_recorded_nor_joined() {
    let samplers = [
        None,
        Some(Sampler::default()),
        Sampler::parse("parentbased_traceidratio", Some("0")),
        Sampler::parse("parentbased_traceidratio", Some("0.5")),
        Sampler::parse("parentbased_always_off", None),
        Sampler::parse("always_on", None),
        Sampler::parse("always_off", None),
        Sampler::parse("traceidratio", Some("0")),
    ];
    let token = |session: Option<&str>, operations: Option<&str>| {
        let mut body = json!({"expiresIn": 60});
        for (field, value) in [("sessionId", session), ("operations", operations)] {
            if let Some(value) = value {
                body[field] = match field {
                    "operations" => json!([value]),
                    _ => json!(value),
                };
            }
        }
        Caller::Scoped(minted(&Alice::default(), &body).unwrap())
    };
    let callers = [
        token(None, None),
        token(Some("s"), None),
        token(Some("s"), Some("chat")),
        token(None, Some("runTurn")),
        Caller::Owner,
    ];
    let mut tried = 0;
    for seed in 0..50 {
        let host = FixedHost::of(seed);
        for flags in ["00", "01", "03", "ff"] {
            let named =
                format!("00-4bf92f3577b34da6a3ce929d0e0e47{seed:02x}-00f067aa0ba902b7-{flags}");
            for caller in &callers {
                for sampler in samplers {
                    let parent = find_parent(caller, Some(&named), Some("vendor=1"));
                    let trace = Trace::of_request(parent, sampler, &host);
                    let case = format!("{caller:?} {named} {sampler:?}");
                    tried += 1;
                    if *caller == Caller::Owner {
                        let trace = trace.unwrap();
                        assert_eq!(trace.traceparent()[3..35], named[3..35], "{case}");
                        assert_eq!(trace.state.as_deref(), Some("vendor=1"));
                        continue;
                    }
                    // Without a span collector there is no trace.
                    assert_eq!(trace.is_some(), sampler.is_some(), "{case}");
                    let Some((trace, sampler)) = trace.zip(sampler) else {
                        continue;
                    };
                    assert_ne!(trace.traceparent()[3..35], named[3..35], "{case}");
                    assert_eq!((trace.parent, &trace.state), (None, &None), "{case}");
                    assert_eq!(trace.is_sampled, sampler.samples(trace.id, None), "{case}");
                }
            }
        }
    }
    println!("{tried} requests");
}
