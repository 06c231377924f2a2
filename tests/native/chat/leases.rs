//! Turns whose model is called by the holder of a lease. The chunks are the same as without a
//! lease, however the answer is split and whatever is lost.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls, define, receive, text_answer, user};
use api::chat::{StartedTurn, begin_chat};
use base::error::Code;
use base::leased_calls::{
    Arrival, Lease, LeaseHolder, LeasedCall, LeasedEndpoint, LeasedHead, Loss,
};
use base::outbound::CallFailure;
use base::testing::{Dice, ScriptedAnswer, wait_for};
use chat::run::cycle::run;
use chat::run::elsewhere::may_wait_elsewhere;

/// Records its requests for the test.
#[derive(Default)]
struct HolderRequests {
    calls: RefCell<Vec<LeasedCall>>,
    given_up: RefCell<Vec<u32>>,
}

struct Holder(Rc<HolderRequests>);

impl LeaseHolder for Holder {
    fn accepts_calls(&self) -> bool {
        true
    }

    fn ask(&self, call: LeasedCall) {
        self.0.calls.borrow_mut().push(call);
    }

    fn abandon(&self, number: u32) {
        self.0.given_up.borrow_mut().push(number);
    }

    fn resumed(&self) {}
}

type Driven<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

fn lease() -> (Rc<Lease>, Rc<HolderRequests>) {
    let requests = Rc::new(HolderRequests::default());
    (Lease::new(Box::new(Holder(Rc::clone(&requests)))), requests)
}

/// Whether the turn waits for its holder.
fn waits(driven: &mut Driven<'_>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    driven.as_mut().poll(&mut context).is_pending()
}

impl Alice {
    fn drive<'a>(&'a self, lease: &'a Rc<Lease>, started: &mut StartedTurn) -> Driven<'a> {
        let work = started.work.take().unwrap();
        Box::pin(async move {
            let agent = self.agent(&self.db);
            lease.run(run(&agent, work)).await;
        })
    }

    fn begin_with_answers(&self) -> StartedTurn {
        let body = json!({"id": "s", "message": user("Go.")});
        begin_chat(
            &self.agent(&self.db),
            "default",
            body.to_string().as_bytes(),
        )
        .unwrap()
    }
}

fn head(answer: &ScriptedAnswer) -> Arrival {
    Arrival::Head(LeasedHead {
        status: answer.status,
        content_type: answer.content_type.to_owned(),
        retry_after: None,
    })
}

fn bytes_of(answer: &ScriptedAnswer) -> Vec<u8> {
    let chunks = answer.chunks.iter().map(|chunk| chunk.clone().unwrap());
    chunks.flatten().collect()
}

/// Starts an ordinary turn with a tool.
fn direct_chunks(alice: &Alice) -> Vec<Value> {
    for answer in answers() {
        alice.outbound.answer(Ok(answer));
    }
    let started = alice.begin_with_answers();
    alice.run_work(started.work.unwrap());
    receive(started.listener)
}

fn answers() -> Vec<ScriptedAnswer> {
    vec![
        calls(&[("c1", "walk", json!({"to": "Rome"}))]).unwrap(),
        ScriptedAnswer::json(&json!({"miles": 3})).unwrap(),
        text_answer("Three miles, à pied. 🚶").unwrap(),
    ]
}

fn with_tool() -> Alice {
    let alice = Alice::with_model();
    define(&alice, "walk", false);
    alice
}

/// The chunks without the ids that each turn generates.
fn shape(chunks: &[Value]) -> Vec<Value> {
    let mut chunks = chunks.to_vec();
    for chunk in &mut chunks {
        if chunk["type"] == "start" {
            chunk["messageId"] = json!("m");
        }
    }
    chunks
}

#[test]
fn any_chunking_yields_the_same_stream_as_a_direct_call() {
    let expected = shape(&direct_chunks(&with_tool()));
    assert!(expected.len() > 8, "{expected:?}");
    let mut dice = Dice(7);
    for _ in 0..20 {
        let alice = with_tool();
        let [first, tool, second] = <[ScriptedAnswer; 3]>::try_from(answers()).ok().unwrap();
        alice.outbound.answer(Ok(tool));
        let (lease, requests) = lease();
        let mut started = alice.begin_with_answers();
        let mut driven = alice.drive(&lease, &mut started);
        let mut is_over = false;
        for (number, answer) in [(0, &first), (1, &second)] {
            assert!(waits(&mut driven));
            wait_for(lease.until_idle());
            assert!(lease.arrive(number, head(answer)));
            let bytes = bytes_of(answer);
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let (piece, left) = rest.split_at(1 + dice.roll(rest.len().min(40)));
                // Data after the answer's end is ignored.
                lease.arrive(number, Arrival::Bytes(piece.to_vec()));
                if !is_over && (dice.roll(2) == 0 || left.is_empty()) {
                    is_over = !waits(&mut driven);
                }
                rest = left;
            }
        }
        assert!(is_over);
        drop(driven);
        let received = shape(&receive(started.listener));
        assert_eq!(received, expected);
        let sent = alice.outbound.calls.borrow();
        assert_eq!(sent.len(), 1, "only the tool was called by the object");
        let calls = requests.calls.borrow();
        let LeasedEndpoint::Url { url, headers } = &calls[0].endpoint else {
            panic!("a URL");
        };
        assert!(url.ends_with("/chat/completions"), "{url}");
        assert!(headers.iter().any(|(name, _)| name == "authorization"));
    }
}

#[test]
fn only_turns_of_hosted_models_use_a_lease() {
    for (model, may) in [
        ("openai:m", true),
        ("workers-ai:@cf/m", true),
        ("demo", false),
        ("own:m", false),
    ] {
        let alice = Alice::with_model();
        let named = ("MODEL".to_owned(), model.to_owned());
        alice.outbound.settings.borrow_mut().extend([named]);
        let started = alice.begin_with_answers();
        let agent = alice.agent(&alice.db);
        let work = started.work.unwrap();
        let answer = may_wait_elsewhere(&agent, work.turn()).unwrap();
        assert_eq!(answer, may, "{model}");
    }
}

#[test]
fn cancelling_a_turn_ends_its_leased_call() {
    let alice = Alice::with_model();
    let (lease, requests) = lease();
    let mut started = alice.begin_with_answers();
    let mut driven = alice.drive(&lease, &mut started);
    assert!(waits(&mut driven));
    let busy = alice.begin(&json!({"id": "s", "message": user("And?")}));
    assert_eq!(busy.err().unwrap().code, Code::TurnInProgress);
    let stopped = alice.ok("cancelTurn", json!({"sessionId": "s"}));
    assert_eq!(stopped, json!({"cancelled": true}));
    assert!(!waits(&mut driven));
    drop(driven);
    assert_eq!(*requests.given_up.borrow(), [0]);
    let last = receive(started.listener).pop().unwrap();
    assert_eq!(last["type"], "abort");
    assert!(!alice.has_turn_rows());
    assert!(!lease.arrive(0, Arrival::End));
}

#[test]
fn if_the_holder_is_lost_early_the_object_makes_the_call() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Here."));
    let (lease, _) = lease();
    let mut started = alice.begin_with_answers();
    let mut driven = alice.drive(&lease, &mut started);
    assert!(waits(&mut driven));
    assert_eq!(lease.end(), Loss::Nothing);
    assert!(!waits(&mut driven));
    drop(driven);
    let chunks = receive(started.listener);
    assert_eq!(chunks.last().unwrap()["type"], "finish");
    assert_eq!(alice.outbound.calls.borrow().len(), 1);
}

#[test]
fn an_interrupted_answer_is_requested_again_and_stored_once() {
    let alice = Alice::with_model();
    let (lease, requests) = lease();
    let mut started = alice.begin_with_answers();
    let running = Rc::clone(started.work.as_ref().unwrap().running());
    let mut driven = alice.drive(&lease, &mut started);
    assert!(waits(&mut driven));
    let answer = text_answer("Lost words.").unwrap();
    lease.arrive(0, head(&answer));
    let half = bytes_of(&answer);
    lease.arrive(0, Arrival::Bytes(half[..half.len() / 2].to_vec()));
    assert!(waits(&mut driven));
    assert_eq!(lease.end(), Loss::Answer);
    drop(driven);
    alice.turns.interrupt(&running);
    let last = receive(started.listener).pop().unwrap();
    assert_eq!(last["type"], "error", "{last}");
    assert!(!lease.arrive(0, Arrival::End), "a stale lease has no call");
    assert_eq!(*requests.given_up.borrow(), [0]);

    alice.outbound.answer(text_answer("Found words."));
    let round = alice.recover(&alice.db);
    assert_eq!(round.works.len(), 1);
    for work in round.works {
        alice.run_work(work);
    }
    let shown = alice.shown();
    assert_eq!(shown.len(), 2, "{shown:?}");
    let reply = shown[1].to_string();
    assert!(
        reply.contains("Found words.") && !reply.contains("Lost"),
        "{reply}"
    );
}

#[test]
fn a_crash_at_any_message_of_the_holder_is_recovered() {
    let answer = text_answer("One two.").unwrap();
    let bytes = bytes_of(&answer);
    let arrivals: Vec<Arrival> = std::iter::once(head(&answer))
        .chain(bytes.chunks(30).map(|piece| Arrival::Bytes(piece.to_vec())))
        .collect();
    for evicted_after in 0..arrivals.len() - 2 {
        let mut alice = Alice::with_model();
        {
            let (lease, _) = lease();
            let mut started = alice.begin_with_answers();
            let mut driven = alice.drive(&lease, &mut started);
            assert!(waits(&mut driven));
            for arrival in &arrivals[..evicted_after] {
                lease.arrive(0, arrival.clone());
                waits(&mut driven);
            }
        }
        alice.crash();
        alice.outbound.answer(text_answer("Again."));
        for work in alice.recover(&alice.db).works {
            alice.run_work(work);
        }
        let shown = alice.shown();
        assert_eq!(shown.len(), 2, "after {evicted_after}");
        assert!(
            shown[1].to_string().contains("Again."),
            "after {evicted_after}"
        );
    }
}

#[test]
fn a_holder_reports_the_same_as_a_direct_call() {
    let silence_ms = 60_000;
    for failure in [
        CallFailure::TimedOut { silence_ms },
        CallFailure::Unreachable {
            cause: "x".to_owned(),
        },
        CallFailure::Overloaded,
    ] {
        let direct_chunks = {
            let alice = Alice::with_model();
            alice.outbound.answer(Err(failure.clone()));
            let started = alice.begin_with_answers();
            alice.run_work(started.work.unwrap());
            shape(&receive(started.listener))
        };
        let alice = Alice::with_model();
        let (lease, _) = lease();
        let mut started = alice.begin_with_answers();
        let mut driven = alice.drive(&lease, &mut started);
        assert!(waits(&mut driven));
        lease.arrive(0, Arrival::Failed(failure));
        assert!(!waits(&mut driven));
        drop(driven);
        assert_eq!(shape(&receive(started.listener)), direct_chunks);
    }
}
