//! Tools that ask the user during a chat turn: the turn ends, the client answers, and the call is
//! repeated with the answers.

use serde_json::{Value, json};

use super::turns::{calls, define, text_answer, user};
use crate::Alice;
use base::outbound::CallFailure;
use base::testing::{ScriptedAnswer, wait_for};
use conversation::log::note::Note;

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn result(id: i64, result: &Value) -> Result<ScriptedAnswer, CallFailure> {
    ScriptedAnswer::json(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn form() -> Value {
    json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 8}}})
}

fn input_required(state: &str) -> Value {
    json!({"resultType": "input_required", "requestState": state, "inputRequests":
        {"who": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": form()}}}})
}

fn text(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

fn accept(name: &str) -> Value {
    json!({"responses": {"who": {"action": "accept", "content": {"name": name}}}})
}

/// The message as a client sends it after `addToolOutput`.
fn answered(message: &Value, call_id: &str, output: &Value) -> Value {
    let mut message = message.clone();
    for part in message["parts"].as_array_mut().unwrap() {
        if part["toolCallId"] == call_id {
            part["state"] = json!("output-available");
            part["output"] = output.clone();
        }
    }
    message
}

fn kinds(chunks: &[Value]) -> Vec<&str> {
    let kinds = chunks.iter().map(|chunk| chunk["type"].as_str().unwrap());
    let is_structural = |kind: &&str| !kind.starts_with("text-") && !kind.ends_with("-delta");
    kinds.filter(is_structural).collect()
}

impl Alice {
    /// An agent whose server `gh`, of the newest revision, has the tool `a`.
    fn with_asking_server(more: &Value) -> Self {
        let alice = Self::with_model();
        alice.outbound.scripts_discovery.set(true);
        let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
        alice.outbound.answer(result(1, &found));
        let tool = json!({"name": "a", "description": "Books.", "inputSchema": {"type": "object"}});
        alice.outbound.answer(result(2, &json!({"tools": [tool]})));
        let mut input = json!({"name": "gh", "mcp": "https://tools.example/mcp"});
        let fields = input.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        alice.ok("defineTool", input);
        alice
    }

    /// Runs a turn that ends with a question. Returns its chunks.
    fn ends_with_question(&self, state: &str) -> Vec<Value> {
        self.outbound
            .answer(calls(&[("c1", "gh_a", json!({"q": 1}))]));
        self.outbound.answer(result(1, &input_required(state)));
        self.chat_text("book")
    }

    fn answer_body(&self, call_id: &str, output: &Value) -> Value {
        let message = self.shown().pop().unwrap();
        json!({"id": "s", "messages": [user("book"), answered(&message, call_id, output)]})
    }

    fn sent_params(&self, back: usize) -> Value {
        let sent = self.outbound.calls.borrow();
        let body = &sent[sent.len() - back].body;
        serde_json::from_str::<Value>(body).unwrap()["params"].clone()
    }

    fn last_parts(&self) -> Value {
        self.shown().pop().unwrap()["parts"].clone()
    }

    fn notes(&self) -> Vec<Note> {
        let sql = "SELECT note FROM cf_agents_events WHERE note IS NOT NULL ORDER BY seq";
        let rows = base::columns::load_values::<String>(&self.db, sql, &[]).unwrap();
        rows.iter()
            .map(|note| Note::parse(Some(note)).unwrap())
            .collect()
    }
}

#[test]
fn a_tools_question_ends_the_turn_and_its_answer_continues_it() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    let chunks = alice.ends_with_question("its secret state");
    assert_eq!(
        kinds(&chunks),
        [
            "start",
            "start-step",
            "tool-input-start",
            "tool-input-available",
            "data-input-request",
            "finish-step",
            "finish"
        ]
    );
    assert_eq!(
        alice.sent_params(1)["_meta"][CAPABILITIES],
        json!({"elicitation": {"form": {}, "url": {}}})
    );
    let data = json!({"toolCallId": "c1", "tool": "gh_a", "server": "gh",
        "requests": {"who": {"message": "Who?", "requestedSchema": form()}}});
    let part = json!({"type": "data-input-request", "id": "c1", "data": data});
    assert_eq!(
        *chunks.iter().find(|chunk| chunk["id"] == "c1").unwrap(),
        part
    );
    assert_eq!(chunks.last().unwrap()["finishReason"], "tool-calls");
    let parts = alice.last_parts();
    assert_eq!(
        (&parts[1]["state"], &parts[2]),
        (&json!("input-available"), &part)
    );
    // The tool's state is not readable from outside.
    for shown in [
        alice
            .ok("getHistory", json!({"sessionId": "s"}))
            .to_string(),
        alice
            .ok("getChanges", json!({"sessionId": "s"}))
            .to_string(),
        alice
            .ok("loadEvents", json!({"sessionId": "s"}))
            .to_string(),
        alice.export("s").unwrap(),
        json!(chunks).to_string(),
    ] {
        assert!(!shown.contains("its secret state"), "{shown}");
    }

    alice.outbound.answer(result(1_001, &text("Booked.")));
    alice.outbound.answer(text_answer("It is booked."));
    let chunks = alice.chat(alice.answer_body("c1", &accept("Ann")));
    let params = alice.sent_params(2);
    assert_eq!(params["name"], "a");
    assert_eq!(params["arguments"], json!({"q": 1}));
    assert_eq!(params["inputResponses"], accept("Ann")["responses"]);
    assert_eq!(params["requestState"], "its secret state");
    assert_eq!(
        kinds(&chunks),
        [
            "start",
            "data-input-request",
            "tool-output-available",
            "start-step",
            "finish-step",
            "finish"
        ]
    );
    assert_eq!(chunks[1]["data"]["isClosed"], true);
    let parts = alice.last_parts();
    assert_eq!(
        (&parts[1]["state"], &parts[1]["output"]),
        (&json!("output-available"), &json!("Booked."))
    );
    assert_eq!(parts[2]["data"]["isClosed"], true);
    assert_eq!(parts[3]["text"], "It is booked.");
    // The model reads only the result, and the log contains neither the state nor the answers.
    let request = alice.outbound.calls.borrow().last().unwrap().body.clone();
    assert!(request.contains("Booked.") && !request.contains("Ann") && !request.contains("Who?"));
    let note = alice
        .notes()
        .into_iter()
        .find(|note| !note.questions.is_empty())
        .unwrap();
    assert_eq!(note.questions["c1"].open, None);
}

#[test]
fn an_invalid_answer_is_refused_and_the_question_stays_open() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    alice.ends_with_question("x");
    let before = (alice.events(), alice.outbound.calls.borrow().len());
    for (output, field) in [
        (json!("I am the output."), "responses"),
        (json!({"responses": {}}), "responses.who"),
        (accept("much too long"), "responses.who.content.name"),
    ] {
        let error = alice
            .begin(&alice.answer_body("c1", &output))
            .err()
            .unwrap();
        assert_eq!(error.details()["field"], field);
        assert_eq!(error.details()["toolCallId"], "c1");
        assert_eq!(alice.last_parts()[1]["state"], "input-available");
    }
    assert_eq!(
        (alice.events(), alice.outbound.calls.borrow().len()),
        before
    );
    assert!(!alice.has_turn_rows());
    // A client that can't show the form cancels.
    let mut body = alice.answer_body("c1", &Value::Null);
    body["messages"][1]["parts"][1]["state"] = json!("output-error");
    body["messages"][1]["parts"][1]["errorText"] = json!("no form");
    alice
        .outbound
        .answer(result(1_001, &text("Nothing booked.")));
    alice.outbound.answer(text_answer("As you like."));
    alice.chat(body);
    assert_eq!(
        alice.sent_params(2)["inputResponses"],
        json!({"who": {"action": "cancel"}})
    );
}

#[test]
fn an_approved_call_may_ask_a_few_times() {
    let alice = Alice::with_asking_server(&json!({}));
    alice.outbound.answer(calls(&[("c1", "gh_a", json!({}))]));
    alice.chat_text("book");
    let mut message = alice.shown().pop().unwrap();
    message["parts"][1]["state"] = json!("approval-responded");
    message["parts"][1]["approval"]["approved"] = json!(true);
    alice.outbound.answer(result(1, &input_required("0")));
    let chunks = alice.chat(json!({"id": "s", "messages": [user("book"), message]}));
    // The client regards the call as approved, and would repeat its request.
    assert_eq!(
        kinds(&chunks),
        [
            "start",
            "tool-input-available",
            "data-input-request",
            "finish"
        ]
    );
    assert_eq!(alice.last_parts()[1]["state"], "input-available");
    for round in 1..8 {
        alice.outbound.answer(result(
            round * 1_000 + 1,
            &input_required(&round.to_string()),
        ));
        let chunks = alice.chat(alice.answer_body("c1", &accept("Ann")));
        assert_eq!(
            kinds(&chunks),
            [
                "start",
                "tool-input-available",
                "data-input-request",
                "finish"
            ]
        );
        assert_eq!(
            alice.sent_params(1)["requestState"],
            (round - 1).to_string()
        );
        let parts = alice.last_parts();
        assert_eq!(
            (parts.as_array().unwrap().len(), &parts[1]["state"]),
            (3, &json!("input-available"))
        );
    }
    alice.outbound.answer(result(8_001, &input_required("8")));
    alice.outbound.answer(text_answer("It asks too much."));
    alice.chat(alice.answer_body("c1", &accept("Ann")));
    let parts = alice.last_parts();
    assert_eq!(parts[1]["state"], "output-error");
    assert!(
        parts[1]["errorText"]
            .as_str()
            .unwrap()
            .contains("more than 8 times")
    );
    assert_eq!(parts[1]["approval"]["approved"], true);
}

#[test]
fn a_question_survives_a_crash_at_any_point() {
    let mut alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    alice.ends_with_question("x");
    alice.crash();
    let work = alice
        .begin(&alice.answer_body("c1", &accept("Ann")))
        .unwrap()
        .work
        .unwrap();
    drop(work);
    alice.crash();
    alice.outbound.answer(result(1_001, &text("Booked.")));
    alice.outbound.answer(text_answer("Done."));
    alice.run_all();
    assert_eq!(alice.last_parts()[1]["output"], "Booked.");
    assert_eq!(
        alice.sent_params(2)["inputResponses"],
        accept("Ann")["responses"]
    );
    // The answer is accepted once.
    let calls = alice.outbound.calls.borrow().len();
    alice.outbound.answer(text_answer("Hm."));
    alice.chat(alice.answer_body("c1", &accept("Bob")));
    assert_eq!(alice.outbound.calls.borrow().len(), calls + 1);
    assert_eq!(alice.last_parts()[1]["output"], "Booked.");
}

#[test]
fn all_questions_of_a_message_are_answered_before_any_call_resumes() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    let both = [
        ("c1", "gh_a", json!({"q": 1})),
        ("c2", "gh_a", json!({"q": 2})),
    ];
    alice.outbound.answer(calls(&both));
    alice.outbound.answer(result(1, &input_required("one")));
    alice.outbound.answer(result(1, &input_required("two")));
    let chunks = alice.chat_text("book");
    let requests = chunks
        .iter()
        .filter(|chunk| chunk["type"] == "data-input-request");
    assert_eq!(requests.count(), 2);
    let sent = alice.outbound.calls.borrow().len();
    alice.chat(alice.answer_body("c1", &accept("Ann")));
    assert_eq!(
        alice.outbound.calls.borrow().len(),
        sent,
        "nothing was called"
    );
    let parts = alice.last_parts();
    assert_eq!(
        (&parts[3]["data"]["isClosed"], &parts[4]["data"]["isClosed"]),
        (&json!(true), &Value::Null)
    );
    alice.outbound.answer(result(1_001, &text("A.")));
    alice.outbound.answer(result(1_001, &text("B.")));
    alice.outbound.answer(text_answer("Both."));
    alice.chat(alice.answer_body("c2", &accept("Bob")));
    let sent = [4, 3].map(|back| {
        alice.sent_params(back - 1)["inputResponses"]["who"]["content"]["name"].clone()
    });
    assert_eq!(sent, [json!("Ann"), json!("Bob")]);
    let texts: Vec<String> = alice.outcomes().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["A.", "B."]);
}

#[test]
fn imports_and_forks_resume_no_call() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    alice.ends_with_question("x");
    let file = alice.export("s").unwrap();
    alice.import("copy", &file).unwrap();
    let forked = alice.ok("forkSession", json!({"sessionId": "s"}));
    let sent = alice.outbound.calls.borrow().len();
    for id in ["copy", forked["id"].as_str().unwrap()] {
        let page = alice.ok("getHistory", json!({"sessionId": id}));
        let message = page["messages"][1].clone();
        assert_eq!(message["parts"][2]["type"], "data-input-request");
        assert_eq!(message["parts"][2]["data"]["isClosed"], true, "{id}");
        let body =
            json!({"id": id, "messages": [user("book"), answered(&message, "c1", &accept("Ann"))]});
        alice.outbound.answer(text_answer("Nothing."));
        alice.chat(body);
    }
    assert_eq!(
        alice.outbound.calls.borrow().len(),
        sent + 2,
        "only the model was called"
    );
}

#[test]
fn a_question_can_be_answered_over_a_socket() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    alice.ends_with_question("x");
    let frame = |output: &Value| {
        let socket = api::socket::SocketState::new(
            base::ids::Id::parse("s".to_owned()).unwrap(),
            &alice.caller,
        );
        let frame = json!({"type": "cf_agent_tool_result", "toolCallId": "c1", "toolName": "gh_a",
            "output": output, "autoContinue": true});
        let agent = alice.agent(&alice.db);
        wait_for(api::socket::handle_frame(
            &agent,
            &socket,
            &frame.to_string(),
        ))
    };
    let refused = frame(&accept("much too long")).unwrap();
    assert!(refused.work.is_none());
    assert_eq!(alice.last_parts()[1]["state"], "input-available");
    alice.outbound.answer(result(1_001, &text("Booked.")));
    alice.outbound.answer(text_answer("Done."));
    let work = frame(&accept("Ann")).unwrap().work.unwrap();
    alice.run_work(work);
    assert_eq!(alice.last_parts()[1]["output"], "Booked.");
}

/// The reply to a frame with an answer over a socket.
fn answer_frame(alice: &Alice, output: &Value, continues: bool) -> api::socket::FrameOutcome {
    let id = base::ids::Id::parse("s".to_owned()).unwrap();
    let socket = api::socket::SocketState::new(id, &alice.caller);
    let frame = json!({"type": "cf_agent_tool_result", "toolCallId": "c1", "toolName": "gh_a",
        "output": output, "autoContinue": continues});
    let agent = alice.agent(&alice.db);
    wait_for(api::socket::handle_frame(
        &agent,
        &socket,
        &frame.to_string(),
    ))
    .unwrap()
}

#[test]
fn a_call_whose_answer_started_no_turn_is_repeated_when_its_message_is_continued() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    alice.ends_with_question("x");
    let sent = alice.outbound.calls.borrow().len();
    assert!(answer_frame(&alice, &accept("Ann"), false).work.is_none());
    assert_eq!(alice.outbound.calls.borrow().len(), sent);
    assert_eq!(alice.last_parts()[2]["data"]["isClosed"], true);
    alice.outbound.answer(result(1_001, &text("Booked.")));
    alice.outbound.answer(text_answer("It is booked."));
    // The client continues automatically, and its copy of the call contains the answer.
    let body = alice.answer_body("c1", &accept("Ann"));
    let chunks = alice.chat(body.clone());
    assert_eq!(chunks.last().unwrap()["type"], "finish", "{chunks:?}");
    assert_eq!(
        alice.sent_params(2)["inputResponses"],
        accept("Ann")["responses"]
    );
    assert_eq!(alice.shown().len(), 2);
    let parts = alice.last_parts();
    assert_eq!(parts[1]["output"], "Booked.");
    assert_eq!(parts[3]["text"], "It is booked.");
    // The call is made once.
    let calls = alice.outbound.calls.borrow().len();
    alice.outbound.answer(text_answer("Nothing more."));
    alice.chat(body);
    assert_eq!(alice.outbound.calls.borrow().len(), calls + 1);
}

#[test]
fn a_call_whose_answer_started_no_turn_is_repeated_before_the_next_message_is_answered() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    alice.ends_with_question("x");
    assert!(answer_frame(&alice, &accept("Ann"), false).work.is_none());
    let calls = alice.outbound.calls.borrow().len();
    alice.outbound.answer(result(1_001, &text("Booked.")));
    alice.outbound.answer(text_answer("Noon."));
    let chunks = alice.chat_text("What time is it?");
    assert_eq!(chunks.last().unwrap()["type"], "finish", "{chunks:?}");
    assert_eq!(alice.outbound.calls.borrow().len(), calls + 2);
    let request = alice.outbound.calls.borrow().last().unwrap().body.clone();
    assert!(request.contains("Booked."), "{request}");
    assert!(request.contains("What time is it?"), "{request}");
    let shown = alice.shown();
    assert_eq!(shown.len(), 4);
    assert_eq!(shown[2]["parts"][0]["text"], "What time is it?");
    // The same as for an answer that is sent with a message.
    assert_eq!(shown[3]["parts"][0]["output"], "Booked.");
    assert_eq!(shown[3]["parts"][1]["text"], "Noon.");
}

#[test]
fn a_call_of_a_turn_that_was_lost_is_not_made_again() {
    let mut alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    alice.ends_with_question("x");
    assert!(answer_frame(&alice, &accept("Ann"), false).work.is_none());
    let body = alice.answer_body("c1", &accept("Ann"));
    drop(alice.begin(&body).unwrap());
    // Another build started the turn, so it is unknown whether the call was made.
    alice.crash();
    let sql = "UPDATE cf_agents_last_turns SET state = '{}'";
    base::database::Database::run(&alice.db, sql, &[]).unwrap();
    let round = chat::run::resume::resume_some_turns(&alice.agent(&alice.db));
    assert_eq!(round.works.len(), 0);
    drop(round);
    let calls = alice.outbound.calls.borrow().len();
    alice.outbound.answer(text_answer("Noon."));
    alice.chat_text("What time is it?");
    assert_eq!(alice.outbound.calls.borrow().len(), calls + 1);
}

#[test]
fn a_client_tools_output_that_started_no_turn_is_read_by_the_next_turn() {
    let alice = Alice::with_model();
    let tools = json!([{"name": "gh_a", "parameters": {"type": "object"}}]);
    alice.outbound.answer(calls(&[("c1", "gh_a", json!({}))]));
    alice.chat(json!({"id": "s", "message": user("where"), "tools": tools}));
    assert!(answer_frame(&alice, &json!("Rome"), false).work.is_none());
    alice.outbound.answer(text_answer("In Rome."));
    alice.chat_text("And?");
    let request = alice.outbound.calls.borrow().last().unwrap().body.clone();
    assert!(
        request.contains("Rome") && request.contains("And?"),
        "{request}"
    );
}

#[test]
fn an_approval_that_started_no_turn_counts_when_its_message_is_continued() {
    let alice = Alice::with_model();
    define(&alice, "pay", true);
    alice
        .outbound
        .answer(calls(&[("c1", "pay", json!({"to": "Ann"}))]));
    alice.chat_text("Pay.");
    let id = base::ids::Id::parse("s".to_owned()).unwrap();
    let socket = api::socket::SocketState::new(id, &alice.caller);
    let frame = json!({"type": "cf_agent_tool_approval", "toolCallId": "c1", "approved": true});
    let agent = alice.agent(&alice.db);
    let outcome = wait_for(api::socket::handle_frame(
        &agent,
        &socket,
        &frame.to_string(),
    ));
    assert!(outcome.unwrap().work.is_none());
    let mut message = alice.shown().pop().unwrap();
    message["parts"][1]["state"] = json!("approval-responded");
    message["parts"][1]["approval"]["approved"] = json!(true);
    let body = json!({"id": "s", "messages": [user("Pay."), message]});
    alice
        .outbound
        .answer(ScriptedAnswer::json(&json!({"paid": 1})));
    alice.outbound.answer(text_answer("Paid."));
    alice.chat(body.clone());
    assert_eq!(alice.last_parts()[1]["output"]["paid"], 1);
    let calls = alice.outbound.calls.borrow().len();
    alice.outbound.answer(text_answer("Nothing more."));
    alice.chat(body);
    assert_eq!(alice.outbound.calls.borrow().len(), calls + 1);
}

#[test]
fn a_wrong_answer_that_is_sent_again_does_not_refuse_the_next_message() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    alice.ends_with_question("x");
    let mut body = alice.answer_body("c1", &accept("much too long"));
    assert!(alice.begin(&body).is_err());
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(user("Never mind. What time is it?"));
    alice.outbound.answer(text_answer("Noon."));
    let chunks = alice.chat(body);
    assert_eq!(chunks.last().unwrap()["type"], "finish", "{chunks:?}");
    let shown = alice.shown();
    assert_eq!(shown.len(), 4);
    assert_eq!(shown[3]["parts"][0]["text"], "Noon.");
    // The question is still open, and takes a right answer.
    assert_eq!(shown[1]["parts"][1]["state"], "input-available");
    assert_eq!(shown[1]["parts"][2]["data"]["isClosed"], Value::Null);
    let message = answered(&shown[1], "c1", &accept("Ann"));
    alice.outbound.answer(result(1_001, &text("Booked.")));
    alice.outbound.answer(text_answer("Done."));
    alice.chat(json!({"id": "s", "messages": [shown[0], message]}));
    assert_eq!(
        alice.sent_params(2)["inputResponses"],
        accept("Ann")["responses"]
    );
    assert_eq!(alice.shown()[1]["parts"][1]["output"], "Booked.");
}

#[test]
fn a_wrong_answer_that_is_refused_twice_refuses_no_later_message() {
    for entry_point in ["chat", "socket", "runTurn"] {
        let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
        alice.ends_with_question("x");
        let mut body = alice.answer_body("c1", &accept("much too long"));
        for _ in 0..2 {
            let error = alice.begin(&body).err().unwrap();
            assert_eq!(
                (&error.details()["field"], &error.details()["toolCallId"]),
                (&json!("responses.who.content.name"), &json!("c1"))
            );
        }
        let sent = user("What time is it?");
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(sent.clone());
        alice.outbound.answer(text_answer("Noon."));
        match entry_point {
            "chat" => drop(alice.chat(body)),
            "socket" => {
                let frame = json!({"type": "cf_agent_use_chat_request", "id": "1",
                    "init": {"method": "POST", "body": body.to_string()}});
                let id = base::ids::Id::parse("s".to_owned()).unwrap();
                let socket = api::socket::SocketState::new(id, &alice.caller);
                let agent = alice.agent(&alice.db);
                let frame = frame.to_string();
                let handled = api::socket::handle_frame(&agent, &socket, &frame);
                alice.run_work(wait_for(handled).unwrap().work.unwrap());
            }
            _ => drop(alice.ok("runTurn", json!({"sessionId": "s", "message": sent}))),
        }
        let shown = alice.shown();
        assert_eq!(shown.len(), 4, "{entry_point}");
        assert_eq!(shown[3]["parts"][0]["text"], "Noon.", "{entry_point}");
        assert_eq!(shown[1]["parts"][1]["state"], "input-available");
    }
}

#[test]
fn a_message_with_a_wrong_answer_in_its_history_is_queued() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    alice.ends_with_question("x");
    let mut body = alice.answer_body("c1", &accept("much too long"));
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(user("What time is it?"));
    let work = alice.begin(&body).unwrap().work.unwrap();
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(user("Does it rain?"));
    body["whenBusy"] = json!("queue");
    assert!(alice.begin(&body).unwrap().work.is_none());
    alice.outbound.answer(text_answer("Noon."));
    alice.outbound.answer(text_answer("It does."));
    alice.run_work(work);
    let shown = alice.shown();
    assert_eq!(shown.len(), 6);
    assert_eq!(shown[5]["parts"][0]["text"], "It does.");
    assert_eq!(shown[1]["parts"][1]["state"], "input-available");
}

#[test]
fn a_wrong_answer_of_an_earlier_message_does_not_refuse_the_answers_of_the_last_one() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    alice.ends_with_question("x");
    let mut body = alice.answer_body("c1", &accept("much too long"));
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(user("Where am I?"));
    let tool = json!({"name": "locate", "parameters": {"type": "object"}});
    body["tools"] = json!([tool]);
    alice.outbound.answer(calls(&[("c2", "locate", json!({}))]));
    alice.chat(body.clone());
    // The client runs its tool, and sends the whole history again without a new message.
    let located = answered(&alice.shown()[3], "c2", &json!("Rome"));
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(located);
    alice.outbound.answer(text_answer("In Rome."));
    let chunks = alice.chat(body.clone());
    assert_eq!(chunks.last().unwrap()["type"], "finish", "{chunks:?}");
    let shown = alice.shown();
    assert_eq!(shown.len(), 4);
    assert_eq!(shown[3]["parts"][2]["text"], "In Rome.", "{}", shown[3]);
    assert_eq!(shown[1]["parts"][1]["state"], "input-available");
    // Sent once more, the request has no answer in its last message.
    alice.outbound.answer(text_answer("Still in Rome."));
    let chunks = alice.chat(body);
    assert_eq!(chunks.last().unwrap()["type"], "finish", "{chunks:?}");
}

#[test]
fn a_wrong_answer_beside_a_right_one_leaves_the_calls_of_their_message_waiting() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    let both = [
        ("c1", "gh_a", json!({"q": 1})),
        ("c2", "gh_a", json!({"q": 2})),
    ];
    alice.outbound.answer(calls(&both));
    alice.outbound.answer(result(1, &input_required("one")));
    alice.outbound.answer(result(1, &input_required("two")));
    alice.chat_text("book");
    let message = alice.shown().pop().unwrap();
    let message = answered(&message, "c1", &accept("Ann"));
    let message = answered(&message, "c2", &json!("wrong"));
    alice.outbound.answer(text_answer("Noon."));
    let sent = alice.outbound.calls.borrow().len();
    alice.chat(json!({"id": "s", "messages": [user("book"), message, user("What time is it?")]}));
    assert_eq!(alice.outbound.calls.borrow().len(), sent + 1);
    let parts = alice.shown()[1]["parts"].clone();
    assert_eq!(
        (&parts[3]["data"]["isClosed"], &parts[4]["data"]["isClosed"]),
        (&json!(true), &Value::Null)
    );
}

#[test]
fn a_tool_changed_since_its_question_is_not_called() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    alice.ends_with_question("x");
    alice.ok("removeTool", json!({"name": "gh"}));
    alice.outbound.answer(text_answer("Gone."));
    alice.chat(alice.answer_body("c1", &accept("Ann")));
    let reply = alice.last_parts()[1]["errorText"].clone();
    assert!(
        reply.as_str().unwrap().contains("changed or removed"),
        "{reply}"
    );
}

#[test]
fn questions_that_cannot_be_displayed_become_tool_errors() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    let input_required_of = |method: &str, params: &Value| json!({"resultType": "input_required", "inputRequests": {"n": {"method": method, "params": params}}});
    for (question, reply) in [
        (
            input_required_of("sampling/createMessage", &json!({})),
            "other than a form or a page",
        ),
        (
            input_required_of(
                "elicitation/create",
                &json!({"mode": "url", "message": "Pay.", "url": "https://evil.example/"}),
            ),
            "https://evil.example are not allowed",
        ),
        (
            json!({"resultType": "input_required"}),
            "no `inputRequests`",
        ),
    ] {
        alice.outbound.answer(calls(&[("c1", "gh_a", json!({}))]));
        alice.outbound.answer(result(1, &question));
        alice.outbound.answer(text_answer("It can't."));
        alice.chat_text(reply);
        let (_, text) = alice.outcomes().pop().unwrap();
        assert!(text.contains(reply), "{text}");
    }
}

#[test]
fn questions_per_step_are_limited() {
    let alice = Alice::with_asking_server(&json!({"needsApproval": false}));
    let ids: Vec<String> = (0..9).map(|n| format!("c{n}")).collect();
    let many: Vec<(&str, &str, Value)> = ids
        .iter()
        .map(|id| (id.as_str(), "gh_a", json!({})))
        .collect();
    alice.outbound.answer(calls(&many));
    for _ in 0..9 {
        alice.outbound.answer(result(1, &input_required("x")));
    }
    let chunks = alice.chat_text("book");
    let count = |kind: &str| chunks.iter().filter(|chunk| chunk["type"] == kind).count();
    assert_eq!(
        (count("data-input-request"), count("tool-output-error")),
        (8, 1)
    );
}

#[test]
fn a_custom_tool_may_ask_and_run_turn_returns_the_question() {
    let alice = Alice::with_model();
    define(&alice, "book", false);
    alice.outbound.answer(calls(&[("c1", "book", json!({}))]));
    alice
        .outbound
        .answer(ScriptedAnswer::json(&input_required("mine")));
    let input = json!({"sessionId": "s", "message": user("book")});
    let ran = alice.ok("runTurn", input);
    assert_eq!(ran["finishReason"], "tool-calls");
    assert_eq!(ran["message"], *alice.shown().last().unwrap());
    let data = &alice.last_parts()[2]["data"];
    assert_eq!(
        (&data["tool"], &data["server"]),
        (&json!("book"), &Value::Null)
    );
    alice
        .outbound
        .answer(ScriptedAnswer::json(&json!({"booked": true})));
    alice.outbound.answer(text_answer("Done."));
    alice.chat(alice.answer_body("c1", &accept("Ann")));
    let body = &alice.tool_calls()[1];
    assert_eq!(
        (&body["inputResponses"], &body["requestState"]),
        (&accept("Ann")["responses"], &json!("mine"))
    );
    assert_eq!(alice.last_parts()[1]["output"], json!({"booked": true}));
}
