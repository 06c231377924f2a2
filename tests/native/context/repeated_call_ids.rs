//! Calls and results with repeated ids. Many models restart their numbering in each turn, so
//! `call_0` names another call each time.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls, define, text_answer, user};
use crate::shared::long::games;
use base::testing::Dice;
use base::testing::ScriptedAnswer;

const FORMATS: [&str; 3] = ["openai", "workers-ai", "anthropic"];
const CUT_OFF: &str = "The tool did not answer";

/// A call or a result in a request.
#[derive(Clone, Debug)]
enum CallOrResult {
    /// The id, and the number in the arguments.
    Call(String, String),
    /// The id, and the tool's result.
    Result(String, String),
    Other,
}

/// The calls and results in a context of any shape.
fn read(messages: &Value) -> Vec<CallOrResult> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let mut list = Vec::new();
    for message in messages.as_array().unwrap() {
        let field = |names: [&str; 2]| names.iter().find_map(|name| message.get(*name));
        if let Some(id) = field(["toolCallId", "tool_call_id"]) {
            list.push(CallOrResult::Result(text(id), text(&message["content"])));
            continue;
        }
        let blocks = message["content"].as_array().into_iter().flatten();
        let mut spoken = Vec::new();
        for block in blocks {
            spoken.push(match block["type"].as_str() {
                Some("tool_use") => CallOrResult::Call(text(&block["id"]), text(&block["input"])),
                Some("tool_result") => {
                    CallOrResult::Result(text(&block["tool_use_id"]), text(&block["content"]))
                }
                _ => CallOrResult::Other,
            });
        }
        let calls = field(["toolCalls", "tool_calls"]).and_then(Value::as_array);
        spoken.extend(calls.into_iter().flatten().map(|call| {
            let arguments = call
                .get("arguments")
                .unwrap_or(&call["function"]["arguments"]);
            CallOrResult::Call(text(&call["id"]), text(arguments))
        }));
        if spoken.is_empty() {
            list.push(CallOrResult::Other);
        } else {
            list.extend(spoken);
        }
    }
    list
}

/// Each call with its result, in the order of the calls. Panics where a provider would
/// refuse: an id that repeats, a call without a result right after it, a result without a
/// call.
fn pairs(messages: &Value, case: &str) -> Vec<(String, String)> {
    let mut ids = HashSet::new();
    let mut open: Vec<(String, usize)> = Vec::new();
    let mut found: Vec<(String, Option<String>)> = Vec::new();
    let mut has_result = false;
    for spoken in read(messages) {
        match spoken {
            CallOrResult::Call(id, arguments) => {
                assert!(
                    open.is_empty() || !has_result,
                    "{case}: an open call: {messages}"
                );
                assert!(ids.insert(id.clone()), "{case}: {id} repeats: {messages}");
                open.push((id, found.len()));
                found.push((arguments, None));
                has_result = false;
            }
            CallOrResult::Result(id, content) => {
                let index = open.iter().position(|(open, _)| *open == id);
                let index = index.unwrap_or_else(|| panic!("{case}: no call {id}: {messages}"));
                let (_, place) = open.remove(index);
                found[place].1 = Some(content);
                has_result = true;
            }
            CallOrResult::Other => assert!(open.is_empty(), "{case}: an open call: {messages}"),
        }
    }
    assert!(open.is_empty(), "{case}: an open call: {messages}");
    let found = found.into_iter();
    found
        .map(|(call, result)| (call, result.unwrap()))
        .collect()
}

/// The calls with their results in every shape of a context.
fn contexts(alice: &Alice, input: &Value, case: &str) -> Vec<Vec<(String, String)>> {
    let mut input = input.clone();
    input["sessionId"] = json!("s");
    let mut shapes = Vec::new();
    for format in FORMATS {
        input["format"] = json!(format);
        let case = format!("{case}, {format} {input}");
        match alice.call("buildWorkingContext", input.clone()) {
            Ok(context) => {
                shapes.push(pairs(&context["modelInput"]["messages"], &case));
                shapes.push(pairs(&context["messages"], &case));
            }
            // The budget is too small for the newest messages.
            Err(error) => assert_eq!(error.details()["field"], "maxTokens", "{case}: {error:?}"),
        }
    }
    shapes
}

fn tool_turn(alice: &Alice, number: usize) {
    alice.ok("appendEvents", json!({"sessionId": "s", "events": [
        {"action": "user_message", "content": format!("Question {number}?")},
        {"action": "tool_call_request", "toolCalls": [{"id": "call_0", "name": "weather", "arguments": {"n": number}}]},
        {"action": "tool_result", "toolCallId": "call_0", "toolName": "weather", "content": format!("result {number}")},
        {"action": "agent_message", "content": format!("Answer {number}.")}
    ]}));
}

#[test]
fn repeated_call_ids_keep_their_results() {
    let alice = Alice::with_session();
    let mut started_ids: Vec<String> = Vec::new();
    for number in 1..=3 {
        tool_turn(&alice, number);
        let shapes = contexts(&alice, &json!({}), "three turns");
        for shape in &shapes {
            let results: Vec<&str> = shape.iter().map(|(_, result)| result.as_str()).collect();
            let expected = ["result 1", "result 2", "result 3"];
            assert_eq!(results, expected[..number]);
        }
        // The messages before the newest turn are those that were sent before.
        let input = json!({"sessionId": "s", "format": "openai"});
        let context = alice.ok("buildWorkingContext", input);
        let sent = context["modelInput"]["messages"].as_array().unwrap();
        let sent: Vec<String> = sent.iter().map(Value::to_string).collect();
        assert!(sent.starts_with(&started_ids), "{sent:?}");
        started_ids = sent;
    }
    assert!(started_ids[1].contains(r#""call_0""#) && started_ids[5].contains(r#""call_0_2""#));
}

#[test]
fn a_model_that_reuses_call_0_works_with_any_summary() {
    let alice = Alice::with_model();
    define(&alice, "weather", false);
    let turn = |number: usize| {
        alice
            .outbound
            .answer(calls(&[("call_0", "weather", json!({"n": number}))]));
        alice
            .outbound
            .answer(Ok(ScriptedAnswer::text(200, &format!("result {number}"))));
        alice
            .outbound
            .answer(text_answer(&format!("Answer {number}.")));
        alice.chat_text(&format!("question {number}"));
        let made = alice.outbound.calls.borrow();
        let request: Value = serde_json::from_str(&made.last().unwrap().body).unwrap();
        pairs(&request["messages"], &format!("turn {number}"))
    };
    assert_eq!(turn(1).len(), 1);
    assert_eq!(turn(2).len(), 2);
    let shown = alice.shown();
    let overlay = alice.ok(
        "addCompaction",
        json!({"sessionId": "s", "summary": "Twice.",
        "fromId": shown[0]["id"], "toId": shown[3]["id"]}),
    );
    assert_eq!(turn(3).len(), 1);
    alice.ok(
        "deleteCompaction",
        json!({"sessionId": "s", "compactionId": overlay["id"]}),
    );
    let sent = turn(4);
    let expected: Vec<String> = (1..=4).map(|number| format!("result {number}")).collect();
    let results: Vec<&String> = sent.iter().map(|(_, result)| result).collect();
    assert_eq!(results, expected.iter().collect::<Vec<_>>());
    for shape in contexts(&alice, &json!({}), "four turns") {
        assert_eq!(
            shape,
            sent.iter()
                .map(|(call, result)| { (shape_of(&shape, call), result.clone()) })
                .collect::<Vec<_>>()
        );
    }
    // Each message's parts have their own results.
    for message in alice
        .shown()
        .iter()
        .filter(|message| message["role"] == "assistant")
    {
        let part = &message["parts"][1];
        assert_eq!(
            part["output"],
            format!("result {}", part["input"]["n"]),
            "{message}"
        );
    }
}

/// A call's arguments as this shape writes them.
fn shape_of(shape: &[(String, String)], call: &str) -> String {
    let same = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let found = shape.iter().find(|(other, _)| same(other) == same(call));
    found.unwrap().0.clone()
}

/// A stored message and a later one share an id, and the budget cuts between them.
#[test]
fn stored_messages_with_equal_call_ids_keep_their_results() {
    let alice = Alice::with_session();
    let message = |id: &str, n: usize| {
        json!({"sessionId": "s", "message": {"id": id, "role": "assistant", "parts": [
            {"type": "text", "text": format!("Let me see. {}", "word ".repeat(60))},
            {"type": "tool-weather", "toolCallId": "tc7", "state": "output-available", "input": {"n": n}, "output": format!("result {n} {}", "rain ".repeat(80))}
        ]}})
    };
    alice.append_texts(&["one"]);
    alice.ok("appendMessage", message("m1", 1));
    alice.ok("updateMessage", message("m1", 2));
    for number in 0..20 {
        alice.append_texts(&[&format!("{number} {}", "more ".repeat(50))]);
    }
    alice.ok("appendMessage", message("m2", 3));
    let all = [json!({"limit": 33, "maxTokens": 2834})];
    let limits = (1..30).map(|limit| json!({"limit": limit}));
    let budgets = (1..40).map(|tenth| json!({"maxTokens": 300 + tenth * 100}));
    for input in all.into_iter().chain(limits).chain(budgets) {
        for shape in contexts(&alice, &input, "tc7") {
            for (call, result) in shape {
                let n = serde_json::from_str::<Value>(&call).unwrap()["n"].to_string();
                assert!(
                    result.starts_with(&format!("result {n}")),
                    "{input}: {call} {result}"
                );
            }
        }
    }
}

#[test]
fn a_pending_call_is_not_summarized_when_its_id_is_reused() {
    let alice = Alice::with_model();
    let tools =
        json!([{"name": "where", "description": "Where am I?", "parameters": {"type": "object"}}]);
    alice
        .outbound
        .answer(calls(&[("call_0", "where", json!({}))]));
    alice.chat(json!({"id": "s", "message": user("where"), "tools": tools}));
    (1..=6).for_each(|number| tool_turn(&alice, number));
    let settings =
        json!({"sessionId": "s", "protectHead": 1, "tailTokenBudget": 0, "minTailMessages": 1});
    alice.ok("configureCompaction", settings);
    alice.outbound.answer(text_answer("Much was asked."));
    let made = alice.ok("compact", json!({"sessionId": "s"}));
    assert_eq!(made["compaction"], Value::Null, "{made}");
    assert_eq!(alice.outbound.answers.borrow().len(), 1, "{made}");
}

#[test]
fn a_summary_stops_before_a_call_with_a_late_result() {
    let alice = Alice::with_model();
    alice.ok("createSession", json!({"id": "s"}));
    tool_turn(&alice, 1);
    alice.ok("appendEvents", json!({"sessionId": "s", "events": [
        {"action": "user_message", "id": "asked", "content": "And now?"},
        {"action": "tool_call_request", "id": "called", "toolCalls": [{"id": "call_0", "name": "weather", "arguments": {"n": 2}}]},
        {"action": "user_message", "content": "Hurry."},
        {"action": "tool_result", "toolCallId": "call_0", "toolName": "weather", "content": "result 2"}
    ]}));
    let settings =
        json!({"sessionId": "s", "protectHead": 1, "tailTokenBudget": 0, "minTailMessages": 1});
    alice.ok("configureCompaction", settings);
    alice
        .outbound
        .answer(text_answer("It was asked for the weather."));
    let made = alice.ok("compact", json!({"sessionId": "s"}));
    assert_eq!(made["compaction"]["toId"], "asked", "{made}");
    for shape in contexts(&alice, &json!({}), "a late result") {
        let results: Vec<&str> = shape.iter().map(|(_, result)| result.as_str()).collect();
        assert_eq!(results, ["result 2"]);
    }
}

/// The contents of the log, by event.
#[derive(Clone)]
enum Item {
    /// Ids and numbers.
    Calls(Vec<(String, usize)>),
    Result(String, usize),
    Other,
}

/// The number of each call's result, by the call's number.
type Expected = BTreeMap<usize, Option<usize>>;

/// Random conversations. Each step is recorded by name, so a failure shows its path.
struct Game {
    alice: Alice,
    dice: Dice,
    next: usize,
    /// The contents of each event, by its id. A stored message contains several items.
    stored: BTreeMap<String, Vec<Item>>,
    overlays: Vec<String>,
    steps: Vec<String>,
}

impl Game {
    fn id(&mut self) -> String {
        ["call_0", "call_1", "a.b", "a_2e_b"][self.dice.roll(4)].to_owned()
    }

    fn number(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn numbered_calls(&mut self) -> Vec<(String, usize)> {
        let count = 1 + self.dice.roll(3);
        (0..count).map(|_| (self.id(), self.number())).collect()
    }

    /// An event of one kind, and its contents.
    fn event(&mut self) -> (Value, Item) {
        match self.dice.roll(8) {
            0 => (
                json!({"action": "user_message", "content": "Question?"}),
                Item::Other,
            ),
            1 => (
                json!({"action": "agent_message", "content": "Answer."}),
                Item::Other,
            ),
            2..=4 => {
                let numbered = self.numbered_calls();
                let calls: Vec<Value> = numbered
                    .iter()
                    .map(|(id, n)| json!({"id": id, "name": "t", "arguments": {"n": n}}))
                    .collect();
                (
                    json!({"action": "tool_call_request", "content": "", "toolCalls": calls}),
                    Item::Calls(numbered),
                )
            }
            _ => {
                let (id, n) = (self.id(), self.number());
                let event = json!({"action": "tool_result", "toolCallId": id, "toolName": "t", "content": format!("result {n}")});
                (event, Item::Result(id, n))
            }
        }
    }

    /// A message of the AI SDK with calls, of which some have outputs.
    fn message(&mut self, id: &str) -> (Value, Vec<Item>) {
        let mut parts = vec![json!({"type": "step-start"})];
        let mut items = Vec::new();
        for (call, n) in self.numbered_calls() {
            let mut part = json!({"type": "tool-t", "toolCallId": call, "state": "input-available", "input": {"n": n}});
            items.push(Item::Calls(vec![(call.clone(), n)]));
            if self.dice.roll(4) > 0 {
                let n = self.number();
                part["state"] = json!("output-available");
                part["output"] = json!(format!("result {n}"));
                items.push(Item::Result(call, n));
            }
            parts.push(part);
            parts.push(json!({"type": "step-start"}));
        }
        (
            json!({"id": id, "role": "assistant", "parts": parts}),
            items,
        )
    }

    fn some_event(&mut self) -> Option<String> {
        let events = self.alice.events();
        let place = self.dice.roll(events.len().max(1));
        Some(events.get(place)?["id"].as_str().unwrap().to_owned())
    }

    fn step(&mut self) {
        match self.dice.roll(14) {
            0..=7 => {
                let count = 1 + self.dice.roll(3);
                let mut events = Vec::new();
                for _ in 0..count {
                    let (mut event, item) = self.event();
                    let id = format!("e{}", self.number());
                    event["id"] = json!(id);
                    self.stored.insert(id, vec![item]);
                    events.push(event);
                }
                self.ok("appendEvents", json!({"events": events}));
            }
            8 => {
                // After any event, also inside a run.
                let parent = self.some_event();
                let (mut event, item) = self.event();
                let id = format!("e{}", self.number());
                event["id"] = json!(id);
                self.stored.insert(id, vec![item]);
                self.ok(
                    "appendEvents",
                    json!({"events": [event], "parentId": parent}),
                );
            }
            9 => {
                let id = format!("m{}", self.number());
                let (message, items) = self.message(&id);
                self.stored.insert(id, items);
                self.ok("appendMessage", json!({"message": message}));
            }
            10 => {
                if let Some(id) = self.some_event() {
                    let (message, items) = self.message(&id);
                    // An event inside a run has no message of its own.
                    if !self
                        .ok("updateMessage", json!({"message": message}))
                        .is_null()
                    {
                        self.stored.insert(id, items);
                    }
                }
            }
            11 => {
                let path = self.path();
                if !path.is_empty() {
                    let to = self.dice.roll(path.len());
                    let from = self.dice.roll(to + 1);
                    let overlay = self.ok("addCompaction", json!({"summary": "A summary.", "fromId": path[from].0, "toId": path[to].0}));
                    self.overlays
                        .push(overlay["id"].as_str().unwrap().to_owned());
                }
            }
            12 if !self.overlays.is_empty() => {
                let index = self.dice.roll(self.overlays.len());
                let id = self.overlays.remove(index);
                self.ok("deleteCompaction", json!({"compactionId": id}));
            }
            _ => {
                if let Some(id) = self.some_event().filter(|_| self.dice.roll(2) == 0) {
                    self.ok("setLeaf", json!({"id": id}));
                }
            }
        }
    }

    fn ok(&mut self, operation: &str, mut body: Value) -> Value {
        body["sessionId"] = json!("s");
        self.steps.push(format!("{operation} {body}"));
        self.alice
            .call(operation, body)
            .unwrap_or_else(|error| panic!("{error:?}: {}", self.steps.join("\n")))
    }

    /// The events of the path to the leaf, oldest first: their ids and their `seq`.
    fn path(&self) -> Vec<(String, i64)> {
        let events = self.alice.events();
        let find = |id: &Value| events.iter().find(|event| event["id"] == *id);
        let context = self
            .alice
            .ok("buildWorkingContext", json!({"sessionId": "s", "limit": 1}));
        let mut path = Vec::new();
        let mut next = find(&context["leafId"]);
        while let Some(event) = next {
            path.push((
                event["id"].as_str().unwrap().to_owned(),
                event["seq"].as_i64().unwrap(),
            ));
            next = find(&event["parentId"]);
        }
        path.reverse();
        path
    }

    /// The stored items on the path that are not summarized, oldest first.
    fn items(&self) -> Vec<Item> {
        let listed = self.alice.ok("getCompactions", json!({"sessionId": "s"}));
        let path = self.path();
        let place = |id: &Value| path.iter().position(|(known, _)| known == id);
        let ranges: Vec<(usize, usize)> = listed["compactions"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|overlay| Some((place(&overlay["fromId"])?, place(&overlay["toId"])?)))
            .collect();
        let mut items = Vec::new();
        let mut end = path.len();
        // Newest first: at the end of a range, its summary replaces it.
        while let Some(at) = end.checked_sub(1) {
            let from = ranges
                .iter()
                .filter(|(_, to)| *to == at)
                .map(|(from, _)| *from)
                .min();
            match from {
                Some(from) => {
                    items.push(Item::Other);
                    end = from;
                }
                None => {
                    let stored = self.stored.get(&path[at].0).cloned().unwrap_or_default();
                    items.extend(stored.into_iter().rev());
                    end = at;
                }
            }
        }
        items.reverse();
        items
    }

    /// The number of each call's result, by the call's number.
    fn expected(&self) -> Expected {
        let mut expected = BTreeMap::new();
        let mut open: Vec<(String, usize, usize)> = Vec::new();
        for (at, item) in self.items().into_iter().enumerate() {
            match item {
                Item::Calls(calls) => {
                    for (id, n) in calls {
                        expected.insert(n, None);
                        open.push((id, n, at));
                    }
                }
                Item::Result(id, n) => {
                    // The first such call of the newest message that contains one.
                    let newest = open
                        .iter()
                        .filter(|(open, ..)| *open == id)
                        .map(|(.., at)| *at)
                        .max();
                    let index = newest.and_then(|newest| {
                        open.iter()
                            .position(|(open, _, at)| *open == id && *at == newest)
                    });
                    if let Some(index) = index {
                        expected.insert(open.remove(index).1, Some(n));
                    }
                }
                Item::Other => {}
            }
        }
        expected
    }

    /// Compares every shape of a context with the stored items. Returns the number of
    /// shapes.
    fn compare(&self, expected: &Expected, input: &Value, case: &str) -> usize {
        let case = format!("{case} {input}:\n{}", self.steps.join("\n"));
        let shapes = contexts(&self.alice, input, &case);
        self.check(expected, &shapes, &case);
        if input.get("maxTokens").is_none() && input["limit"] == 1000 {
            for shape in &shapes {
                assert_eq!(shape.len(), expected.len(), "{case}");
            }
        }
        shapes.len()
    }

    /// Every call that is shown is on the path, with its own result.
    fn check(&self, expected: &Expected, shapes: &[Vec<(String, String)>], case: &str) {
        for (call, result) in shapes.iter().flatten() {
            let arguments: Value = serde_json::from_str(call).unwrap();
            let n = arguments["n"].as_u64().unwrap() as usize;
            match expected.get(&n) {
                Some(Some(of)) => assert_eq!(*result, format!("result {of}"), "{case}\ncall {n}"),
                Some(None) => assert!(result.contains(CUT_OFF), "{case}\ncall {n}: {result}"),
                None => panic!("{case}\ncall {n} is not on the path"),
            }
        }
    }

    /// A turn of a model that always uses `call_0`. Returns the number of its requests.
    fn chat(&mut self, mut expected: Expected, case: &str) -> usize {
        let tokens = 600 + self.dice.roll(20) * 50;
        self.alice
            .ok("configureAgent", json!({"maxContextTokens": tokens}));
        let first = self.alice.outbound.calls.borrow().len();
        for _ in 0..2 {
            let n = self.number();
            expected.insert(n, Some(n));
            let outbound = &self.alice.outbound;
            outbound.answer(calls(&[("call_0", "weather", json!({"n": n}))]));
            outbound.answer(Ok(ScriptedAnswer::text(200, &format!("result {n}"))));
        }
        self.alice.outbound.answer(text_answer("Answer."));
        self.alice.chat_text(&format!("question {}", self.next));
        let case = format!(
            "{case}, a turn of {tokens} tokens:\n{}",
            self.steps.join("\n")
        );
        let made = self.alice.outbound.calls.borrow();
        let requests = made.iter().skip(first).filter_map(|call| {
            let body: Value = serde_json::from_str(&call.body).unwrap();
            body.get("messages").map(|messages| pairs(messages, &case))
        });
        let requests: Vec<_> = requests.collect();
        self.check(&expected, &requests, &case);
        requests.len()
    }
}

#[test]
fn random_windows_keep_every_call_with_its_result() {
    let mut cells = 0;
    let games = games(25, 80);
    for seed in 1..=games {
        let mut game = Game {
            alice: Alice::with_model(),
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            next: 0,
            stored: BTreeMap::new(),
            overlays: Vec::new(),
            steps: Vec::new(),
        };
        game.alice.ok("createSession", json!({"id": "s"}));
        define(&game.alice, "weather", false);
        for _ in 0..20 {
            game.step();
        }
        let case = format!("seed {seed}");
        let expected = game.expected();
        cells += game.compare(&expected, &json!({"limit": 1000}), &case);
        let length = game.path().len();
        for limit in 1..=length {
            cells += game.compare(&expected, &json!({"limit": limit}), &case);
        }
        for tokens in (120..600).step_by(40) {
            cells += game.compare(
                &expected,
                &json!({"limit": 1000, "maxTokens": tokens}),
                &case,
            );
        }
        // A fork contains the path and the same pairs.
        if length > 0 {
            let fork = game.alice.ok("forkSession", json!({"sessionId": "s"}));
            for format in FORMATS {
                let contexts_of = |session: &Value| {
                    let input = json!({"sessionId": session, "format": format, "limit": 1000});
                    game.alice.ok("buildWorkingContext", input)["modelInput"].clone()
                };
                assert_eq!(contexts_of(&fork["id"]), contexts_of(&json!("s")), "{case}");
                cells += 1;
            }
        }
        cells += game.chat(expected, &case);
    }
    println!("{cells} contexts");
    assert!(cells > 125 * games as usize, "{cells}");
}
