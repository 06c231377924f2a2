use super::*;
use serde_json::{Value, json};

/// The chunks that are sent, without braces: `text-delta p0 Hello`.
fn summarize(chunks: &[Chunk]) -> Vec<String> {
    let line = |chunk: &Chunk| {
        let value: Value = serde_json::from_str(&chunk.json()).unwrap();
        let Value::Object(fields) = value else {
            panic!("a chunk is an object")
        };
        let words: Vec<String> = [
            "type",
            "messageId",
            "id",
            "toolCallId",
            "delta",
            "inputTextDelta",
            "input",
            "output",
            "errorText",
            "finishReason",
            "reason",
        ]
        .iter()
        .filter_map(|name| fields.get(*name))
        .map(|value| value.as_str().map_or(value.to_string(), str::to_owned))
        .collect();
        words.join(" ")
    };
    chunks.iter().map(line).collect()
}

fn started() -> ChunkWriter {
    let mut writer = ChunkWriter::new(Vec::new());
    writer.start("m", None);
    writer
}

fn write(writer: &mut ChunkWriter, parts: &[AnswerPart]) -> Vec<String> {
    let chunks: Vec<Chunk> = parts
        .iter()
        .flat_map(|part| writer.write_part(part))
        .collect();
    summarize(&chunks)
}

fn text(text: &str) -> AnswerPart {
    AnswerPart::Text(text.to_owned())
}

fn reasoning(text: &str) -> AnswerPart {
    AnswerPart::Reasoning(text.to_owned())
}

fn call_start(index: usize, id: &str) -> AnswerPart {
    AnswerPart::CallStart {
        index,
        id: id.to_owned(),
        name: "echo".to_owned(),
    }
}

fn call_delta(index: usize, text: &str) -> AnswerPart {
    AnswerPart::CallDelta {
        index,
        text: text.to_owned(),
    }
}

fn call(index: usize, id: &str, arguments: &str) -> AnswerPart {
    AnswerPart::Call {
        index,
        id: id.to_owned(),
        name: "echo".to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    json::raw(value.to_string()).unwrap()
}

#[test]
fn a_text_block_starts_and_ends_within_a_step() {
    let mut writer = ChunkWriter::new(Vec::new());
    assert_eq!(summarize(&writer.start("m", None)), ["start m"]);
    assert_eq!(summarize(&writer.start_step()), ["start-step"]);
    assert_eq!(
        write(&mut writer, &[text("Hel"), text(""), text("lo")]),
        ["text-start p0", "text-delta p0 Hel", "text-delta p0 lo"]
    );
    assert_eq!(
        summarize(&writer.finish(FinishReason::Stop, None)),
        ["text-end p0", "finish-step", "finish stop"]
    );
    assert!(writer.has_ended());
}

#[test]
fn a_block_ends_before_another_kind_starts_and_ids_are_unique() {
    let mut writer = started();
    assert_eq!(
        write(
            &mut writer,
            &[reasoning("hm"), text("a"), reasoning("oh"), text("b")]
        ),
        [
            "start-step",
            "reasoning-start p0",
            "reasoning-delta p0 hm",
            "reasoning-end p0",
            "text-start p1",
            "text-delta p1 a",
            "text-end p1",
            "reasoning-start p2",
            "reasoning-delta p2 oh",
            "reasoning-end p2",
            "text-start p3",
            "text-delta p3 b",
        ]
    );
}

#[test]
fn a_block_in_the_next_step_gets_a_new_id() {
    let mut writer = started();
    write(&mut writer, &[text("a")]);
    assert_eq!(
        summarize(&writer.start_step()),
        ["text-end p0", "finish-step", "start-step"]
    );
    assert_eq!(
        write(&mut writer, &[text("b")]),
        ["text-start p1", "text-delta p1 b"]
    );
}

#[test]
fn calls_stream_in_parallel_and_end_with_their_inputs() {
    let mut writer = started();
    let parts = [
        text("See:"),
        call_start(0, "c1"),
        call_delta(0, "{\"a\""),
        call_start(1, "c2"),
        call_delta(1, "{}"),
        call_delta(0, ":1}"),
        call(0, "c1", "{\"a\":1}"),
        call(1, "c2", "{}"),
    ];
    assert_eq!(
        write(&mut writer, &parts),
        [
            "start-step",
            "text-start p0",
            "text-delta p0 See:",
            "text-end p0",
            "tool-input-start c1",
            "tool-input-delta c1 {\"a\"",
            "tool-input-start c2",
            "tool-input-delta c2 {}",
            "tool-input-delta c1 :1}",
            "tool-input-available c1 {\"a\":1}",
            "tool-input-available c2 {}",
        ]
    );
    assert_eq!(
        summarize(&writer.output("c1", raw(&json!("one")))),
        ["tool-output-available c1 one"]
    );
    assert_eq!(
        summarize(&writer.output_error("c2", "broken")),
        ["tool-output-error c2 broken"]
    );
}

#[test]
fn a_complete_call_has_no_start_or_argument_deltas() {
    let mut writer = started();
    assert_eq!(
        write(&mut writer, &[call(0, "c", "")]),
        ["start-step", "tool-input-available c {}"]
    );
}

#[test]
fn arguments_that_are_not_an_object_are_an_error_of_the_call() {
    for arguments in ["{\"a\":", "[1]", "\"a\"", "{}{}", "{\"a\":\"\\ud800\"}"] {
        let mut writer = started();
        let chunks = write(&mut writer, &[call(0, "c", arguments)]);
        assert_eq!(
            chunks,
            [
                "start-step".to_owned(),
                format!("tool-input-error c {arguments} {BAD_ARGUMENTS}")
            ]
        );
    }
}

#[test]
fn a_delta_of_an_unknown_call_is_not_sent() {
    let mut writer = started();
    assert!(write(&mut writer, &[call_delta(0, "{")]).is_empty());
    write(&mut writer, &[call_start(0, "c"), call(0, "c", "{}")]);
    assert!(write(&mut writer, &[call_delta(0, "{")]).is_empty());
}

#[test]
fn only_calls_known_to_the_client_get_an_outcome() {
    let mut writer = ChunkWriter::new(vec!["earlier".to_owned()]);
    writer.start("m", None);
    assert!(writer.output("unheard", raw(&json!(1))).is_empty());
    assert!(writer.ask_approval("a", "unheard").is_empty());
    assert_eq!(
        summarize(&writer.output("earlier", raw(&json!(1)))),
        ["tool-output-available earlier 1"]
    );
    assert_eq!(
        summarize(&writer.output_denied("earlier")),
        ["tool-output-denied earlier"]
    );
}

#[test]
fn a_cut_closes_open_blocks() {
    let mut writer = started();
    write(&mut writer, &[text("half a sen")]);
    assert_eq!(
        summarize(&writer.abort(Some("cancelled"))),
        ["text-end p0", "abort cancelled"]
    );
    let mut writer = started();
    write(&mut writer, &[reasoning("half a th")]);
    assert_eq!(
        summarize(&writer.fail("The model broke off.")),
        ["reasoning-end p0", "error The model broke off."]
    );
}

#[test]
fn a_cut_after_finished_calls_starts_a_new_step() {
    let mut writer = started();
    write(&mut writer, &[call(0, "c", "{}")]);
    writer.output("c", raw(&json!(1)));
    assert_eq!(
        summarize(&writer.abort(None)),
        [
            "finish-step",
            "start-step",
            "text-start p0",
            "text-end p0",
            "abort"
        ]
    );
    let mut writer = started();
    write(&mut writer, &[call(0, "c", "{}")]);
    writer.output("c", raw(&json!(1)));
    writer.finish_step();
    assert_eq!(
        summarize(&writer.abort(None)),
        ["start-step", "text-start p0", "text-end p0", "abort"]
    );
}

#[test]
fn a_cut_in_an_empty_step_leaves_a_part_in_it() {
    let mut writer = started();
    write(&mut writer, &[call(0, "c", "{}")]);
    writer.output("c", raw(&json!(1)));
    writer.start_step();
    assert_eq!(
        summarize(&writer.abort(None)),
        ["text-start p0", "text-end p0", "abort"]
    );
    // If no call was made, there is nothing to send again.
    let mut writer = started();
    writer.start_step();
    assert_eq!(summarize(&writer.abort(None)), ["abort"]);
}

#[test]
fn a_failure_before_any_content_is_reported() {
    let mut writer = ChunkWriter::new(Vec::new());
    assert_eq!(summarize(&writer.fail("no")), ["error no"]);
}

#[test]
fn nothing_is_sent_after_the_end() {
    let mut writer = started();
    writer.finish(FinishReason::Stop, None);
    assert!(write(&mut writer, &[text("more"), call(0, "c", "{}")]).is_empty());
    assert!(writer.start("n", None).is_empty());
    assert!(writer.start_step().is_empty());
    assert!(writer.finish(FinishReason::Stop, None).is_empty());
    assert!(writer.abort(None).is_empty());
    assert!(writer.fail("late").is_empty());
}

#[test]
fn provider_metadata_is_not_sent() {
    let mut writer = started();
    let parts = [
        AnswerPart::Usage(models::TokenUsage::default()),
        AnswerPart::Finish(FinishReason::Stop),
        AnswerPart::Failed("secret".to_owned()),
    ];
    assert!(write(&mut writer, &parts).is_empty());
}
