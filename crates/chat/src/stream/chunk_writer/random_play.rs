//! Fuzz test: the stock client accepts everything that the writer emits, in any order, and
//! wherever the turn is interrupted. The client's rules are reimplemented here.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::ChunkWriter;
use crate::stream::chunks::Chunk;
use models::{AnswerPart, FinishReason, TokenUsage};

/// The client's state, as far as it affects when the client throws.
#[derive(Default)]
struct Client {
    open: HashSet<String>,
    streaming: HashSet<String>,
    calls: HashSet<String>,
    /// Ids of blocks, of any kind, that it has received.
    blocks: HashSet<String>,
    in_step: bool,
    started: bool,
    ended: bool,
    /// A step started. It becomes visible with its first part.
    step_is_coming: bool,
    /// Calls since the last visible step, and those of them that have an outcome.
    step_calls: HashSet<String>,
    settled: HashSet<String>,
    aborted: bool,
}

impl Client {
    fn receive(&mut self, chunk: &Value) {
        let text = |name: &str| chunk[name].as_str().unwrap().to_owned();
        assert!(!self.ended, "after the end: {chunk}");
        let kind = text("type");
        if !matches!(kind.as_str(), "start" | "error" | "abort") {
            assert!(self.started, "before the start: {chunk}");
        }
        let shows = kind.starts_with("text-")
            || kind.starts_with("reasoning-")
            || kind.starts_with("tool-");
        if shows && std::mem::take(&mut self.step_is_coming) {
            self.step_calls.clear();
            self.settled.clear();
        }
        match kind.as_str() {
            "start" => self.started = true,
            "start-step" => {
                assert!(!self.in_step && self.open.is_empty());
                self.in_step = true;
                self.step_is_coming = true;
            }
            "finish-step" => {
                assert!(self.in_step && self.open.is_empty());
                self.in_step = false;
            }
            "text-start" | "reasoning-start" => {
                assert!(self.in_step && self.open.is_empty());
                assert!(self.blocks.insert(text("id")), "an id twice: {chunk}");
                self.open.insert(text("id"));
            }
            "text-delta" | "reasoning-delta" => {
                assert!(self.open.contains(&text("id")), "no such block: {chunk}");
                assert!(!text("delta").is_empty());
            }
            "text-end" | "reasoning-end" => assert!(self.open.remove(&text("id"))),
            "tool-input-start" => {
                assert!(self.in_step);
                self.streaming.insert(text("toolCallId"));
                self.calls.insert(text("toolCallId"));
                self.step_calls.insert(text("toolCallId"));
            }
            "tool-input-delta" => assert!(self.streaming.contains(&text("toolCallId"))),
            "tool-input-available" => {
                assert!(self.in_step && chunk["input"].is_object());
                self.calls.insert(text("toolCallId"));
                self.step_calls.insert(text("toolCallId"));
            }
            "tool-input-error" => {
                assert!(self.in_step);
                self.calls.insert(text("toolCallId"));
                self.step_calls.insert(text("toolCallId"));
                self.settled.insert(text("toolCallId"));
            }
            "tool-approval-request" => assert!(self.calls.contains(&text("toolCallId"))),
            "tool-output-available" | "tool-output-error" | "tool-output-denied" => {
                assert!(self.calls.contains(&text("toolCallId")));
                self.settled.insert(text("toolCallId"));
            }
            "finish" => {
                let reasons = [
                    "stop",
                    "length",
                    "content-filter",
                    "tool-calls",
                    "error",
                    "other",
                ];
                assert!(reasons.contains(&text("finishReason").as_str()));
                assert!(!self.in_step);
                self.ended = true;
            }
            "abort" => {
                self.ended = true;
                self.aborted = true;
            }
            "error" => self.ended = true,
            other => panic!("a type that the client does not know: {other}"),
        }
    }

    /// Whether a client with automatic resending would resend.
    fn would_resend(&self) -> bool {
        !self.step_calls.is_empty() && self.step_calls.is_subset(&self.settled)
    }
}

/// A small deterministic generator: the same sequence on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn act(writer: &mut ChunkWriter, dice: &mut Dice) -> Vec<Chunk> {
    let index = usize::try_from(dice.roll(3)).unwrap();
    let id = format!("c{}", dice.roll(4));
    let text = ["", "a", "b\n"][usize::try_from(dice.roll(3)).unwrap()].to_owned();
    let arguments = ["", "{}", r#"{"a":1}"#, "{", "[]"][usize::try_from(dice.roll(5)).unwrap()];
    let name = "echo".to_owned();
    let raw = || base::json::raw("1".to_owned()).unwrap();
    match dice.roll(16) {
        0 | 1 => writer.write_part(&AnswerPart::Text(text)),
        2 => writer.write_part(&AnswerPart::Reasoning(text)),
        3 | 4 => writer.write_part(&AnswerPart::CallStart { index, id, name }),
        5 | 6 => writer.write_part(&AnswerPart::CallDelta { index, text }),
        7 | 8 => writer.write_part(&AnswerPart::Call {
            index,
            id,
            name,
            arguments: arguments.to_owned(),
        }),
        9 => writer.write_part(&AnswerPart::Usage(TokenUsage::default())),
        10 => writer.write_part(&AnswerPart::Finish(FinishReason::ToolCalls)),
        11 => writer.start_step(),
        12 => writer.finish_step(),
        13 => writer.output(&id, raw()),
        14 => writer.output_error(&id, "no"),
        _ => writer.ask_approval("ap", &id),
    }
}

fn receive(client: &mut Client, sent: &mut Vec<String>, chunks: Vec<Chunk>) {
    for chunk in chunks {
        let json = chunk.json();
        client.receive(&serde_json::from_str(&json).unwrap());
        sent.push(json);
    }
}

#[test]
fn the_ai_sdk_accepts_every_random_stream() {
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let mut kinds = HashSet::new();
    for _ in 0..2_000 {
        let mut client = Client::default();
        let mut sent = Vec::new();
        let mut writer = ChunkWriter::new(Vec::new());
        if dice.roll(20) > 0 {
            receive(&mut client, &mut sent, writer.start("m", None));
        }
        for _ in 0..dice.roll(30) {
            let chunks = act(&mut writer, &mut dice);
            receive(&mut client, &mut sent, chunks);
        }
        let end = match dice.roll(3) {
            0 if client.started => writer.finish(FinishReason::Stop, None),
            1 => writer.abort(None),
            _ => writer.fail("no"),
        };
        receive(&mut client, &mut sent, end);
        assert!(client.ended && client.open.is_empty(), "{sent:?}");
        assert!(!client.aborted || !client.would_resend(), "{sent:?}");
        kinds.extend(sent.iter().filter_map(|json| {
            let chunk: Value = serde_json::from_str(json).ok()?;
            Some(chunk["type"].as_str()?.to_owned())
        }));
    }
    // The runs covered every kind of chunk.
    assert_eq!(
        kinds.len(),
        19,
        "{}",
        json!(kinds.iter().collect::<Vec<_>>())
    );
}
