//! Recorded answers, each replayed with a cut at every byte.

use super::received;
use crate::choice::Provider;

const RECORDED: &[(&str, Provider, &str, &[&str])] = &[
    (
        "openai_text",
        Provider::OpenAi,
        include_str!("../recorded/openai_text.txt"),
        &[
            "text Grüße",
            "text  👋 from",
            "text  Lisbon.\n",
            "usage 19 7",
            "finish Stop",
        ],
    ),
    (
        "openai_parallel_calls",
        Provider::OpenAi,
        include_str!("../recorded/openai_parallel_calls.txt"),
        &[
            "start 0 call_aB1 set_context",
            "delta 0 {\"la",
            "start 1 call_cD2 session_search",
            "delta 0 bel\":\"memory\",\"content\":\"é\"}",
            "delta 1 {\"query\":",
            "delta 1 \"lisbon\"}",
            "call 0 call_aB1 set_context {\"label\":\"memory\",\"content\":\"é\"}",
            "call 1 call_cD2 session_search {\"query\":\"lisbon\"}",
            "usage 80 41",
            "finish ToolCalls",
        ],
    ),
    (
        // The output of packages/session-agent/src/worker/model.ts.
        "own_reasoning_and_call",
        Provider::Own,
        include_str!("../recorded/own_reasoning_and_call.txt"),
        &[
            "reasoning I look.",
            "text Just a moment.",
            "start 0 c1 weather",
            "delta 0 {\"city\":\"Oslo\"}",
            "call 0 c1 weather {\"city\":\"Oslo\"}",
            "usage 10 3, 2 cached",
            "finish ToolCalls",
        ],
    ),
    (
        "openrouter_reasoning",
        Provider::OpenAi,
        include_str!("../recorded/openrouter_reasoning.txt"),
        &[
            "reasoning Let me",
            "reasoning  think.",
            "text 42",
            "usage 11 9",
            "finish Stop",
        ],
    ),
    (
        "llama_cpp_text",
        Provider::OpenAi,
        include_str!("../recorded/llama_cpp_text.txt"),
        &["text Hi", "usage 31 2", "finish Length"],
    ),
    (
        "openai_whole",
        Provider::OpenAi,
        include_str!("../recorded/openai_whole.txt"),
        &[
            "text Looking.",
            "start 0 call_e echo",
            "delta 0 {\"a\":1}",
            "call 0 call_e echo {\"a\":1}",
            "usage 50 12",
            "finish ToolCalls",
        ],
    ),
    (
        "openai_cached",
        Provider::OpenAi,
        include_str!("../recorded/openai_cached.txt"),
        &["text Yes.", "usage 2006 300, 1920 cached", "finish Stop"],
    ),
    (
        "deepseek_cached",
        Provider::OpenAi,
        include_str!("../recorded/deepseek_cached.txt"),
        &["text Yes.", "usage 1061 4, 1024 cached", "finish Stop"],
    ),
    (
        "anthropic_cached",
        Provider::Anthropic,
        include_str!("../recorded/anthropic_cached.txt"),
        &["text Yes.", "usage 3061 4, 2048 cached", "finish Stop"],
    ),
    (
        "anthropic_text",
        Provider::Anthropic,
        include_str!("../recorded/anthropic_text.txt"),
        &[
            "text Olá",
            "text , 世界!",
            "usage 112 8, 100 cached",
            "finish Stop",
        ],
    ),
    (
        "anthropic_thinking_and_calls",
        Provider::Anthropic,
        include_str!("../recorded/anthropic_thinking_and_calls.txt"),
        &[
            "reasoning Two things to do.",
            "text Let me look.",
            "start 0 toolu_01X load_context",
            "delta 0 {\"label\": \"ski",
            "delta 0 lls\", \"key\": \"é\"}",
            "call 0 toolu_01X load_context {\"label\": \"skills\", \"key\": \"é\"}",
            "start 1 toolu_01Y now",
            "call 1 toolu_01Y now {}",
            "kept {\"thoughts\":[{\"at\":0,\"block\":{\"signature\":\"EqQBCgIYAhIM\",\"thinking\":\"Two things to do.\",\"type\":\"thinking\"}}]}",
            "usage 472 89",
            "finish ToolCalls",
        ],
    ),
    (
        "anthropic_overloaded",
        Provider::Anthropic,
        include_str!("../recorded/anthropic_overloaded.txt"),
        &[
            "text Hel",
            "usage 5 1",
            "failed Anthropic is overloaded (`overloaded_error`). Try again in a moment.",
        ],
    ),
    (
        "anthropic_whole",
        Provider::Anthropic,
        include_str!("../recorded/anthropic_whole.txt"),
        &[
            "text Looking.",
            "start 0 toolu_01Z echo",
            "delta 0 {\"a\":1}",
            "call 0 toolu_01Z echo {\"a\":1}",
            "usage 50 12",
            "finish ToolCalls",
        ],
    ),
    (
        "workers_ai_text",
        Provider::WorkersAi,
        include_str!("../recorded/workers_ai_text.txt"),
        &[
            "text The",
            "text  answer is ",
            "text 42",
            "text  — voilà",
            "usage 25 6",
            "finish Stop",
        ],
    ),
    (
        "workers_ai_calls",
        Provider::WorkersAi,
        include_str!("../recorded/workers_ai_calls.txt"),
        &[
            "start 0 chatcmpl-tool-1 search_context",
            "delta 0 {\"label\": \"notes\",",
            "delta 0  \"query\": \"café\"}",
            "call 0 chatcmpl-tool-1 search_context {\"label\": \"notes\", \"query\": \"café\"}",
            "usage 210 24",
            "finish ToolCalls",
        ],
    ),
    (
        "workers_ai_choices",
        Provider::WorkersAi,
        include_str!("../recorded/workers_ai_choices.txt"),
        &[
            "reasoning The user greets.",
            "text Hello!",
            "usage 14 17",
            "finish Stop",
        ],
    ),
    (
        "workers_ai_whole",
        Provider::WorkersAi,
        include_str!("../recorded/workers_ai_whole.txt"),
        &[
            "start 0 call_0 echo",
            "delta 0 {\"a\":1}",
            "start 1 call_1 echo",
            "delta 1 {\"a\":2}",
            "call 0 call_0 echo {\"a\":1}",
            "call 1 call_1 echo {\"a\":2}",
            "usage 50 12",
            "finish ToolCalls",
        ],
    ),
];

#[test]
fn each_recorded_answer_parses_to_its_expected_events() {
    for (name, provider, text, expected) in RECORDED {
        assert_eq!(received(*provider, &[text.as_bytes()]), *expected, "{name}");
    }
}

#[test]
fn splitting_an_answer_at_any_byte_changes_nothing() {
    for (name, provider, text, expected) in RECORDED {
        for cut in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(cut);
            assert_eq!(
                received(*provider, &[head, tail]),
                *expected,
                "{name} at {cut}"
            );
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(
            received(*provider, &bytes),
            *expected,
            "{name} byte by byte"
        );
    }
}

#[test]
fn line_endings_change_nothing() {
    for (name, provider, text, expected) in RECORDED {
        let text = text.replace("\r\n", "\n");
        for end in ["\r\n", "\r"] {
            let text = text.replace('\n', end);
            assert_eq!(
                received(*provider, &[text.as_bytes()]),
                *expected,
                "{name} {end:?}"
            );
        }
    }
}

#[test]
fn a_truncated_answer_is_never_a_normal_end() {
    for (name, provider, text, expected) in RECORDED {
        let (end, expected_words) = expected.split_last().unwrap_or((&"", &[]));
        for cut in 0..text.len() {
            let received = received(*provider, &[&text.as_bytes()[..cut]]);
            let last = received.last().map(String::as_str).unwrap_or_default();
            assert!(
                last == *end || last.starts_with("failed "),
                "{name} at {cut}: {last}"
            );
            // A successful end follows all other parts; only the usage,
            // which is sent last, may be missing.
            if !last.starts_with("failed ") {
                let words = |parts: &[&str]| -> Vec<String> {
                    let words = parts.iter().filter(|part| !part.starts_with("usage "));
                    words.map(|part| (*part).to_owned()).collect()
                };
                let received: Vec<&str> = received.iter().map(String::as_str).collect();
                let (_, received) = received.split_last().unwrap_or((&"", &[]));
                assert_eq!(words(received), words(expected_words), "{name} at {cut}");
            }
        }
    }
}

#[test]
fn a_corrupted_answer_ends_exactly_once() {
    let mut random: u64 = 1;
    for _ in 0..4_000 {
        let mut draw = |below: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % below
        };
        let (name, _, text, _) = &RECORDED[draw(RECORDED.len())];
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=draw(4) {
            let at = draw(bytes.len());
            let length = draw(40).min(bytes.len() - at);
            match draw(3) {
                0 => bytes[at] = draw(256) as u8,
                1 => drop(bytes.drain(at..at + length)),
                _ => {
                    let copy = bytes[at..at + length].to_vec();
                    let to = draw(bytes.len());
                    bytes.splice(to..to, copy);
                }
            }
        }
        for provider in Provider::ALL {
            let received = received(provider, &[&bytes]);
            let is_end =
                |line: &&String| line.starts_with("finish ") || line.starts_with("failed ");
            assert_eq!(
                received.iter().filter(is_end).count(),
                1,
                "{name}: {received:?}"
            );
            assert!(
                received.last().as_ref().is_some_and(is_end),
                "{name}: {received:?}"
            );
        }
    }
}

#[test]
fn each_provider_has_a_recorded_answer() {
    for provider in Provider::ALL {
        let is_recorded = RECORDED.iter().any(|(_, of, ..)| *of == provider);
        assert!(is_recorded, "{}: models/recorded/", provider.name());
    }
}
