//! `limits`: how many turns may start, and how much a day's turns may spend, per agent and per
//! token holder.

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls, define, kinds, receive, text_answer, text_of, user};
use access::{Allow, Caller, TokenScope};
use api::dispatch::dispatch;
use api::socket::{SocketState, handle_frame as hear_frame};
use base::database::Database as _;
use base::error::Error;
use base::host::Host as _;
use base::ids::Id;
use base::outbound::CallFailure;
use base::testing::{Failing, ScriptedAnswer, cut_off, wait_for};
use chat::run::resume::resume_some_turns;
use conversation::session::usage_days::DAY_MS;
use store::limits::PrincipalLimits;

fn id(text: &str) -> Id {
    Id::parse(text.to_owned()).unwrap()
}

/// A token with these limits.
fn limited_token(holder: &str, limits: Value) -> Caller {
    Caller::Scoped(TokenScope {
        limits: Some(PrincipalLimits {
            holder: holder.to_owned(),
            most: serde_json::from_value(limits).unwrap(),
        }),
        allow: Allow {
            client_tools: true,
            ..Allow::default()
        },
        expires_at: i64::MAX,
        ..TokenScope::default()
    })
}

fn limited(limits: Value) -> Alice {
    let alice = Alice::with_model();
    alice.ok("configureAgent", json!({"limits": limits}));
    alice
}

/// An answer that reports nothing.
fn unreported(text: &str) -> Result<ScriptedAnswer, CallFailure> {
    let chunk = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
    Ok(ScriptedAnswer::stream(&format!(
        "data: {chunk}\n\ndata: [DONE]\n\n"
    )))
}

impl Alice {
    fn calls_sent(&self) -> usize {
        self.outbound.calls.borrow().len()
    }

    /// Runs a turn that is refused before anything is written.
    fn assert_limited(&self, body: &Value) -> Error {
        let (before, calls) = (self.db.dump(), self.calls_sent());
        let error = self.begin(body).err().expect("the turn began");
        assert_eq!(error.code.name(), "rate_limited", "{}", error.message);
        assert_eq!((self.db.dump(), self.calls_sent()), (before, calls));
        error
    }

    /// The time that a refused turn has to wait, and the limit.
    fn waits(&self, text: &str) -> (i64, String) {
        let error = self.assert_limited(&json!({"id": "s", "message": user(text)}));
        let seconds = error.details()["retryAfter"].as_i64().unwrap();
        let field = error.details()["field"].as_str().unwrap().to_owned();
        (seconds, field)
    }

    /// Runs an answered turn of session `s` that spends 12 tokens.
    fn run_answered_turn(&self, text: &str) {
        self.is_answered_in("s", text);
    }

    fn is_answered_in(&self, session: &str, text: &str) {
        self.outbound.answer(text_answer("Yes."));
        let chunks = self.chat(json!({"id": session, "message": user(text)}));
        assert_eq!(text_of(&chunks), "Yes.", "{chunks:?}");
    }

    fn set_clock(&self, ms: i64) {
        self.host.advance(ms - self.host.now_ms());
    }

    /// Holder, day, tokens and starts of each counted row.
    fn counted(&self) -> Vec<String> {
        let sql = "SELECT holder || ' ' || day || ' ' || tokens || ' ' || starts
                     FROM cf_agents_metered ORDER BY day, holder";
        let rows = self.db.rows(sql, &[]).unwrap();
        rows.iter()
            .map(|row| row.text(0).unwrap().to_owned())
            .collect()
    }
}

const PACE: &str = "limits.turnsPerMinute";
const TOKENS: &str = "limits.tokensPerDay";
const COST: &str = "limits.costPerDay";

#[test]
fn an_agent_without_limits_has_no_limit_rows() {
    let alice = Alice::with_model();
    alice.run_answered_turn("one");
    alice.ok("addUsage", json!({"sessionId": "s", "inputTokens": 5}));
    assert_eq!(alice.counted(), [""; 0]);
    let config = alice.ok("getConfig", json!({}));
    assert_eq!(
        (&config["limits"], &config["origins"]["limits"]),
        (&Value::Null, &json!("built-in"))
    );
}

#[test]
fn turns_over_the_minute_limit_wait_for_the_oldest_to_expire() {
    let alice = limited(json!({"turnsPerMinute": 2}));
    alice.run_answered_turn("one");
    alice.host.advance(10_500);
    alice.run_answered_turn("two");
    assert_eq!(alice.waits("three"), (50, PACE.to_owned()));
    alice.host.advance(49_499);
    assert_eq!(alice.waits("three"), (1, PACE.to_owned()));
    alice.host.advance(1);
    alice.run_answered_turn("three");
    assert_eq!(alice.waits("four"), (11, PACE.to_owned()));
}

#[test]
fn the_minute_window_spans_midnight() {
    let alice = limited(json!({"turnsPerMinute": 2, "tokensPerDay": 1_000}));
    alice.set_clock(DAY_MS - 1_000);
    alice.run_answered_turn("one");
    alice.set_clock(DAY_MS + 1_000);
    alice.run_answered_turn("two");
    assert_eq!(alice.waits("three"), (58, PACE.to_owned()));
    alice.set_clock(DAY_MS + 59_000);
    alice.run_answered_turn("three");
}

#[test]
fn the_daily_token_limit_resets_at_midnight() {
    let alice = limited(json!({"tokensPerDay": 24}));
    alice.run_answered_turn("one");
    alice.is_answered_in("t", "one");
    let left = (DAY_MS - alice.host.now_ms()) / 1_000;
    assert_eq!(alice.waits("two"), (left, TOKENS.to_owned()));
    alice.set_clock(DAY_MS - 1);
    assert_eq!(alice.waits("two"), (1, TOKENS.to_owned()));
    alice.set_clock(DAY_MS);
    alice.run_answered_turn("two");
}

#[test]
fn the_daily_cost_uses_the_agents_prices() {
    let alice = Alice::with_model();
    alice.ok(
        "configureAgent",
        json!({"prices": {"input": 1_000, "output": 5_000}, "limits": {"costPerDay": 0.04}}),
    );
    alice.run_answered_turn("one");
    alice.run_answered_turn("two");
    assert_eq!(alice.waits("three").1, COST);
    alice.set_clock(DAY_MS);
    alice.run_answered_turn("three");
}

#[test]
fn earlier_and_reported_usage_counts_toward_a_new_limit() {
    let alice = Alice::with_model();
    alice.run_answered_turn("one");
    alice.ok("configureAgent", json!({"limits": {"tokensPerDay": 12}}));
    assert_eq!(alice.waits("two").1, TOKENS);
    alice.ok("configureAgent", json!({"limits": {"tokensPerDay": 25}}));
    alice.run_answered_turn("two");
    let report = json!({"sessionId": "s", "inputTokens": 1, "id": "a"});
    alice.ok("addUsage", report.clone());
    alice.ok("addUsage", report);
    assert_eq!(alice.waits("three").1, TOKENS);
    alice.ok("configureAgent", json!({"limits": {"tokensPerDay": 26}}));
    alice.run_answered_turn("three");
}

#[test]
fn the_limit_with_the_latest_reset_is_reported() {
    let alice = limited(json!({"turnsPerMinute": 1, "tokensPerDay": 12}));
    alice.run_answered_turn("one");
    assert_eq!(alice.waits("two").1, TOKENS);
}

#[test]
fn every_entry_point_that_starts_a_turn_is_limited() {
    let alice = limited(json!({"turnsPerMinute": 1}));
    alice.run_answered_turn("one");
    alice.waits("by chat");
    let regenerate = json!({"id": "s", "messages": [user("one")], "trigger": "regenerate-message"});
    alice.assert_limited(&regenerate);
    alice.assert_limited(&json!({"id": "s", "messages": [user("one")]}));
    let before = alice.db.dump();
    let ran = json!({"sessionId": "t", "message": user("by runTurn")});
    let error = alice.call("runTurn", ran.clone()).unwrap_err();
    assert_eq!(error.code.name(), "rate_limited");
    assert_eq!(error.details()["retryAfter"], 60);
    let agent = alice.agent(&alice.db);
    let state = SocketState::new(id("s"), &alice.caller);
    let body = json!({"messages": [user("by socket")]}).to_string();
    let chat = json!({"type": "cf_agent_use_chat_request", "id": "1", "init": {"method": "POST", "body": body}});
    let rpc = json!({"type": "rpc", "id": "2", "method": "runTurn", "args": [ran]});
    for frame in [chat, rpc] {
        let outcome = wait_for(hear_frame(&agent, &state, &frame.to_string())).unwrap();
        assert!(outcome.work.is_none());
        assert!(outcome.replies[0].contains(PACE), "{:?}", outcome.replies);
    }
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn only_one_of_two_turns_gets_the_last_slot() {
    let alice = limited(json!({"turnsPerMinute": 1}));
    let first = alice
        .begin(&json!({"id": "s", "message": user("one")}))
        .unwrap();
    alice.assert_limited(&json!({"id": "t", "message": user("two")}));
    alice.outbound.answer(text_answer("Yes."));
    alice.run_work(first.work.unwrap());
    assert_eq!(text_of(&receive(first.listener)), "Yes.");
}

#[test]
fn a_turn_ends_before_its_model_call_if_another_spent_the_budget() {
    let alice = limited(json!({"tokensPerDay": 12}));
    let begin = |session: &str| {
        let body = json!({"id": session, "message": user("one")});
        alice.begin(&body).unwrap()
    };
    let (first, second) = (begin("s"), begin("t"));
    alice.outbound.answer(text_answer("Yes."));
    alice.run_work(first.work.unwrap());
    alice.run_work(second.work.unwrap());
    assert_eq!(alice.calls_sent(), 1);
    let chunks = receive(second.listener);
    let last = chunks.last().unwrap();
    assert_eq!(last["type"], "error");
    assert!(last["errorText"].as_str().unwrap().contains(TOKENS));
    let events = alice.ok("loadEvents", json!({"sessionId": "t"}));
    assert_eq!(events.as_array().unwrap().len(), 1, "the message is kept");
    assert!(!alice.has_turn_rows());
}

#[test]
fn a_turn_that_dies_after_admission_counts_once() {
    let mut alice = limited(json!({"turnsPerMinute": 2, "tokensPerDay": 10_000}));
    drop(alice.begin(&json!({"id": "s", "message": user("one")})));
    alice.crash();
    alice.outbound.answer(text_answer("Back."));
    for work in resume_some_turns(&alice.agent(&alice.db)).works {
        alice.run_work(work);
    }
    alice.run_answered_turn("two");
    assert_eq!(alice.waits("three").1, PACE);
    assert_eq!(alice.counted(), [" 0 24 [1000000,1000000]"]);
}

#[test]
fn a_call_lost_in_a_crash_and_its_retry_both_count() {
    let mut alice = limited(json!({"tokensPerDay": 10_000}));
    alice.outbound.hangs_after_answers.set(true);
    let started = alice
        .begin(&json!({"id": "s", "message": user("one")}))
        .unwrap();
    let agent = alice.agent(&alice.db);
    cut_off(chat::run::cycle::run(&agent, started.work.unwrap()));
    let counted = |alice: &Alice| -> i64 {
        let row = alice.counted().pop().unwrap();
        row.split(' ').nth(2).unwrap().parse().unwrap()
    };
    let lost = counted(&alice);
    assert!(lost > 0);
    alice.crash();
    alice.outbound.hangs_after_answers.set(false);
    alice.outbound.answer(text_answer("Back."));
    for work in resume_some_turns(&alice.agent(&alice.db)).works {
        alice.run_work(work);
    }
    assert_eq!(counted(&alice), lost + 12);
}

#[test]
fn stopping_an_answer_does_not_evade_a_limit() {
    let alice = limited(json!({"tokensPerDay": 20}));
    alice.outbound.hangs_after_answers.set(true);
    let long = "many words ".repeat(20);
    let body = json!({"id": "s", "message": {"id": "long", "role": "user", "parts": [{"type": "text", "text": long}]}});
    let started = alice.begin(&body).unwrap();
    {
        let agent = alice.agent(&alice.db);
        let mut running = std::pin::pin!(chat::run::cycle::run(&agent, started.work.unwrap()));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(running.as_mut().poll(&mut context).is_pending());
        alice.ok("cancelTurn", json!({"sessionId": "s"}));
        assert!(running.as_mut().poll(&mut context).is_ready());
    }
    assert_eq!(*kinds(&receive(started.listener)).last().unwrap(), "abort");
    assert_eq!(alice.waits("two").1, TOKENS);
    let session = alice.ok("getSession", json!({"sessionId": "s"}));
    let spent = session["usage"]["inputTokens"].as_i64().unwrap();
    assert!(spent >= 20, "usage says what the limit counted: {spent}");
}

#[test]
fn unreported_usage_is_estimated_and_refusals_are_free() {
    let alice = limited(json!({"tokensPerDay": 20}));
    for _ in 0..3 {
        alice.outbound.answer(Ok(ScriptedAnswer::text(400, "no")));
        alice.chat_text("refused");
    }
    alice.outbound.answer(unreported(&"word ".repeat(30)));
    alice.chat_text("one");
    assert_eq!(alice.waits("two").1, TOKENS);
}

#[test]
fn a_turn_that_exhausts_the_budget_ends_and_keeps_its_output() {
    let alice = limited(json!({"tokensPerDay": 20}));
    define(&alice, "echo", false);
    alice
        .outbound
        .answer(calls(&[("c1", "echo", json!({"long": "x".repeat(200)}))]));
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(200, "echoed")));
    let input = json!({"sessionId": "s", "message": user("go")});
    let error = alice.call("runTurn", input.clone()).unwrap_err();
    assert_eq!(error.code.name(), "rate_limited");
    assert!(error.details()["retryAfter"].as_i64().unwrap() > 1);
    let shown = alice.shown();
    assert_eq!(error.details()["messageId"], shown[1]["id"]);
    assert_eq!(
        alice.actions(),
        ["user_message", "tool_call_request", "tool_result"]
    );
    assert_eq!(shown[1]["parts"][1]["output"], "echoed");
    assert_eq!(alice.calls_sent(), 2, "the model once, and the tool");
    // The same call returns the same answer and runs nothing.
    assert_eq!(
        alice.call("runTurn", input).unwrap_err().code.name(),
        "rate_limited"
    );
    assert_eq!(alice.calls_sent(), 2);
}

#[test]
fn continuing_after_a_client_result_is_the_same_turn() {
    let alice = limited(json!({"turnsPerMinute": 1, "tokensPerDay": 1_000}));
    let tools =
        json!([{"name": "where", "description": "Where?", "parameters": {"type": "object"}}]);
    alice.outbound.answer(calls(&[("c1", "where", json!({}))]));
    alice.chat(json!({"id": "s", "message": user("where"), "tools": tools}));
    let mut answered = alice.shown()[1].clone();
    answered["parts"][1]["state"] = json!("output-available");
    answered["parts"][1]["output"] = json!("Rome");
    let body = json!({"id": "s", "messages": [user("where"), answered], "tools": tools});
    alice.ok(
        "configureAgent",
        json!({"limits": {"turnsPerMinute": 1, "tokensPerDay": 1}}),
    );
    let error = alice.assert_limited(&body);
    assert_eq!(error.details()["field"], TOKENS);
    alice.ok(
        "configureAgent",
        json!({"limits": {"turnsPerMinute": 1, "tokensPerDay": 1_000}}),
    );
    alice.outbound.answer(text_answer("In Rome."));
    assert_eq!(text_of(&alice.chat(body.clone())), "In Rome.");
    // Once it is answered, the same request is a new turn.
    assert_eq!(alice.assert_limited(&body).details()["field"], PACE);
}

#[test]
fn a_queued_message_counts_once_when_it_starts() {
    let alice = limited(json!({"turnsPerMinute": 2}));
    let queued = |text: &str| json!({"id": "s", "message": user(text), "whenBusy": "queue"});
    let first = alice.begin(&queued("one")).unwrap();
    let second = alice.begin(&queued("two")).unwrap();
    assert!(second.work.is_none());
    alice.assert_limited(&queued("three"));
    // A repeated message keeps its position in the queue.
    assert!(alice.begin(&queued("two")).unwrap().work.is_none());
    for _ in 0..2 {
        alice.outbound.answer(text_answer("Yes."));
    }
    alice.run_work(first.work.unwrap());
    assert_eq!(text_of(&receive(second.listener)), "Yes.");
    assert_eq!(alice.counted(), [" 0 0 [1000000,1000000]"]);
}

#[test]
fn a_queued_message_over_the_limit_is_stored_with_a_failed_turn() {
    let alice = limited(json!({"tokensPerDay": 12}));
    let queued = |text: &str| json!({"id": "s", "message": user(text), "whenBusy": "queue"});
    let first = alice.begin(&queued("one")).unwrap();
    let second = alice.begin(&queued("two")).unwrap();
    alice.outbound.answer(text_answer("Yes."));
    alice.run_work(first.work.unwrap());
    let chunks = receive(second.listener);
    let text = chunks.last().unwrap()["errorText"].as_str().unwrap();
    assert!(text.contains(TOKENS), "{text}");
    assert_eq!(alice.calls_sent(), 1);
    assert_eq!(
        alice.actions(),
        ["user_message", "agent_message", "user_message"]
    );
    assert_eq!(alice.waiting_rows(), 0);
}

#[test]
fn a_refused_replacement_stops_no_turn() {
    let mut alice = limited(json!({"turnsPerMinute": 1}));
    let replacing = json!({"id": "s", "message": user("two"), "whenBusy": "replace"});
    let first = alice
        .begin(&json!({"id": "s", "message": user("one")}))
        .unwrap();
    alice.assert_limited(&replacing);
    assert!(!first.work.as_ref().unwrap().running().is_cancelled());
    drop(first);
    alice.crash();
    alice.assert_limited(&replacing);
    assert!(alice.has_turn_rows());
}

#[test]
fn summaries_count_toward_the_daily_limit() {
    let alice = Alice::with_session();
    let settings = [("MODEL", "openai:m"), ("OPENAI_API_KEY", "k")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    alice.outbound.settings.borrow_mut().extend(settings);
    let texts: Vec<String> = (0..20)
        .map(|n| format!("{n} {}", "word ".repeat(50)))
        .collect();
    alice.append_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    alice.ok(
        "configureCompaction",
        json!({"protectHead": 1, "tailTokenBudget": 100}),
    );
    alice.ok("configureAgent", json!({"limits": {"tokensPerDay": 12}}));
    let compact = || alice.ok("compact", json!({"sessionId": "s"}));
    alice.outbound.answer(text_answer("A summary of it all."));
    assert_eq!(compact()["reason"], "compacted");
    assert_eq!(alice.counted(), [" 0 12 []"]);
    alice.append_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let outcome = compact();
    assert_eq!(outcome["reason"], "summariser_failed");
    assert_eq!(outcome["error"]["code"], "rate_limited");
    assert_eq!(alice.calls_sent(), 1);
}

#[test]
fn a_token_is_subject_to_its_own_and_the_agents_limits() {
    let mut alice = limited(json!({"turnsPerMinute": 3}));
    alice.caller = limited_token("token a", json!({"turnsPerMinute": 1}));
    alice.run_answered_turn("one");
    let error = alice.assert_limited(&json!({"id": "s", "message": user("two")}));
    assert!(error.message.starts_with("This token"), "{}", error.message);
    alice.caller = limited_token("token b", json!({"turnsPerMinute": 1_000}));
    alice.run_answered_turn("two");
    alice.run_answered_turn("three");
    let error = alice.assert_limited(&json!({"id": "s", "message": user("four")}));
    assert!(error.message.starts_with("This agent"), "{}", error.message);
    // The error about the agent's limits reveals nothing about other callers' usage.
    assert!(!error.message.contains('3'), "{}", error.message);
}

#[test]
fn a_tokens_usage_is_counted_separately() {
    let mut alice = Alice::with_model();
    alice.run_answered_turn("by the secret");
    alice.caller = limited_token("token a", json!({"tokensPerDay": 12}));
    alice.run_answered_turn("one");
    assert_eq!(alice.waits("two").1, TOKENS);
    alice.caller = limited_token("token b", json!({"tokensPerDay": 12}));
    alice.run_answered_turn("two");
    assert_eq!(alice.counted(), ["token a 0 12 []", "token b 0 12 []"]);
    // The turn stays limited by the token that started it, even if another caller resumes it.
    alice.caller = limited_token("token c", json!({"tokensPerDay": 5}));
    define_tool(&mut alice);
    alice
        .outbound
        .answer(calls(&[("c1", "echo", json!({"long": "x".repeat(200)}))]));
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(200, "echoed")));
    let started = alice
        .begin(&json!({"id": "t", "message": user("go")}))
        .unwrap();
    alice.caller = Caller::Owner;
    alice.run_work(started.work.unwrap());
    let chunks = receive(started.listener);
    assert!(
        chunks.last().unwrap()["errorText"]
            .as_str()
            .unwrap()
            .starts_with("This token")
    );
}

fn define_tool(alice: &mut Alice) {
    let caller = std::mem::replace(&mut alice.caller, Caller::Owner);
    define(alice, "echo", false);
    alice.caller = caller;
}

#[test]
fn usage_rows_of_earlier_days_are_deleted_on_write() {
    let mut alice = Alice::with_model();
    for day in 0..4 {
        alice.set_clock(day * DAY_MS + 1_000);
        alice.caller = limited_token(&format!("token {day}"), json!({"tokensPerDay": 100}));
        alice.run_answered_turn(&format!("day {day}"));
    }
    let rows: Vec<String> = alice.counted();
    assert_eq!(rows, ["token 2 2 12 []", "token 3 3 12 []"]);
}

#[test]
fn a_clock_that_moves_back_does_not_lift_a_limit() {
    let mut alice = limited(json!({"turnsPerMinute": 1, "tokensPerDay": 12}));
    alice.caller = limited_token("token", json!({"turnsPerMinute": 1, "tokensPerDay": 12}));
    alice.set_clock(3 * DAY_MS);
    alice.run_answered_turn("one");
    for back in [1, 60_000, DAY_MS, 2 * DAY_MS] {
        alice.set_clock(3 * DAY_MS - back);
        let error = alice.assert_limited(&json!({"id": "s", "message": user("two")}));
        assert!(
            error.details()["retryAfter"].as_i64().unwrap() > 60,
            "{back}"
        );
    }
    alice.set_clock(4 * DAY_MS);
    alice.run_answered_turn("two");
}

#[test]
fn invalid_limits_are_refused_and_change_nothing() {
    let alice = limited(json!({"turnsPerMinute": 5}));
    for (limits, field) in [
        (json!(5), "limits"),
        (json!([]), "limits"),
        (json!({"turnsPerMinute": 0}), "limits.turnsPerMinute"),
        (json!({"turnsPerMinute": -1}), "limits.turnsPerMinute"),
        (json!({"turnsPerMinute": 1e9}), "limits.turnsPerMinute"),
        (json!({"tokensPerDay": 0.5}), "limits.tokensPerDay"),
        (json!({"tokensPerDay": 1e18}), "limits.tokensPerDay"),
        (json!({"costPerDay": 0}), "limits.costPerDay"),
        (json!({"costPerDay": "1"}), "limits.costPerDay"),
        (json!({"turnsPerDay": 1}), "limits.turnsPerDay"),
        (json!({"costPerDay": 1}), "limits.costPerDay"),
    ] {
        for (operation, body) in [
            ("configureAgent", json!({"limits": limits})),
            ("mintToken", json!({"limits": limits, "expiresIn": 60})),
        ] {
            let error = alice.call(operation, body).unwrap_err();
            assert_eq!(
                (error.code.name(), &error.details()["field"]),
                ("invalid_request", &json!(field)),
                "{operation} {limits}"
            );
        }
    }
    let config = alice.ok("getConfig", json!({}));
    assert_eq!(config["limits"], json!({"turnsPerMinute": 5}));
    assert_eq!(config["origins"]["limits"], "agent");
}

#[test]
fn prices_cannot_be_removed_while_a_limit_needs_them() {
    let alice = Alice::with_model();
    let prices = json!({"input": 1, "output": 1});
    alice.ok(
        "configureAgent",
        json!({"prices": prices, "limits": {"costPerDay": 1}}),
    );
    let error = alice
        .call("configureAgent", json!({"prices": null}))
        .unwrap_err();
    assert_eq!(error.details()["field"], "prices");
    alice.ok("configureAgent", json!({"prices": null, "limits": null}));
    // A token minted earlier stays valid.
    let mut alice = alice;
    alice.caller = limited_token("token", json!({"costPerDay": 1}));
    let before = alice.db.dump();
    let error = alice
        .begin(&json!({"id": "s", "message": user("one")}))
        .err()
        .unwrap();
    assert_eq!(
        (error.code.name(), &error.details()["binding"]),
        ("not_configured", &json!("prices"))
    );
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn tokens_of_one_principal_share_a_count() {
    let mut alice = Alice::with_model();
    let mint = |alice: &Alice, more: Value| {
        let mut body = json!({"expiresIn": 60, "limits": {"turnsPerMinute": 1}});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let minted = alice.ok("mintToken", body);
        minted["token"].as_str().unwrap().to_owned()
    };
    let [ann, second_ann, bob, without_holder, second_nobody] = [
        json!({"holder": "ann"}),
        json!({"holder": "ann"}),
        json!({"holder": "bob"}),
        json!({}),
        json!({}),
    ]
    .map(|more| mint(&alice, more));
    let error = alice
        .call("mintToken", json!({"expiresIn": 60, "holder": "ann"}))
        .unwrap_err();
    assert_eq!(error.details()["field"], "holder");
    for (token, text, is_admitted) in [
        (ann, "one", true),
        (second_ann, "two", false),
        (bob, "three", true),
        (without_holder.clone(), "four", true),
        (without_holder, "five", false),
        (second_nobody, "six", true),
    ] {
        let caller = access::identify(&alice.policy, &alice.host, Some("alice"), Some(&token));
        alice.caller = caller.unwrap();
        if is_admitted {
            alice.run_answered_turn(text);
        } else {
            assert_eq!(alice.waits(text).1, PACE);
        }
    }
}

/// Every statement of a limited turn fails once. A refused turn leaves no rows; a
/// started turn is counted.
#[test]
fn a_turn_and_its_usage_are_written_atomically() {
    for passing in 0.. {
        let alice = limited(json!({"turnsPerMinute": 1, "tokensPerDay": 1_000}));
        let before = alice.db.dump();
        let failing = Failing::after(&alice.db, passing);
        let agent = alice.agent(&failing);
        let body = json!({"id": "s", "message": user("one")}).to_string();
        let started = api::chat::begin_chat(&agent, "default", body.as_bytes());
        let has_failed = started.is_err();
        drop(started);
        if has_failed {
            assert_eq!(alice.db.dump(), before, "{passing}");
        } else {
            alice.assert_limited(&json!({"id": "t", "message": user("two")}));
            break;
        }
    }
}

#[test]
fn a_notified_service_can_start_the_next_turn() {
    let alice = limited(json!({"turnsPerMinute": 1}));
    let run = |text: &str| {
        let agent = alice.agent(&alice.db);
        let body = json!({"sessionId": "s", "message": user(text)}).to_string();
        alice
            .finish(&agent, dispatch(&agent, "runTurn", body.as_bytes()))
            .map(drop)
    };
    alice.outbound.answer(text_answer("Yes."));
    run("one").unwrap();
    // The answer is returned again without a turn.
    run("one").unwrap();
    let seconds = run("two").unwrap_err().details()["retryAfter"]
        .as_i64()
        .unwrap();
    alice.host.advance(seconds * 1_000);
    alice.outbound.answer(text_answer("Yes."));
    run("two").unwrap();
}
