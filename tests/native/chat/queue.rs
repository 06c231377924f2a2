//! Messages queued during a turn: each is answered once and in order, whenever the object is
//! evicted.

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls, define, kinds, receive, text_answer, text_of, user};
use access::{Caller, TokenScope};
use api::chat::StartedTurn;
use api::dispatch::dispatch;
use api::socket::{SocketState, handle_frame as hear_frame};
use base::database::Database as _;
use base::ids::Id;
use base::testing::{Failing, wait_for};
use chat::request::queued_requests::MAX_WAITING;
use chat::run::cycle::run;
use chat::run::resume::resume_some_turns;
use chat::run::work::TurnWork;

fn when_busy(text: &str, when: &str) -> Value {
    json!({"id": "s", "message": user(text), "whenBusy": when})
}

fn id(text: &str) -> Id {
    Id::parse(text.to_owned()).unwrap()
}

impl Alice {
    fn queue(&self, text: &str) -> StartedTurn {
        let started = self.begin(&when_busy(text, "queue")).unwrap();
        assert!(started.work.is_none());
        started
    }

    /// Starts a turn for the message `first`.
    fn start_turn(&self) -> (TurnWork, chat::run::listener::TurnListener) {
        let started = self
            .begin(&json!({"id": "s", "message": user("first")}))
            .unwrap();
        (started.work.unwrap(), started.listener)
    }

    /// The session's messages as `role: text`.
    fn messages(&self) -> Vec<String> {
        let render = |message: &Value| {
            let parts = message["parts"].as_array().unwrap();
            let text: String = parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect();
            format!("{}: {text}", message["role"].as_str().unwrap())
        };
        self.shown().iter().map(render).collect()
    }

    fn frame_of_chat(&self, request: &str, text: &str) -> api::socket::FrameOutcome {
        let state = SocketState::new(id("s"), &self.caller);
        let body = json!({"messages": [user(text)], "whenBusy": "queue"}).to_string();
        let frame = json!({"type": "cf_agent_use_chat_request", "id": request, "init": {"method": "POST", "body": body}});
        wait_for(hear_frame(
            &self.agent(&self.db),
            &state,
            &frame.to_string(),
        ))
        .unwrap()
    }
}

const MESSAGES: [&str; 6] = [
    "user: first",
    "assistant: One.",
    "user: second",
    "assistant: Two.",
    "user: third",
    "assistant: Three.",
];

#[test]
fn queued_messages_are_answered_in_order() {
    let alice = Alice::with_model();
    let (work, first) = alice.start_turn();
    let second = alice.queue("second");
    let third = alice.queue("third");
    assert_eq!(alice.actions(), ["user_message"]);
    assert_eq!(alice.waiting_rows(), 2);
    for text in ["One.", "Two.", "Three."] {
        alice.outbound.answer(text_answer(text));
    }
    alice.run_work(work);
    assert_eq!(alice.messages(), MESSAGES);
    assert_eq!(alice.waiting_rows(), 0);
    for (listener, text) in [
        (first, "One."),
        (second.listener, "Two."),
        (third.listener, "Three."),
    ] {
        let chunks = receive(listener);
        assert_eq!(text_of(&chunks), text);
        assert_eq!(kinds(&chunks)[0], "start");
    }
}

#[test]
fn a_turn_without_waiters_writes_no_queue_row() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("One."));
    let started = alice.begin(&when_busy("first", "queue")).unwrap();
    assert_eq!(alice.waiting_rows(), 0);
    alice.run_work(started.work.unwrap());
}

#[test]
fn a_whole_history_queues_only_its_new_message() {
    let alice = Alice::with_model();
    let (work, _) = alice.start_turn();
    let partial =
        json!({"id": "partial", "role": "assistant", "parts": [{"type": "text", "text": "O"}]});
    let second = json!({"id": "s", "messages": [user("first"), partial, user("second")], "whenBusy": "queue"});
    assert!(alice.begin(&second).unwrap().work.is_none());
    let third = json!({"id": "s", "messages": [user("first"), partial, user("second"), user("third")], "whenBusy": "queue"});
    assert!(alice.begin(&third).unwrap().work.is_none());
    for text in ["One.", "Two.", "Three."] {
        alice.outbound.answer(text_answer(text));
    }
    alice.run_work(work);
    assert_eq!(alice.messages(), MESSAGES);
}

#[test]
fn a_resent_message_keeps_its_place_in_the_queue() {
    let alice = Alice::with_model();
    let (work, _) = alice.start_turn();
    let one = alice.queue("second");
    let again = alice.queue("second");
    assert_eq!(alice.waiting_rows(), 1);
    alice.outbound.answer(text_answer("One."));
    alice.outbound.answer(text_answer("Two."));
    alice.run_work(work);
    assert_eq!(text_of(&receive(one.listener)), "Two.");
    assert_eq!(text_of(&receive(again.listener)), "Two.");
    assert_eq!(alice.messages().len(), 4);
}

#[test]
fn the_queue_has_a_maximum_length() {
    let alice = Alice::with_model();
    let (_work, _) = alice.start_turn();
    for n in 0..MAX_WAITING {
        alice.queue(&n.to_string());
    }
    let refused = |body: &Value| alice.begin(body).err().unwrap();
    let full = refused(&when_busy("one more", "queue"));
    assert_eq!(
        (full.code.name(), &full.details()["retryAfter"]),
        ("rate_limited", &json!(5))
    );
    assert_eq!(alice.waiting_rows(), MAX_WAITING);
    assert_eq!(
        refused(&when_busy("x", "reject")).code.name(),
        "turn_in_progress"
    );
    let plain = json!({"id": "s", "message": user("x")});
    assert_eq!(refused(&plain).code.name(), "turn_in_progress");
}

#[test]
fn queued_messages_are_bounded_in_bytes() {
    let alice = Alice::with_model();
    let (_work, _) = alice.start_turn();
    let long = |id: &str| {
        let part = json!({"type": "text", "text": "x".repeat(3 << 20)});
        alice.begin(&json!({"id": "s", "message": {"id": id, "role": "user", "parts": [part]}, "whenBusy": "queue"}))
    };
    long("one").unwrap();
    let error = long("two").err().unwrap();
    assert_eq!(error.code.name(), "payload_too_large");
    alice.queue("short");
}

#[test]
fn only_new_messages_are_queued() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Zero."));
    alice.chat_text("zero");
    let (_work, _) = alice.start_turn();
    for body in [
        json!({"id": "s", "trigger": "regenerate-message", "whenBusy": "queue"}),
        json!({"id": "s", "message": user("zero"), "whenBusy": "queue"}),
        json!({"id": "s", "message": user("first"), "messageId": "u-first", "whenBusy": "replace"}),
    ] {
        let error = alice.begin(&body).err().unwrap();
        assert_eq!(error.code.name(), "turn_in_progress", "{body}");
    }
    assert_eq!(alice.waiting_rows(), 0);
}

#[test]
fn a_replacing_message_precedes_the_queue() {
    let alice = Alice::with_model();
    let (work, first) = alice.start_turn();
    let waits = alice.queue("later");
    let urgent = alice.begin(&when_busy("now", "replace")).unwrap();
    assert!(urgent.work.is_none());
    alice.outbound.answer(text_answer("At once."));
    alice.outbound.answer(text_answer("Later."));
    alice.run_work(work);
    assert_eq!(*kinds(&receive(first)).last().unwrap(), "abort");
    assert_eq!(
        alice.messages(),
        [
            "user: first",
            "user: now",
            "assistant: At once.",
            "user: later",
            "assistant: Later."
        ]
    );
    assert_eq!(text_of(&receive(urgent.listener)), "At once.");
    assert_eq!(text_of(&receive(waits.listener)), "Later.");
}

#[test]
fn an_interrupted_turn_is_replaced_at_once() {
    let mut alice = Alice::with_model();
    drop(alice.start_turn());
    alice.reactivate();
    alice.outbound.answer(text_answer("At once."));
    let started = alice.begin(&when_busy("now", "replace")).unwrap();
    alice.run_work(started.work.unwrap());
    assert_eq!(
        alice.messages(),
        ["user: first", "user: now", "assistant: At once."]
    );
}

#[test]
fn replacing_a_turn_needs_the_right_to_stop_it() {
    for (operations, expected) in [
        (&["chat"][..], Some("forbidden")),
        (&["chat", "cancelTurn"], None),
    ] {
        let mut alice = Alice::with_model();
        let (_work, _) = alice.start_turn();
        alice.caller = Caller::Scoped(TokenScope {
            session_id: Some(id("s")),
            operations: Some(operations.iter().map(|name| (*name).to_owned()).collect()),
            expires_at: i64::MAX,
            ..TokenScope::default()
        });
        let error = alice.begin(&when_busy("now", "replace")).err();
        assert_eq!(error.map(|error| error.code.name()), expected);
        assert_eq!(alice.waiting_rows(), usize::from(expected.is_none()));
    }
}

#[test]
fn a_queued_message_can_be_withdrawn() {
    let alice = Alice::with_model();
    let (work, _) = alice.start_turn();
    let second = alice.queue("second");
    let third = alice.queue("third");
    let cancel = |id: &str| alice.ok("cancelTurn", json!({"sessionId": "s", "messageId": id}));
    assert_eq!(cancel("u-second"), json!({"cancelled": true}));
    assert_eq!(cancel("u-second"), json!({"cancelled": false}));
    assert_eq!(kinds(&receive(second.listener)), ["abort"]);
    alice.outbound.answer(text_answer("One."));
    alice.outbound.answer(text_answer("Three."));
    alice.run_work(work);
    assert_eq!(
        alice.messages(),
        [
            "user: first",
            "assistant: One.",
            "user: third",
            "assistant: Three."
        ]
    );
    assert_eq!(text_of(&receive(third.listener)), "Three.");
}

#[test]
fn a_turn_is_stopped_by_its_message_id() {
    let alice = Alice::with_model();
    let (work, first) = alice.start_turn();
    let cancel = |id: &str| alice.ok("cancelTurn", json!({"sessionId": "s", "messageId": id}));
    assert_eq!(cancel("another"), json!({"cancelled": false}));
    assert_eq!(cancel("u-first"), json!({"cancelled": true}));
    alice.run_work(work);
    assert_eq!(*kinds(&receive(first)).last().unwrap(), "abort");
}

#[test]
fn a_page_queues_withdraws_and_receives_its_turn() {
    let alice = Alice::with_model();
    alice.audience.are_there.set(true);
    let (work, _) = alice.start_turn();
    let received = alice.frame_of_chat("r2", "second");
    assert!(received.replies.is_empty() && received.work.is_none());
    let state = received.state.unwrap();
    assert_eq!(state.last_request_id.as_deref(), Some("r2"));
    alice.frame_of_chat("r3", "third");
    // The page may withdraw its message, with any token.
    let cancel = json!({"type": "cf_agent_chat_request_cancel", "id": "r2"}).to_string();
    wait_for(hear_frame(&alice.agent(&alice.db), &state, &cancel)).unwrap();
    alice.outbound.answer(text_answer("One."));
    alice.outbound.answer(text_answer("Three."));
    alice.audience.frames.borrow_mut().clear();
    alice.run_work(work);
    let frames = alice.audience.frames.borrow();
    let of_third: Vec<&String> = frames
        .iter()
        .filter(|frame| frame.contains("\"id\":\"r3\""))
        .collect();
    assert!(of_third.iter().any(|frame| frame.contains("Three.")));
    assert!(
        of_third
            .last()
            .unwrap()
            .contains("\"outcome\":\"completed\"")
    );
    assert!(!frames.iter().any(|frame| frame.contains("\"id\":\"r2\"")));
    assert_eq!(
        alice.messages(),
        [
            "user: first",
            "assistant: One.",
            "user: third",
            "assistant: Three."
        ]
    );
}

#[test]
fn a_server_can_queue_a_message_and_join_it() {
    let alice = Alice::with_model();
    let (work, _) = alice.start_turn();
    let agent = alice.agent(&alice.db);
    let body =
        json!({"sessionId": "s", "message": user("second"), "whenBusy": "queue"}).to_string();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut one = std::pin::pin!(dispatch(&agent, "runTurn", body.as_bytes()));
    let mut two = std::pin::pin!(dispatch(&agent, "runTurn", body.as_bytes()));
    assert!(one.as_mut().poll(&mut context).is_pending());
    assert!(two.as_mut().poll(&mut context).is_pending());
    assert_eq!(alice.waiting_rows(), 1);
    alice.outbound.answer(text_answer("One."));
    alice.outbound.answer(text_answer("Two."));
    alice.run_work(work);
    let one: Value = serde_json::from_str(&wait_for(one).unwrap().body.into_string()).unwrap();
    let two: Value = serde_json::from_str(&wait_for(two).unwrap().body.into_string()).unwrap();
    assert_eq!(one, two);
    assert_eq!(one["message"]["parts"][0]["text"], "Two.");
    assert_eq!(
        alice.ok(
            "runTurn",
            json!({"sessionId": "s", "message": user("second")})
        ),
        one
    );
}

#[test]
fn clearing_or_deleting_a_session_deletes_its_queue() {
    for operation in ["clearMessages", "deleteSession"] {
        let alice = Alice::with_model();
        let (work, _) = alice.start_turn();
        let second = alice.queue("second");
        alice.ok(operation, json!({"sessionId": "s"}));
        assert_eq!(alice.waiting_rows(), 0, "{operation}");
        assert_eq!(kinds(&receive(second.listener)), ["abort"], "{operation}");
        alice.run_work(work);
        assert!(!alice.has_turn_rows());
    }
    // The queue is deleted with the session's messages even if no message is left.
    let alice = Alice::with_model();
    let (work, _) = alice.start_turn();
    alice.queue("second");
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": ["u-first"]}),
    );
    alice.ok("clearMessages", json!({"sessionId": "s"}));
    assert_eq!(alice.waiting_rows(), 0);
    alice.run_work(work);
}

#[test]
fn forks_and_exports_do_not_include_the_queue() {
    let alice = Alice::with_model();
    let (work, _) = alice.start_turn();
    alice.queue("second");
    alice.ok("forkSession", json!({"sessionId": "s"}));
    assert!(!alice.export("s").unwrap().contains("second"));
    assert_eq!(alice.waiting_rows(), 1);
    alice.outbound.answer(text_answer("One."));
    alice.outbound.answer(text_answer("Two."));
    alice.run_work(work);
    assert_eq!(alice.messages(), MESSAGES[..4]);
}

/// The object is evicted at each moment of a queue of three: each message is answered once.
#[test]
fn each_message_is_answered_once_in_order_whichever_statement_fails() {
    for passing in 0.. {
        let mut alice = Alice::with_model();
        define(&alice, "echo", false);
        let (work, _) = alice.start_turn();
        alice.queue("second");
        alice.queue("third");
        for text in ["One.", "Two.", "Three."] {
            alice.outbound.answer(text_answer(text));
        }
        let failing = Failing::after(&alice.db, passing);
        wait_for(run(&alice.agent(&failing), work));
        let has_failed = failing.has_failed();
        let at = format!("statement {passing}");
        if has_failed {
            alice.reactivate();
            // Answers that were not written are requested again.
            let answered = alice
                .messages()
                .iter()
                .filter(|messages| messages.starts_with("assistant"))
                .count();
            alice.outbound.answers.borrow_mut().clear();
            for text in ["One.", "Two.", "Three."].iter().skip(answered) {
                alice.outbound.answer(text_answer(text));
            }
            for _ in 0..3 {
                for work in resume_some_turns(&alice.agent(&alice.db)).works {
                    alice.run_work(work);
                }
            }
        }
        assert_eq!(alice.messages(), MESSAGES, "{at}");
        assert_eq!(
            (alice.waiting_rows(), alice.has_turn_rows()),
            (0, false),
            "{at}"
        );
        if !has_failed {
            assert!(passing > 60);
            break;
        }
    }
}

#[test]
fn a_servers_queued_message_survives_a_crash_and_its_caller() {
    let mut alice = Alice::with_model();
    let (work, _) = alice.start_turn();
    {
        let agent = alice.agent(&alice.db);
        let body =
            json!({"sessionId": "s", "message": user("second"), "whenBusy": "queue"}).to_string();
        base::testing::cut_off(dispatch(&agent, "runTurn", body.as_bytes()));
    }
    drop(work);
    alice.reactivate();
    alice.outbound.answer(text_answer("One."));
    alice.outbound.answer(text_answer("Two."));
    for work in resume_some_turns(&alice.agent(&alice.db)).works {
        alice.run_work(work);
    }
    assert_eq!(alice.messages(), MESSAGES[..4]);
    let ran = alice.ok(
        "runTurn",
        json!({"sessionId": "s", "message": user("second")}),
    );
    assert_eq!(ran["message"]["parts"][0]["text"], "Two.");
}

#[test]
fn an_unreadable_queued_message_of_another_build_is_dropped() {
    let alice = Alice::with_model();
    let (work, _) = alice.start_turn();
    let second = alice.queue("second");
    alice.queue("third");
    alice
        .db
        .run(
            "UPDATE cf_agents_waiting SET text = '{' WHERE number = 1",
            &[],
        )
        .unwrap();
    alice.outbound.answer(text_answer("One."));
    alice.outbound.answer(text_answer("Three."));
    alice.run_work(work);
    assert_eq!(*kinds(&receive(second.listener)).last().unwrap(), "error");
    assert_eq!(
        alice.messages(),
        [
            "user: first",
            "assistant: One.",
            "user: third",
            "assistant: Three."
        ]
    );
}

#[test]
fn an_out_of_band_tool_result_continues_before_the_queue() {
    let alice = Alice::with_model();
    let work = alice.begin_two_calls();
    alice.frame("c1", "Rome").unwrap();
    alice.queue("second");
    alice.script_two_calls();
    alice.outbound.answer(text_answer("In Rome."));
    alice.outbound.answer(text_answer("Two."));
    alice.run_work(work);
    assert_eq!(alice.messages().len(), 4);
    assert_eq!(alice.messages()[3], "assistant: Two.");
    assert_eq!(alice.shown()[1]["parts"][3]["text"], "In Rome.");
}

#[test]
fn a_new_message_waits_behind_a_queue_that_has_not_resumed() {
    let mut alice = Alice::with_model();
    let (work, _) = alice.start_turn();
    alice.queue("second");
    // The turn ends, and the object is evicted before it starts the next one.
    alice.outbound.answer(text_answer("One."));
    alice.turns.cancel_all();
    drop(work);
    alice.reactivate();
    alice.ok("cancelTurn", json!({"sessionId": "s"}));
    assert!(!alice.has_turn_rows());
    alice.queue("third");
    alice.outbound.answers.borrow_mut().clear();
    alice.outbound.answer(text_answer("Two."));
    alice.outbound.answer(text_answer("Three."));
    for work in resume_some_turns(&alice.agent(&alice.db)).works {
        alice.run_work(work);
    }
    assert_eq!(
        alice.messages(),
        [
            "user: first",
            "user: second",
            "assistant: Two.",
            "user: third",
            "assistant: Three."
        ]
    );
}

#[test]
fn calls_awaiting_approval_do_not_block_the_queue() {
    let alice = Alice::with_model();
    define(&alice, "pay", true);
    let (work, _) = alice.start_turn();
    alice.queue("second");
    alice.outbound.answer(calls(&[("c1", "pay", json!({}))]));
    alice.outbound.answer(text_answer("Two."));
    alice.run_work(work);
    assert_eq!(alice.messages()[3], "assistant: Two.");
}

#[test]
fn the_agents_setting_applies_to_messages_without_when_busy() {
    let plain = json!({"id": "s", "message": user("second")});
    let reject = json!({"id": "s", "message": user("second"), "whenBusy": "reject"});
    for (setting, waits) in [("reject", false), ("queue", true), ("replace", true)] {
        let alice = Alice::with_model();
        alice.ok("configureAgent", json!({"whenBusy": setting}));
        let (_work, _) = alice.start_turn();
        assert_eq!(
            alice.begin(&reject).err().unwrap().code.name(),
            "turn_in_progress"
        );
        assert_eq!(alice.begin(&plain).is_ok(), waits, "{setting}");
        assert_eq!(
            alice.turns.find(&id("s")).unwrap().is_cancelled(),
            setting == "replace"
        );
    }
    // A setting gives a token no right to stop a turn.
    let mut alice = Alice::with_model();
    alice.ok("configureAgent", json!({"whenBusy": "replace"}));
    let (_work, _) = alice.start_turn();
    alice.caller = Caller::Scoped(TokenScope {
        session_id: Some(id("s")),
        operations: Some(vec!["chat".to_owned()]),
        expires_at: i64::MAX,
        ..TokenScope::default()
    });
    assert_eq!(
        alice.begin(&plain).err().unwrap().code.name(),
        "turn_in_progress"
    );
    assert!(!alice.turns.find(&id("s")).unwrap().is_cancelled());
}
