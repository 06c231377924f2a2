//! Requests during another turn of their session.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use super::{Answered, chat, in_session, unstreamed_text, user};
use crate::Alice;
use access::{Caller, TokenScope};
use base::error::Error;
use base::testing::wait_for;
use chat::run::work::TurnWork;
use models::caller_fields::ProviderApi;
use provider_api::begin::StartedAnswer;
use provider_api::queue::begin_queued;

const API: ProviderApi = ProviderApi::ChatCompletions;

impl Alice {
    /// An agent with a running turn of the session `s`.
    fn talking(when_busy: &str) -> (Self, TurnWork) {
        Self::talking_with(json!({"whenBusy": when_busy}))
    }

    fn talking_with(settings: Value) -> (Self, TurnWork) {
        let alice = Self::with_model();
        alice.ok("configureAgent", settings);
        let started = alice.begin_api(API, &in_session("s"), &chat(json!([user("one")])));
        let work = started.unwrap().work.unwrap();
        (alice, work)
    }

    async fn request_queued(&self, body: Value) -> Result<StartedAnswer, Error> {
        let agent = self.agent(&self.db);
        let headers = in_session("s");
        begin_queued(&agent, API, None, &headers, body.to_string().as_bytes()).await
    }

    fn answer_to(&self, started: StartedAnswer, answer: Answered) -> String {
        self.outbound.answer(answer);
        self.run_work(started.work.unwrap());
        wait_for(started.listener.whole()).unwrap()
    }

    fn texts(&self) -> Vec<String> {
        let shown = self.shown_in("s");
        let text = |message: &Value| message["parts"][0]["text"].as_str().unwrap().to_owned();
        shown.iter().map(text).collect()
    }
}

fn is_waiting<T>(future: Pin<&mut impl Future<Output = T>>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    matches!(future.poll(&mut context), Poll::Pending)
}

fn code<T>(result: Result<T, Error>) -> &'static str {
    result.err().unwrap().code.name()
}

#[test]
fn a_request_during_a_turn_is_refused_unless_the_agent_queues_it() {
    let (alice, work) = Alice::talking("reject");
    let result = wait_for(alice.request_queued(chat(json!([user("two")]))));
    assert_eq!(code(result), "turn_in_progress");
    alice.outbound.answer(unstreamed_text("One."));
    alice.run_work(work);
}

#[test]
fn a_queued_request_finds_its_position_after_the_turn() {
    let (alice, work) = Alice::talking("queue");
    let history = json!([user("one"), {"role": "assistant", "content": "One."}, user("two")]);
    let mut second = pin!(alice.request_queued(chat(history.clone())));
    let mut third = pin!(alice.request_queued(chat(history)));
    assert!(is_waiting(second.as_mut()) && is_waiting(third.as_mut()));
    assert_eq!(alice.shown_in("s").len(), 1, "none of them is stored");
    alice.outbound.answer(unstreamed_text("One."));
    alice.run_work(work);
    let started = wait_for(second).unwrap();
    // The same request joins the turn.
    let joined = wait_for(third).unwrap();
    assert!(joined.work.is_none());
    let answer = alice.answer_to(started, unstreamed_text("Two."));
    assert_eq!(wait_for(joined.listener.whole()).unwrap(), answer);
    assert_eq!(alice.texts(), ["one", "One.", "two", "Two."]);
}

#[test]
fn a_request_replaces_the_turn_if_configured_and_allowed() {
    let (alice, work) = Alice::talking("replace");
    let mut second = pin!(alice.request_queued(chat(json!([user("two")]))));
    assert!(is_waiting(second.as_mut()));
    alice.run_work(work);
    assert_eq!(alice.sent_bodies().len(), 0, "the first turn was stopped");
    let answer = alice.answer_to(wait_for(second).unwrap(), unstreamed_text("Two."));
    assert!(answer.contains("Two."), "{answer}");

    let (mut alice, work) = Alice::talking("replace");
    alice.caller = Caller::Scoped(TokenScope {
        operations: Some(vec!["chat".to_owned()]),
        expires_at: i64::MAX,
        ..TokenScope::default()
    });
    let result = wait_for(alice.request_queued(chat(json!([user("two")]))));
    assert_eq!(code(result), "turn_in_progress");
    alice.outbound.answer(unstreamed_text("One."));
    alice.run_work(work);
}

#[test]
fn a_refused_request_is_not_queued() {
    // A limit counts the turns that start while it is set.
    let settings = json!({"whenBusy": "replace", "limits": {"turnsPerMinute": 1}});
    let (mut alice, work) = Alice::talking_with(settings);
    let result = wait_for(alice.request_queued(chat(json!([user("two")]))));
    assert_eq!(code(result), "rate_limited");
    alice.ok("configureAgent", json!({"limits": null}));
    alice.caller = Caller::Scoped(TokenScope {
        operations: Some(vec!["chat".to_owned(), "cancelTurn".to_owned()]),
        expires_at: i64::MAX,
        ..TokenScope::default()
    });
    let mut body = chat(json!([user("two")]));
    body["model"] = json!("another");
    assert_eq!(code(wait_for(alice.request_queued(body))), "forbidden");
    alice.outbound.answer(unstreamed_text("One."));
    alice.run_work(work);
    assert_eq!(alice.sent_bodies().len(), 1, "the turn was not stopped");
}

#[test]
fn sixteen_requests_are_queued_and_one_more_is_refused() {
    let (alice, work) = Alice::talking("queue");
    let request = |n: usize| alice.request_queued(chat(json!([user(&format!("question {n}"))])));
    let mut waiting: Vec<_> = (0..16).map(|n| Box::pin(request(n))).collect();
    for future in &mut waiting {
        assert!(is_waiting(future.as_mut()));
    }
    assert_eq!(code(wait_for(request(16))), "rate_limited");
    // A client that disconnects leaves the queue.
    drop(waiting.pop());
    let mut last = Box::pin(request(16));
    assert!(is_waiting(last.as_mut()));
    waiting.push(last);
    alice.outbound.answer(unstreamed_text("Zero."));
    alice.run_work(work);
    for (n, future) in waiting.into_iter().enumerate() {
        let answer = alice.answer_to(
            wait_for(future).unwrap(),
            unstreamed_text(&format!("Answer {n}.")),
        );
        assert!(answer.contains(&format!("Answer {n}.")), "{answer}");
    }
}
