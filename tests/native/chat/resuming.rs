//! Sockets that acknowledge an offered turn late receive its answer in chunks.

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{text_answer, text_of, user};
use api::socket::{FrameOutcome, SocketState, handle_frame};
use base::budget::{ByteBudget, TURNS};
use base::ids::Id;
use base::testing::wait_for;

impl Alice {
    fn receives(&self, state: &SocketState, frame: &Value) -> FrameOutcome {
        wait_for(handle_frame(
            &self.agent(&self.db),
            state,
            &frame.to_string(),
        ))
        .unwrap()
    }

    /// A socket that was offered a turn, which has since ended with this answer.
    fn late(&self, answer: &str) -> (SocketState, String) {
        self.outbound.answer(text_answer(answer));
        let started = self
            .begin(&json!({"id": "s", "message": user("Go.")}))
            .unwrap();
        let new = SocketState::new(Id::parse("s".to_owned()).unwrap(), &self.caller);
        let request = json!({"type": "cf_agent_stream_resume_request", "probeId": "p"});
        let offered = self.receives(&new, &request);
        let reply: Value = serde_json::from_str(&offered.replies[0]).unwrap();
        assert_eq!(reply["type"], "cf_agent_stream_resuming");
        let state = offered.state.unwrap();
        assert!(state.awaits_replay);
        self.audience.awaits_replay.set(true);
        self.run_work(started.work.unwrap());
        (state, reply["id"].as_str().unwrap().to_owned())
    }

    /// The frames that answer an acknowledgement, and the socket's new state.
    fn acknowledges(&self, state: &SocketState, id: &str) -> (Vec<Value>, SocketState) {
        let ack = json!({"type": "cf_agent_stream_resume_ack", "id": id});
        let answer = self.receives(state, &ack);
        let read = |frame: &String| serde_json::from_str(frame).unwrap();
        (
            answer.replies.iter().map(read).collect(),
            answer.state.unwrap(),
        )
    }
}

/// The chunks of frames whose last ones are the turn's end and the session's messages.
fn chunks(frames: &[Value]) -> Vec<Value> {
    let (list, rest) = frames.split_last().unwrap();
    let (done, chunks) = rest.split_last().unwrap();
    assert_eq!(list["type"], "cf_agent_chat_messages");
    assert_eq!((&done["done"], &done["body"]), (&json!(true), &json!("")));
    for (seq, frame) in chunks.iter().enumerate() {
        assert_eq!(
            (&frame["seq"], &frame["replay"]),
            (&json!(seq), &json!(true))
        );
    }
    let read = |frame: &Value| serde_json::from_str(frame["body"].as_str().unwrap()).unwrap();
    chunks.iter().map(read).collect()
}

#[test]
fn a_late_acknowledgement_gets_the_chunks_of_a_finished_turn() {
    let alice = Alice::with_model();
    let (state, id) = alice.late("Here it is.");
    let (frames, freed) = alice.acknowledges(&state, &id);
    let answer = chunks(&frames);
    assert_eq!(text_of(&answer), "Here it is.");
    assert_eq!(answer[0]["type"], "start");
    assert_eq!(answer.last().unwrap()["type"], "finish");
    assert!(!freed.awaits_replay);
    // A second replay would show the answer twice.
    assert!(chunks(&alice.acknowledges(&freed, &id).0).is_empty());
    // Another turn's id gets no chunks of this one.
    assert!(chunks(&alice.acknowledges(&state, "other").0).is_empty());
}

#[test]
fn chunks_held_for_a_resume_are_released_after_a_timeout() {
    let alice = Alice::with_model();
    let (state, id) = alice.late("Here it is.");
    for _ in 0..2 {
        assert!(alice.turns.is_busy());
        assert!(TURNS.with(ByteBudget::reserved_bytes) > 0);
        alice.turns.disconnect_silent();
    }
    assert_eq!(TURNS.with(ByteBudget::reserved_bytes), 0);
    assert!(!alice.turns.is_busy());
    let (frames, _) = alice.acknowledges(&state, &id);
    assert!(chunks(&frames).is_empty());
    // The list contains the answer.
    assert_eq!(
        frames.last().unwrap()["messages"].as_array().unwrap().len(),
        2
    );
}

#[test]
fn a_cleared_session_replays_nothing() {
    let alice = Alice::with_model();
    let (state, id) = alice.late("Here it is.");
    alice.ok("clearMessages", json!({"sessionId": "s"}));
    let (frames, _) = alice.acknowledges(&state, &id);
    assert!(chunks(&frames).is_empty());
    assert_eq!(frames.last().unwrap()["messages"], json!([]));
}

#[test]
fn no_chunks_are_kept_without_a_waiting_socket() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Hello."));
    let started = alice
        .begin(&json!({"id": "s", "message": user("Hi.")}))
        .unwrap();
    drop(started.listener);
    alice.run_work(started.work.unwrap());
    assert!(!alice.turns.is_busy());
    assert_eq!(TURNS.with(ByteBudget::reserved_bytes), 0);
}
