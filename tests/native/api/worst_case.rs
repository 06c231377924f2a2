//! The cost of each operation's worst request, in an agent that the holder of a chat token has
//! filled for hours: no request may block an agent for a second.
//!
//! The agent is the one of the example table, filled: every example runs in it, and for each
//! expensive operation the largest requests that it accepts. Only this thread's time is counted, so
//! other tests don't affect it. SQLite is as fast here as in workerd; Rust code takes two to three
//! times as long in WebAssembly. So a request may take [`MAX_MS`] here. The quick form tries one in
//! three of the reads.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use super::examples::{READS, populate, populated};
use crate::shared::long::is_tried;
use crate::shared::searches::append_many;
use crate::{Alice, Dice};
use access::{Caller, TokenScope};
use api::answers;
use api::transfer::begin_export;
use base::ids::Id;
use base::testing::Sqlite;

/// The maximum milliseconds of a request, equal to a second in workerd.
const MAX_MS: f64 = 400.0;

/// Operations that read a whole agent page by page and wait for a bucket between two pages: others
/// are answered in between. A page costs as much as that of an export.
const BY_PAGES: &[&str] = &["backup", "restoreBackup"];

/// Requests that may take longer, each with its limit and reason.
const LONGER: &[(&str, f64, &str)] = &[
    (
        "learn",
        3_000.0,
        "one pass searches memory up to 24 times for what a conversation touches",
    ),
    (
        "search",
        1_500.0,
        "eight queries read up to 60 texts each, of which some are 4 MiB long",
    ),
    (
        "searchContext",
        1_500.0,
        "eight queries read up to 60 entries each, and a filter looks at 10,000 together",
    ),
    (
        "deleteSession",
        1_500.0,
        "it deletes the session's 40,000 events and their index in one transaction",
    ),
    (
        "clearMessages",
        1_500.0,
        "it deletes the session's 40,000 events and their index in one transaction",
    ),
];

/// The amount of data in the agent.
const MESSAGES: usize = 40_000;
const LARGE_MESSAGES: usize = 5;
const BRANCHES: usize = 3_000;
const OVERLAYS: usize = 200;
const SESSIONS: usize = 2_000;
const ENTRIES: usize = 10_000;
const DOCUMENTS: usize = 1_000;
const VERSIONS: usize = 50;

/// This thread's CPU time.
fn cpu_ms(since: Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = stat.and_then(|stat| stat.split(' ').next()?.parse::<f64>().ok());
    match nanoseconds {
        Some(nanoseconds) => nanoseconds / 1e6,
        None => since.elapsed().as_secs_f64() * 1e3,
    }
}

/// Measures the milliseconds of a function.
fn timed<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let started = Instant::now();
    let before = cpu_ms(started);
    let outcome = run();
    (cpu_ms(started) - before, outcome)
}

/// A short message: one word per letter from `a` on, and words shared by all messages.
fn short_message(dice: &mut Dice) -> String {
    let letters = ('a'..='m').map(|first| {
        let second = char::from(b'a' + dice.roll(26) as u8);
        format!("{first}{second}{}", dice.roll(100))
    });
    let words: Vec<String> = letters.collect();
    format!("{} always common words", words.join(" "))
}

fn text_message(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

fn fill(alice: &Alice) {
    let mut dice = Dice(5);
    populate(alice);
    // The branches come first, because later appends continue from the newest event.
    alice.ok("createSession", json!({"id": "tree"}));
    let root = json!({"sessionId": "tree", "message": text_message("root", "always")});
    alice.ok("appendMessage", root);
    for number in 0..BRANCHES {
        let message = text_message(&format!("branch{number}"), &short_message(&mut dice));
        let body = json!({"sessionId": "tree", "parentId": "root", "message": message});
        alice.ok("appendMessage", body);
    }
    alice.ok("createSession", json!({"id": "big"}));
    for number in 0..LARGE_MESSAGES {
        let text = match number % 2 {
            0 => "ab cd ".repeat(690_000),
            _ => (0..380_000)
                .map(|n| format!("{} ab{n} ", n % 977))
                .collect::<String>(),
        };
        let text = text.get(..4_190_000).unwrap_or(&text);
        let message = text_message(&format!("big{number}"), text);
        alice.ok(
            "appendMessage",
            json!({"sessionId": "big", "message": message}),
        );
    }
    alice.ok("createSession", json!({"id": "folded"}));
    let texts: Vec<String> = (0..2 * OVERLAYS + 50)
        .map(|_| short_message(&mut dice))
        .collect();
    append_many(alice, "folded", &texts);
    let body = json!({"sessionId": "folded", "limit": 1000});
    let folded = crate::ids(&alice.ok("loadEvents", body));
    for pair in folded.chunks(2).take(OVERLAYS) {
        let body = json!({"sessionId": "folded", "summary": "x".repeat(2_000), "fromId": pair[0], "toId": pair[1]});
        alice.ok("addCompaction", body);
    }
    alice.ok("createSession", json!({"id": "tools"}));
    for turn in 0..100 {
        let calls: Vec<Value> = (0..64)
            .map(|n| json!({"id": format!("c{turn}-{n}"), "name": "t", "arguments": {"a": n}}))
            .collect();
        let results = (0..64).map(|n| json!({"action": "tool_result", "toolCallId": format!("c{turn}-{n}"), "toolName": "t", "content": "result ".repeat(100)}));
        let call = json!({"action": "tool_call_request", "toolCalls": calls});
        let events: Vec<Value> = std::iter::once(call).chain(results).collect();
        alice.ok(
            "appendEvents",
            json!({"sessionId": "tools", "events": events}),
        );
    }
    for number in 0..SESSIONS {
        let marks = json!({"city": format!("city {}", number % 7), "n": number});
        let body = json!({"id": format!("many{number}"), "name": short_message(&mut dice), "metadata": marks});
        alice.ok("createSession", body);
    }
    for number in 0..ENTRIES - 1 {
        let body = json!({
            "label": "kb", "key": format!("key{number}"), "content": short_message(&mut dice),
            "metadata": {"city": format!("city {}", number % 7), "n": number}, "tags": ["a", "b"]
        });
        alice.ok("setEntry", body);
    }
    for number in 0..DOCUMENTS - 1 {
        let body = json!({"label": "skills", "key": format!("key{number}"), "content": short_message(&mut dice), "description": "always"});
        alice.ok("putSkill", body);
    }
    for number in 0..VERSIONS {
        let content = format!("{number} {}", "version ".repeat(12_000));
        let body = json!({"sessionId": "s", "label": "memory", "content": content});
        alice.ok("setBlock", body);
    }
    let texts: Vec<String> = (0..MESSAGES).map(|_| short_message(&mut dice)).collect();
    append_many(alice, "s", &texts);
    alice.search("anything");
    while conversation::index::build::build_batch(&alice.db).unwrap() {}
}

/// The most expensive search queries.
fn queries() -> Vec<Value> {
    let letters = || 'a'..='m';
    let every: Vec<String> = letters()
        .chain('n'..='z')
        .map(|a| format!("{a}*"))
        .collect();
    let pairs: Vec<String> = letters()
        .flat_map(|a| ('a'..='z').map(move |b| format!("{a}{b}*")))
        .take(400)
        .collect();
    let words: Vec<String> = letters()
        .flat_map(|a| (0..4).map(move |n| format!("{a}a{n}")))
        .collect();
    let common = "always common words";
    let phrases = "\"always common words\" \"common words always\" ".repeat(20);
    let repeated = format!("\"{}\" \"{}\"", "ab cd ".repeat(15), "cd ab ".repeat(15));
    let question = format!("When was {common} {}?", words.join(" "));
    let single_queries = [
        every.join(" "),
        pairs.join(" "),
        words.join(" "),
        common.to_owned(),
        format!("{common} {}", pairs.join(" ")),
        phrases,
        repeated,
        "ab* cd*".to_owned(),
        "ab cd".to_owned(),
        "al* co* wo* ab* cd* re* ve* 1*".to_owned(),
        question,
    ];
    let several: Vec<String> = (0..8)
        .map(|n| format!("{common} {}", pairs[n * 30..].join(" ")))
        .collect();
    let queries = single_queries.iter().map(|query| json!({"query": query}));
    queries
        .chain([
            json!({"queries": several}),
            json!({"queries": &single_queries[..8]}),
        ])
        .collect()
}

/// Filters of the maximum size.
fn filters() -> Vec<Value> {
    let cities: Vec<String> = (0..32).map(|n| format!("city {n}")).collect();
    let many: serde_json::Map<String, Value> = (0..16)
        .map(|n| {
            (
                format!("field{n}"),
                json!({"in": (0..16).collect::<Vec<i32>>()}),
            )
        })
        .collect();
    vec![
        json!({}),
        json!({"where": {"metadata": {"city": {"in": cities}, "n": {"gt": 1}}}}),
        json!({"where": {"metadata": many, "tags": {"none": ["x", "y"]}}}),
    ]
}

fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

/// Requests that only read.
fn reads() -> Vec<(&'static str, Value)> {
    let mut reads = Vec::new();
    for query in queries() {
        for filter in filters() {
            for session in [json!(null), json!("s"), json!("big")] {
                let place = json!({"sessionId": session, "limit": 100});
                reads.push(("search", with(with(query.clone(), &filter), &place)));
            }
            let place = json!({"label": "kb", "limit": 100});
            reads.push(("searchContext", with(with(query.clone(), &filter), &place)));
        }
        let more = json!({"roles": ["tool"], "until": 1_000_000_000_000_i64});
        reads.push(("search", with(query.clone(), &more)));
        reads.push((
            "searchContext",
            with(query, &json!({"label": "kb", "asOf": 1_000_001})),
        ));
    }
    for filter in filters() {
        reads.push(("listSessions", with(json!({"limit": 500}), &filter)));
        reads.push((
            "listEntries",
            with(json!({"label": "kb", "limit": 200}), &filter),
        ));
        reads.push((
            "listSkills",
            with(json!({"label": "skills", "limit": 1000}), &filter),
        ));
    }
    for query in ["always common words", &"x".repeat(200), "zzz", "İİİ"] {
        reads.push(("findMentions", json!({"query": query, "limit": 100})));
    }
    let ids: Vec<String> = (0..100).map(|n| format!("branch{n}")).collect();
    reads.push(("findMentions", json!({"ids": ids, "limit": 100})));
    for session in ["s", "tree", "big", "folded", "tools"] {
        let of = |more: Value| with(json!({"sessionId": session}), &more);
        reads.push(("getSession", of(json!({}))));
        reads.push(("getHistory", of(json!({"limit": 1000}))));
        reads.push(("getHistory", of(json!({"limit": 1000, "forModel": true}))));
        reads.push(("loadEvents", of(json!({"limit": 1000}))));
        reads.push(("loadEvents", of(json!({"limit": 1000, "tail": true}))));
        reads.push((
            "loadEvents",
            of(json!({"limit": 1000, "since": 9_000_000_000_000_i64})),
        ));
        reads.push((
            "loadEvents",
            of(json!({"limit": 1000, "actions": ["compaction"]})),
        ));
        reads.push(("getChanges", of(json!({"limit": 1000}))));
        reads.push(("getPathLength", of(json!({}))));
        reads.push(("getLatestLeaf", of(json!({}))));
        reads.push(("estimateTokens", of(json!({}))));
        reads.push(("getCompactions", of(json!({}))));
        reads.push(("compact", of(json!({"dryRun": true}))));
        for format in ["workers-ai", "openai", "anthropic"] {
            reads.push((
                "buildWorkingContext",
                of(json!({"limit": 1000, "format": format, "memory": true})),
            ));
        }
    }
    reads.push((
        "getBranches",
        json!({"sessionId": "tree", "messageId": "root"}),
    ));
    reads.push((
        "getBlockVersions",
        json!({"sessionId": "s", "label": "memory"}),
    ));
    reads.push(("renderPrompt", json!({"sessionId": "s"})));
    reads.push(("getTools", json!({"sessionId": "s"})));
    reads.push((
        "applyRetention",
        json!({"dryRun": true, "retention": {"eventsDays": 1}}),
    ));
    reads
}

/// Requests that write. Each gets a copy of the agent.
fn writes() -> Vec<(&'static str, Value)> {
    let long = text_message("new", &"always common words ".repeat(200_000));
    let events: Vec<Value> = (0..1_000)
        .map(|n| json!({"id": format!("new{n}"), "action": "user_message", "content": "always common words"}))
        .collect();
    let branches: Vec<String> = (0..100).map(|n| format!("branch{n}")).collect();
    let places: Vec<Value> = (0..100)
        .map(|n| json!({"kind": "event", "sessionId": "tree", "id": format!("branch{n}")}))
        .collect();
    let mut writes = vec![
        ("appendEvents", json!({"sessionId": "s", "events": events})),
        (
            "appendEvents",
            json!({"sessionId": "tree", "parentId": "root", "events": events}),
        ),
        ("appendMessage", json!({"sessionId": "s", "message": long})),
        (
            "updateMessage",
            json!({"sessionId": "big", "message": with(long.clone(), &json!({"id": "big0"}))}),
        ),
        (
            "deleteEvents",
            json!({"sessionId": "tree", "eventIds": ["root"]}),
        ),
        (
            "deleteMessages",
            json!({"sessionId": "tree", "messageIds": branches}),
        ),
        ("erase", json!({"places": places})),
        ("setLeaf", json!({"sessionId": "tree", "id": "branch7"})),
        (
            "setEntry",
            json!({"label": "kb", "key": "key7", "content": "ab cd ".repeat(10_900)}),
        ),
        (
            "deleteEntry",
            json!({"label": "kb", "key": "key7", "purge": true}),
        ),
        (
            "putSkill",
            json!({"label": "skills", "key": "key7", "content": "ab cd ".repeat(43_000)}),
        ),
        (
            "setBlock",
            json!({"sessionId": "s", "label": "memory", "content": "ab cd ".repeat(170_000)}),
        ),
        ("removeBlock", json!({"label": "kb"})),
        ("removeBlock", json!({"label": "kb", "purge": true})),
        ("removeBlock", json!({"label": "skills", "purge": true})),
        ("consolidate", json!({"label": "kb"})),
        (
            "runTurn",
            json!({"sessionId": "tools", "message": text_message("asked", "always?")}),
        ),
        ("refreshPrompts", json!({})),
    ];
    for session in ["s", "tree", "big", "folded", "tools"] {
        for operation in ["forkSession", "clearMessages", "deleteSession", "compact"] {
            writes.push((operation, json!({"sessionId": session})));
        }
        let message = text_message("asked", "always common words?");
        writes.push(("runTurn", json!({"sessionId": session, "message": message})));
    }
    writes
}

/// The slowest request of each operation, and its description.
#[derive(Default)]
struct Costs(BTreeMap<String, (f64, String)>);

impl Costs {
    fn measure<T>(&mut self, operation: &str, description: &str, run: impl FnOnce() -> T) {
        let (cost, _) = timed(run);
        self.note(operation, description, cost);
    }

    fn run(&mut self, alice: &Alice, operation: &str, body: &Value) {
        let reply = body.to_string();
        let (cost, outcome) = timed(|| alice.call(operation, body.clone()));
        // In tests, the answer is checked against openapi.json and parsed.
        let of_tests = match &outcome {
            Ok(answer) => {
                let answer = answer.to_string();
                let checked = timed(|| {
                    answers::assert_json_matches_schema(operation, &answer);
                    serde_json::from_str::<Value>(&answer).is_ok()
                });
                checked.0
            }
            Err(error) => {
                let is_expected = error.code.name() != "storage_failed";
                assert!(is_expected, "{operation} {reply:.200}: {error:?}");
                0.0
            }
        };
        self.note(operation, &reply, cost - of_tests);
    }

    fn note(&mut self, operation: &str, description: &str, cost: f64) {
        let worst = self.0.entry(operation.to_owned()).or_default();
        if cost > worst.0 || worst.1.is_empty() {
            *worst = (cost, description.chars().take(100).collect());
        }
    }
}

fn copy_of(file: &[u8], caller: Caller) -> Alice {
    let alice = Alice {
        db: Sqlite::from_file(file),
        caller,
        ..Alice::default()
    };
    alice.host.stir(77);
    Alice {
        outbound: populated().outbound,
        ..alice
    }
}

#[test]
fn no_request_blocks_an_agent_for_a_second() {
    let mut filled = Alice::default();
    fill(&filled);
    let file = filled.db.bytes();
    let mut costs = Costs::default();
    let mut examples = super::examples::examples();
    examples.retain(|example| !BY_PAGES.contains(&example.operation));
    for (number, (operation, body)) in reads().into_iter().enumerate() {
        if is_tried(number, 3) {
            costs.run(&filled, operation, &body);
        }
    }
    for example in examples
        .iter()
        .filter(|example| READS.contains(&example.operation))
    {
        costs.run(&filled, example.operation, &example.body);
    }
    // A caller limited to one session sends the same requests.
    let scope = TokenScope {
        session_id: Some(Id::parse("s".to_owned()).unwrap()),
        operations: None,
        expires_at: i64::MAX,
        ..TokenScope::default()
    };
    filled.caller = Caller::Scoped(scope);
    for query in queries() {
        costs.run(&filled, "search", &query);
        let answer = query.to_string();
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": query}});
        costs.measure("mcp tools/call", &answer, || {
            super::mcp::send(&filled, &call)
        });
    }
    filled.caller = Caller::Owner;
    // A file is sent page by page, and other requests run between two pages.
    for session in ["s", "big", "folded", "tools"] {
        let mut export = begin_export(&filled.agent(&filled.db), session.to_owned()).unwrap();
        while {
            let (cost, page) = timed(|| export.next_page(&filled.db).unwrap());
            costs.note("a page of an export", session, cost);
            page.is_some()
        } {}
    }
    for example in examples
        .iter()
        .filter(|example| !READS.contains(&example.operation))
    {
        let alice = copy_of(&file, Caller::Owner);
        costs.run(&alice, example.operation, &example.body);
    }
    for (operation, body) in writes() {
        let alice = copy_of(&file, Caller::Owner);
        costs.run(&alice, operation, &body);
    }
    let mut worst: Vec<_> = costs.0.iter().collect();
    worst.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0));
    println!("bytes of the agent: {}", file.len());
    for (operation, (ms, answer)) in &worst {
        println!("{ms:8.1} ms  {operation}  {answer}");
    }
    let most = |operation: &str| {
        let longer = LONGER.iter().find(|(named, ..)| *named == operation);
        longer.map_or(MAX_MS, |(_, most, _)| *most)
    };
    let over: Vec<_> = worst
        .iter()
        .filter(|(operation, (ms, _))| *ms > most(operation))
        .collect();
    assert!(over.is_empty(), "{over:#?}");
}
