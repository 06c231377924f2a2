//! An agent that is destroyed while turns run: each turn is reported as stopped, at any step, and
//! none of its data reappears.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls, define, kinds, receive, user};
use api::dispatch::dispatch;
use base::testing::ScriptedAnswer;
use chat::run::cycle::run;
use store::schema::migrate;

/// The state of a turn when the agent is destroyed.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The model was called and has not answered.
    AwaitingModel,
    /// The model is streaming its answer.
    Speaking,
    /// A tool was called.
    InTool,
    /// A tool answered, and the model was called again.
    AfterTool,
}

fn at(phase: Phase) -> Alice {
    let alice = Alice::with_model();
    alice.ok("configureAgent", json!({"onTurnEnd": {"url": "https://tools.example/ended"}, "limits": {"tokensPerDay": 1_000_000}}));
    define(&alice, "echo", false);
    alice.outbound.hangs_after_answers.set(true);
    let call = || calls(&[("c", "echo", json!({}))]);
    match phase {
        Phase::AwaitingModel => {}
        Phase::Speaking => {
            let delta = json!({"choices": [{"delta": {"content": "Well, "}}]});
            alice
                .outbound
                .answer(Ok(ScriptedAnswer::stream(&format!("data: {delta}\n\n"))));
            alice.outbound.stays_open.set(true);
        }
        Phase::InTool => alice.outbound.answer(call()),
        Phase::AfterTool => {
            alice.outbound.answer(call());
            alice
                .outbound
                .answer(Ok(ScriptedAnswer::text(200, "echoed")));
        }
    }
    alice
}

const PHASES: [Phase; 4] = [
    Phase::AwaitingModel,
    Phase::Speaking,
    Phase::InTool,
    Phase::AfterTool,
];

fn destroy(alice: &Alice, is_recreated: bool) {
    alice.ok("destroy", json!({"confirm": "alice"}));
    // The next request may arrive before the turn detects the destruction.
    if is_recreated {
        migrate(&alice.db, &alice.host).unwrap();
    }
}

#[test]
fn a_turn_of_a_destroyed_agent_is_cancelled_and_writes_nothing() {
    let mut context = Context::from_waker(Waker::noop());
    for (phase, is_recreated) in PHASES.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let case = format!("{phase:?} {is_recreated}");
        let alice = at(phase);
        let agent = alice.agent(&alice.db);
        let started = alice
            .begin(&json!({"id": "s", "message": user("Hello.")}))
            .unwrap();
        let mut running = pin!(run(&agent, started.work.unwrap()));
        assert!(running.as_mut().poll(&mut context).is_pending(), "{case}");
        destroy(&alice, is_recreated);
        let before = alice.db.dump();
        assert!(running.as_mut().poll(&mut context).is_ready(), "{case}");
        let chunks = receive(started.listener);
        assert_eq!(
            *kinds(&chunks).last().unwrap(),
            "abort",
            "{case}: {chunks:?}"
        );
        assert!(!format!("{chunks:?}").contains("safely retry"), "{case}");
        assert_eq!(alice.db.dump(), before, "{case}");
        assert_eq!(agent.turns.running(), 0, "{case}");
    }
}

#[test]
fn a_waiting_caller_learns_that_its_turn_was_cancelled() {
    let mut context = Context::from_waker(Waker::noop());
    for (phase, is_recreated) in PHASES.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let case = format!("{phase:?} {is_recreated}");
        let alice = at(phase);
        let agent = alice.agent(&alice.db);
        let run_turn = |text: &str| {
            let body = json!({"sessionId": "s", "message": user(text), "whenBusy": "queue"});
            dispatch(&agent, "runTurn", body.to_string())
        };
        let (mut first, mut second) = (pin!(run_turn("one")), pin!(run_turn("two")));
        assert!(first.as_mut().poll(&mut context).is_pending(), "{case}");
        let mut running = pin!(run(&agent, alice.starter.take().unwrap()));
        assert!(running.as_mut().poll(&mut context).is_pending(), "{case}");
        assert!(second.as_mut().poll(&mut context).is_pending(), "{case}");
        destroy(&alice, is_recreated);
        assert!(running.as_mut().poll(&mut context).is_ready(), "{case}");
        for waiting in [
            first.as_mut().poll(&mut context),
            second.as_mut().poll(&mut context),
        ] {
            let Poll::Ready(answer) = waiting else {
                panic!("{case}: it waits on");
            };
            let answer: Value = serde_json::from_str(&answer.unwrap().body.into_string()).unwrap();
            assert_eq!(answer["finishReason"], "cancelled", "{case}");
            assert_eq!(answer["message"], Value::Null, "{case}");
        }
    }
}
