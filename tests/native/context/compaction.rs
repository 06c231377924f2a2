//! Compaction: the messages that a summary covers, the text that a reader gets instead, and the
//! result of failures.

use std::cell::{Cell, RefCell};

use serde_json::{Value, json};

use crate::Alice;
use base::database::Database;
use base::error::{Code, Error};
use base::ids::Id;
use base::outbound::LocalBoxFuture;
use base::testing::{Dice, ScriptedAnswer, cut_off, wait_for};
use context::compaction::act::{
    CompactionOutcome, CompactionReason, CompactionTask, Compactor, NewSummary, Summarizer,
};
use context::compaction::auto::{CompactionTracker, after_append};
use context::compaction::configure::load_settings;
use context::compaction::fixed::load_fixed;
use conversation::log::tip::get_tip;
use memory::Memory;
use models::TokenUsage;

/// A summariser that answers `summary n`, records the prompts, and fails on demand.
#[derive(Default)]
pub struct Scripted<'a> {
    pub prompts: RefCell<Vec<String>>,
    pub fails: Cell<bool>,
    pub during_call: Option<&'a dyn Fn()>,
    /// The usage that each answer reports.
    pub usage: TokenUsage,
    /// The request that is never answered.
    pub hangs_at: Option<usize>,
}

impl Summarizer for Scripted<'_> {
    fn summarize<'a>(&'a self, prompt: String, _: i64) -> LocalBoxFuture<'a, NewSummary> {
        self.prompts.borrow_mut().push(prompt);
        if let Some(during_call) = self.during_call {
            during_call();
        }
        let answer = if self.fails.get() {
            Err(Error::new(Code::ModelFailed, "The model is out."))
        } else {
            Ok(format!("summary {}", self.prompts.borrow().len()))
        };
        let usage = self.usage;
        let hangs = self.hangs_at == Some(self.prompts.borrow().len());
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            NewSummary {
                summary: answer,
                usage,
                cost: 0.0,
                model: None,
            }
        })
    }
}

fn id(text: &str) -> Id {
    Id::parse(text.to_owned()).unwrap()
}

pub fn compact(
    alice: &Alice,
    scripted: &Scripted<'_>,
    leaf: Option<i64>,
    dry_run: bool,
) -> CompactionOutcome {
    wait_for(compacting(alice, scripted, leaf, dry_run)).unwrap()
}

async fn compacting(
    alice: &Alice,
    scripted: &Scripted<'_>,
    leaf: Option<i64>,
    dry_run: bool,
) -> Result<CompactionOutcome, Error> {
    let session_id = id("s");
    let tip = get_tip(&alice.db, &session_id).unwrap();
    let task = CompactionTask {
        session_id: &session_id,
        leaf_seq: leaf.unwrap_or(tip.leaf.unwrap().seq),
        settings: load_settings(
            &alice.db,
            &crate::deployed(&alice.outbound).compaction,
            Some(&session_id),
        )
        .unwrap(),
        fixed: load_fixed(&memory(alice), &session_id, &[]).unwrap(),
        is_auto: false,
        dry_run,
        capacity: None,
    };
    compactor(alice, scripted).compact(&task).await
}

fn memory(alice: &Alice) -> Memory<'_> {
    Memory {
        agent: "alice",
        db: &alice.db,
        host: &alice.host,
        outbound: &alice.outbound,
        deployed: &crate::deployed(&alice.outbound).memory,
        new_callbacks: &alice.work.callbacks.new,
        pending_vectors: &alice.work.vectors,
        pages: &alice.work.pages,
        payer: None,
        asking: None,
        via: &[],
    }
}

fn compactor<'a>(alice: &'a Alice, scripted: &'a Scripted<'_>) -> Compactor<'a> {
    Compactor {
        db: &alice.db,
        host: &alice.host,
        summariser: scripted,
    }
}

/// Appends a message and runs the work that follows an append. Returns the reason, if
/// compaction was tried.
fn grow(
    alice: &Alice,
    scripted: &Scripted<'_>,
    compactions: &CompactionTracker,
    text: &str,
) -> Option<CompactionReason> {
    alice.append_texts(&[text]);
    let session_id = id("s");
    let fixed = || load_fixed(&memory(alice), &session_id, &[]);
    let compactor = compactor(alice, scripted);
    let outcome = wait_for(after_append(
        compactions,
        &compactor,
        &crate::deployed(&alice.outbound).compaction,
        &session_id,
        &fixed,
    ))
    .unwrap();
    outcome.map(|outcome| outcome.reason)
}

/// An agent whose session has the messages `m1` … `mN`. Each message's id is its number.
pub fn numbered(count: usize) -> Alice {
    let alice = Alice::with_session();
    let events: Vec<Value> = (1..=count)
        .map(
            |n| json!({"id": format!("{n}"), "action": "user_message", "content": format!("m{n}")}),
        )
        .collect();
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    alice
}

fn shown(page: &Value) -> String {
    let text = |message: &Value| message["parts"][0]["text"].as_str().unwrap().to_owned();
    let messages = page["messages"].as_array().unwrap();
    messages.iter().map(text).collect::<Vec<_>>().join(" ")
}

fn history(alice: &Alice, more: Value) -> String {
    let mut input = json!({"sessionId": "s"});
    input
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    shown(&alice.ok("getHistory", input))
}

fn cover(alice: &Alice, from: &str, to: &str, summary: &str) -> Value {
    alice.ok(
        "addCompaction",
        json!({"sessionId": "s", "summary": summary, "fromId": from, "toId": to}),
    )
}

#[test]
fn a_summary_replaces_what_it_covers() {
    let alice = numbered(10);
    let overlay = cover(&alice, "3", "7", "S");
    assert_eq!(overlay["fromId"], "3");
    assert_eq!(overlay["toId"], "7");
    assert_eq!(history(&alice, json!({})), "m1 m2 S m8 m9 m10");
    let page = alice.ok("getHistory", json!({"sessionId": "s"}));
    let message = &page["messages"][2];
    assert_eq!(message["role"], "assistant");
    assert_eq!(
        message["id"],
        format!("compaction_{}", overlay["id"].as_str().unwrap())
    );
    // The covered messages stay stored: they are found by id, in the log and by search.
    assert_eq!(alice.events().len(), 10);
    let stored = alice.ok("getMessage", json!({"sessionId": "s", "messageId": "5"}));
    assert_eq!(stored["parts"][0]["text"], "m5");
    let context = alice.ok("buildWorkingContext", json!({"sessionId": "s"}));
    assert_eq!(
        context["messages"][2],
        json!({"role": "assistant", "content": "S"})
    );
    assert_eq!(context["messages"].as_array().unwrap().len(), 6);
}

#[test]
fn every_page_shows_summaries_even_one_that_starts_inside_a_range() {
    let alice = numbered(10);
    let page = alice.ok("getHistory", json!({"sessionId": "s", "limit": 4}));
    assert_eq!(shown(&page), "m7 m8 m9 m10");
    cover(&alice, "3", "8", "S");
    let above = alice.ok(
        "getHistory",
        json!({"sessionId": "s", "limit": 2, "before": page["cursor"]}),
    );
    assert_eq!(shown(&above), "m2 S");
    let above = alice.ok(
        "getHistory",
        json!({"sessionId": "s", "limit": 2, "before": above["cursor"]}),
    );
    assert_eq!(shown(&above), "m1");
    assert_eq!(above["cursor"], Value::Null);
    for limit in 1..6 {
        let mut pages = Vec::new();
        let mut before = Value::Null;
        loop {
            let page = alice.ok(
                "getHistory",
                json!({"sessionId": "s", "limit": limit, "before": before}),
            );
            pages.insert(0, shown(&page));
            before = page["cursor"].clone();
            if before.is_null() {
                break;
            }
        }
        assert_eq!(pages.join(" "), "m1 m2 S m9 m10", "{limit}");
    }
}

#[test]
fn a_summary_up_to_the_root_ends_the_history() {
    let alice = numbered(5);
    cover(&alice, "1", "4", "S");
    assert_eq!(history(&alice, json!({})), "S m5");
    let page = alice.ok("getHistory", json!({"sessionId": "s", "limit": 1}));
    assert_eq!(shown(&page), "m5");
    let page = alice.ok(
        "getHistory",
        json!({"sessionId": "s", "limit": 1, "before": page["cursor"]}),
    );
    assert_eq!(shown(&page), "S");
    assert_eq!(page["cursor"], Value::Null);
}

#[test]
fn a_branch_from_inside_the_range_shows_the_originals() {
    let alice = numbered(8);
    cover(&alice, "3", "6", "S");
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "parentId": "4", "message": {"id": "b", "role": "user", "parts": [{"type": "text", "text": "b"}]}}),
    );
    assert_eq!(history(&alice, json!({})), "m1 m2 m3 m4 b");
    assert_eq!(history(&alice, json!({"leafId": "8"})), "m1 m2 S m7 m8");
    assert_eq!(history(&alice, json!({"leafId": "5"})), "m1 m2 m3 m4 m5");
}

#[test]
fn the_later_ending_then_the_wider_of_two_overlays_applies() {
    let alice = numbered(8);
    cover(&alice, "3", "5", "A");
    let wider = cover(&alice, "2", "7", "B");
    cover(&alice, "4", "7", "C");
    assert_eq!(history(&alice, json!({})), "m1 B m8");
    alice.ok(
        "deleteCompaction",
        json!({"sessionId": "s", "compactionId": wider["id"]}),
    );
    assert_eq!(history(&alice, json!({})), "m1 m2 m3 C m8");
}

#[test]
fn deleting_an_overlay_restores_and_reports_the_originals() {
    let alice = numbered(4);
    let overlay = cover(&alice, "2", "3", "S");
    let listed = alice.ok("getCompactions", json!({"sessionId": "s"}));
    assert_eq!(listed["compactions"], json!([overlay]));
    let input = json!({"sessionId": "s", "compactionId": overlay["id"]});
    assert_eq!(
        alice.ok("deleteCompaction", input.clone()),
        json!({"deleted": true})
    );
    assert_eq!(
        alice.ok("deleteCompaction", input),
        json!({"deleted": false})
    );
    assert_eq!(history(&alice, json!({})), "m1 m2 m3 m4");
    let changes = alice.ok("getChanges", json!({"sessionId": "s"}));
    let types: Vec<&Value> = changes["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| &change["type"])
        .collect();
    assert_eq!(
        types,
        [
            "append",
            "append",
            "append",
            "append",
            "compaction",
            "compaction"
        ]
    );
}

#[test]
fn deleting_the_first_or_last_event_keeps_an_overlay() {
    for (deleted, expected) in [
        (vec!["3"], "m1 m2 S m8"),
        (vec!["7"], "m1 m2 S m8"),
        (vec!["2"], "m1 S m8"),
        (vec!["8"], "m1 m2 S"),
        (vec!["3", "7", "2", "5"], "m1 S m8"),
        (vec!["1", "2"], "S m8"),
        // All covered messages are deleted, and the overlay with them.
        (vec!["3", "4", "5", "6", "7"], "m1 m2 m8"),
    ] {
        let alice = numbered(8);
        cover(&alice, "3", "7", "S");
        alice.ok(
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": deleted}),
        );
        assert_eq!(history(&alice, json!({})), expected, "{deleted:?}");
    }
}

#[test]
fn an_overlay_needs_a_path_and_a_summary() {
    let alice = numbered(6);
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "parentId": "2", "message": {"id": "b", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}}),
    );
    let refused = |from: &str, to: &str, summary: &str| {
        alice.refused(
            "addCompaction",
            json!({"sessionId": "s", "summary": summary, "fromId": from, "toId": to}),
        )
    };
    assert_eq!(refused("4", "3", "S"), "invalid_request");
    assert_eq!(refused("3", "b", "S"), "invalid_request");
    assert_eq!(refused("3", "no", "S"), "message_not_found");
    assert_eq!(refused("no", "3", "S"), "message_not_found");
    assert_eq!(refused("3", "4", " "), "invalid_request");
    assert_eq!(refused("3", "4", &"x".repeat(70_000)), "payload_too_large");
    assert_eq!(cover(&alice, "2", "b", "S")["toId"], "b");
    assert_eq!(cover(&alice, "3", "3", "S")["toId"], "3");
}

#[test]
fn an_edge_inside_a_turn_moves_to_the_turns_edge() {
    let alice = Alice::with_session();
    let events = json!([
        {"id": "u", "action": "user_message", "content": "u"},
        {"id": "c", "action": "tool_call_request", "toolCalls": [{"id": "1", "name": "echo", "arguments": {}}]},
        {"id": "r", "action": "tool_result", "toolCallId": "1", "toolName": "echo", "content": "r"},
        {"id": "a", "action": "agent_message", "content": "a"},
        {"id": "v", "action": "user_message", "content": "v"},
    ]);
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    for (from, to) in [("c", "c"), ("r", "r"), ("a", "r"), ("a", "a")] {
        let (from, to) = if from == "a" && to == "r" {
            ("r", "a")
        } else {
            (from, to)
        };
        let overlay = cover(&alice, from, to, "S");
        assert_eq!(overlay["fromId"], "c", "{from} {to}");
        assert_eq!(overlay["toId"], "a", "{from} {to}");
        assert_eq!(history(&alice, json!({})), "u S v");
        alice.ok(
            "deleteCompaction",
            json!({"sessionId": "s", "compactionId": overlay["id"]}),
        );
    }
}

#[test]
fn a_fork_keeps_the_overlays_of_its_path() {
    let alice = numbered(8);
    cover(&alice, "3", "5", "S");
    cover(&alice, "7", "8", "T");
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": ["2"]}),
    );
    let fork = alice.ok("forkSession", json!({"sessionId": "s", "atId": "7"}));
    let page = alice.ok("getHistory", json!({"sessionId": fork["id"]}));
    assert_eq!(shown(&page), "m1 S m6 m7");
    let listed = alice.ok("getCompactions", json!({"sessionId": fork["id"]}));
    assert_eq!(listed["compactions"][0]["fromId"], "3");
}

#[test]
fn head_and_tail_are_kept_and_the_middle_is_summarized() {
    let alice = numbered(10);
    alice.ok(
        "configureCompaction",
        json!({"sessionId": "s", "protectHead": 2, "tailTokenBudget": 1, "minTailMessages": 3}),
    );
    let scripted = Scripted::default();
    let outcome = compact(&alice, &scripted, None, true);
    assert_eq!(outcome.reason, CompactionReason::WouldCompact);
    assert!(outcome.compaction.is_none() && scripted.prompts.borrow().is_empty());
    assert_eq!(outcome.covers.unwrap().messages, 5);
    let outcome = compact(&alice, &scripted, None, false);
    assert_eq!(outcome.reason, CompactionReason::Compacted);
    assert_eq!(history(&alice, json!({})), "m1 m2 summary 1 m8 m9 m10");
    let prompt = scripted.prompts.borrow()[0].clone();
    assert!(prompt.contains("m3") && prompt.contains("m7"));
    assert!(!prompt.contains("m2") && !prompt.contains("m8"));
}

#[test]
fn the_next_compaction_updates_the_summary_without_the_originals() {
    let alice = numbered(10);
    alice.ok(
        "configureCompaction",
        json!({"protectHead": 1, "tailTokenBudget": 0, "minTailMessages": 2}),
    );
    let scripted = Scripted::default();
    compact(&alice, &scripted, None, false);
    alice.append_texts(&["n1", "n2", "n3"]);
    let outcome = compact(&alice, &scripted, None, false);
    assert_eq!(outcome.reason, CompactionReason::Compacted);
    let prompt = scripted.prompts.borrow()[1].clone();
    assert!(prompt.contains("summary 1") && prompt.contains("m9") && prompt.contains("n1"));
    assert!(!prompt.contains("m5") && !prompt.contains("n2"));
    assert_eq!(history(&alice, json!({})), "m1 summary 2 n2 n3");
    // When the newer overlay is deleted, a reader sees the older one again.
    let listed = alice.ok("getCompactions", json!({"sessionId": "s"}));
    let newer = &listed["compactions"][1];
    assert_eq!(newer["summary"], "summary 2");
    alice.ok(
        "deleteCompaction",
        json!({"sessionId": "s", "compactionId": newer["id"]}),
    );
    assert_eq!(history(&alice, json!({})), "m1 summary 1 m9 m10 n1 n2 n3");
    let outcome = compact(&alice, &scripted, None, false);
    assert_eq!(outcome.reason, CompactionReason::Compacted);
    let nothing = compact(&alice, &scripted, None, false);
    assert_eq!(nothing.reason, CompactionReason::NothingToCompact);
    assert_eq!(scripted.prompts.borrow().len(), 3);
}

#[test]
fn a_summarys_cost_is_counted_even_if_the_object_then_crashes() {
    let alice = Alice::with_session();
    let long = "word ".repeat(6_000);
    let texts: Vec<&str> = (0..10).map(|_| long.as_str()).collect();
    alice.append_texts(&texts);
    let scripted = Scripted {
        usage: TokenUsage {
            input_tokens: 7,
            output_tokens: 1,
            cached_input_tokens: 3,
        },
        hangs_at: Some(3),
        ..Scripted::default()
    };
    cut_off(compacting(&alice, &scripted, None, false));
    let used = || {
        let session = alice.ok("getSession", json!({"sessionId": "s"}));
        session["usage"]["inputTokens"].as_i64().unwrap()
    };
    assert_eq!((scripted.prompts.borrow().len(), used()), (3, 14));
    // Nothing is counted twice.
    let scripted = Scripted {
        usage: scripted.usage,
        ..Scripted::default()
    };
    let outcome = compact(&alice, &scripted, None, false);
    assert_eq!(outcome.reason, CompactionReason::Compacted);
    assert_eq!(used(), 14 + 7 * scripted.prompts.borrow().len() as i64);
}

#[test]
fn a_long_middle_is_summarized_in_bounded_parts() {
    let alice = Alice::with_session();
    let long = "word ".repeat(6_000);
    let texts: Vec<&str> = (0..40).map(|_| long.as_str()).collect();
    alice.append_texts(&texts);
    let scripted = Scripted::default();
    let outcome = compact(&alice, &scripted, None, false);
    assert_eq!(outcome.reason, CompactionReason::Compacted);
    assert!(outcome.has_more);
    let prompts = scripted.prompts.borrow();
    assert_eq!(prompts.len(), 16);
    assert!(prompts.iter().all(|prompt| prompt.len() < 50_000));
    assert!(prompts[15].contains("summary 15"));
}

/// The result of a dry run.
fn planned(alice: &Alice, scripted: &Scripted<'_>) -> (String, Option<Value>, [i64; 2], bool) {
    let outcome = compact(alice, scripted, None, true);
    (
        outcome.reason.name().to_owned(),
        outcome
            .covers
            .map(|covers| serde_json::to_value(covers).unwrap()),
        [outcome.tokens_before, outcome.tokens_after],
        outcome.has_more,
    )
}

#[test]
fn a_compaction_reads_only_what_it_covers() {
    let mut partly = 0;
    for seed in 1..=12_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let alice = Alice::with_session();
        let (most, results) = (1 + dice.roll(8), dice.roll(3));
        let mut open: Vec<usize> = Vec::new();
        for number in 0..220 {
            let text = "word ".repeat(20 + dice.roll(most * 900));
            let late = (results > 0 && !open.is_empty() && dice.roll(2) == 0)
                .then(|| open.remove(dice.roll(open.len())));
            let event = match (late, dice.roll(5)) {
                (Some(call), _) => json!({"action": "tool_result", "content": text,
                                          "toolCallId": format!("c{call}"), "toolName": "t"}),
                (None, 0) if results > 0 => {
                    open.push(number);
                    json!({"action": "tool_call_request", "toolCalls": [
                        {"id": format!("c{number}"), "name": "t", "arguments": {"text": text}}]})
                }
                (None, roll) if roll < 3 => json!({"action": "agent_message", "content": text}),
                (None, _) => json!({"action": "user_message", "content": text}),
            };
            alice.ok("appendEvents", json!({"sessionId": "s", "events": [event]}));
            if dice.roll(40) == 0 {
                let events = alice.events();
                let some = events[dice.roll(events.len())]["id"].clone();
                alice.ok(
                    "deleteEvents",
                    json!({"sessionId": "s", "eventIds": [some]}),
                );
            }
        }
        let scripted = Scripted::default();
        alice.db.take_steps();
        let by_totals = planned(&alice, &scripted);
        let steps = alice.db.take_steps();
        let sql = "UPDATE cf_agents_events SET path_tokens = NULL, more_tokens = 0";
        alice.db.run(sql, &[]).unwrap();
        alice.db.take_steps();
        assert_eq!(by_totals, planned(&alice, &scripted), "seed {seed}");
        partly += usize::from(2 * steps < alice.db.take_steps());
    }
    assert!(partly > 3, "{partly}");
}

#[test]
fn two_hundred_appends_over_the_threshold_cost_few_summaries() {
    for settings in [
        json!({"compactAfter": 1000, "tailTokenBudget": 200}),
        json!({"compactAfter": 500, "tailTokenBudget": 2000}),
        json!({"compactAfter": 20, "tailTokenBudget": 100}),
        json!({"compactAfter": 300, "tailTokenBudget": 250}),
    ] {
        let alice = Alice::with_session();
        alice.ok("configureCompaction", settings.clone());
        let scripted = Scripted::default();
        let compactions = CompactionTracker::default();
        let text = "some words that are about ten tokens long, more or less";
        let compacted = (0..200)
            .filter(|_| {
                grow(&alice, &scripted, &compactions, text) == Some(CompactionReason::Compacted)
            })
            .count();
        assert!((1..=12).contains(&compacted), "{settings}: {compacted}");
        assert_eq!(scripted.prompts.borrow().len(), compacted, "{settings}");
    }
}

#[test]
fn without_a_threshold_nothing_is_compacted_automatically() {
    let alice = numbered(100);
    let scripted = Scripted::default();
    assert_eq!(
        grow(&alice, &scripted, &CompactionTracker::default(), "x"),
        None
    );
    alice.ok(
        "configureCompaction",
        json!({"compactAfter": 10, "tailTokenBudget": 0}),
    );
    alice.ok(
        "configureCompaction",
        json!({"sessionId": "s", "compactAfter": null}),
    );
    assert_eq!(
        grow(&alice, &scripted, &CompactionTracker::default(), "x"),
        None
    );
    alice.ok(
        "configureCompaction",
        json!({"sessionId": "s", "compactAfter": 11}),
    );
    assert_eq!(
        grow(&alice, &scripted, &CompactionTracker::default(), "x"),
        Some(CompactionReason::Compacted)
    );
}

#[test]
fn a_failing_summarizer_loses_nothing_and_is_reported() {
    let alice = numbered(30);
    alice.ok(
        "configureCompaction",
        json!({"compactAfter": 10, "tailTokenBudget": 0}),
    );
    let scripted = Scripted::default();
    let compactions = CompactionTracker::default();
    scripted.fails.set(true);
    assert_eq!(
        grow(&alice, &scripted, &compactions, "x"),
        Some(CompactionReason::SummariserFailed)
    );
    let session = alice.ok("getSession", json!({"sessionId": "s"}));
    assert_eq!(session["lastCompactionError"]["code"], "model_failed");
    assert_eq!(
        session["lastCompactionError"]["message"],
        "The model is out."
    );
    let page = alice.ok("getHistory", json!({"sessionId": "s"}));
    assert_eq!(page["messages"].as_array().unwrap().len(), 31);
    // Compaction isn't tried again with every append.
    let tries = (0..64)
        .filter(|_| grow(&alice, &scripted, &compactions, "x").is_some())
        .count();
    assert_eq!(tries, 6);
    scripted.fails.set(false);
    let again = (0..64)
        .filter_map(|_| grow(&alice, &scripted, &compactions, "x"))
        .next();
    assert_eq!(again, Some(CompactionReason::Compacted));
    let session = alice.ok("getSession", json!({"sessionId": "s"}));
    assert_eq!(session.get("lastCompactionError"), None);
    let decisions = alice.ok("getCompactions", json!({"sessionId": "s"}))["decisions"].clone();
    assert_eq!(decisions[0]["reason"], "summariser_failed");
    assert_eq!(
        decisions.as_array().unwrap().last().unwrap()["reason"],
        "compacted"
    );
}

#[test]
fn messages_changed_during_summarizing_are_not_covered() {
    let alice = numbered(20);
    alice.ok("configureCompaction", json!({"tailTokenBudget": 0}));
    for (operation, input) in [
        (
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": ["7"]}),
        ),
        ("clearMessages", json!({"sessionId": "s"})),
    ] {
        let during_call = || drop(alice.ok(operation, input.clone()));
        let scripted = Scripted {
            during_call: Some(&during_call),
            usage: TokenUsage {
                input_tokens: 7,
                output_tokens: 1,
                cached_input_tokens: 3,
            },
            ..Scripted::default()
        };
        let used = |alice: &Alice| {
            let session = alice.ok("getSession", json!({"sessionId": "s"}));
            session["usage"]["inputTokens"].as_i64().unwrap()
        };
        let before = used(&alice);
        let outcome = compact(&alice, &scripted, None, false);
        assert_eq!(
            outcome.reason,
            CompactionReason::ChangedMeanwhile,
            "{operation}"
        );
        // The usage of the discarded summary is counted.
        let calls = scripted.prompts.borrow().len() as i64;
        assert_eq!(used(&alice), before + calls * 7);
        let listed = alice.ok("getCompactions", json!({"sessionId": "s"}));
        assert_eq!(listed["compactions"], json!([]));
    }
    // If messages were only appended in the meantime, the summary is stored.
    let alice = numbered(20);
    alice.ok("configureCompaction", json!({"tailTokenBudget": 0}));
    let during_call = || drop(alice.append_texts(&["more"]));
    let scripted = Scripted {
        during_call: Some(&during_call),
        ..Scripted::default()
    };
    assert_eq!(
        compact(&alice, &scripted, None, false).reason,
        CompactionReason::Compacted
    );
    assert_eq!(
        history(&alice, json!({})),
        "m1 m2 m3 summary 1 m19 m20 more"
    );
}

#[test]
fn a_session_has_one_compaction_at_a_time() {
    let alice = numbered(20);
    alice.ok(
        "configureCompaction",
        json!({"compactAfter": 10, "tailTokenBudget": 0}),
    );
    let compactions = CompactionTracker::default();
    let nested = Scripted::default();
    let seen = Cell::new(None);
    let during_call = || seen.set(Some(grow(&alice, &nested, &compactions, "x")));
    let scripted = Scripted {
        during_call: Some(&during_call),
        ..Scripted::default()
    };
    assert_eq!(
        grow(&alice, &scripted, &compactions, "x"),
        Some(CompactionReason::Compacted)
    );
    assert_eq!(seen.get(), Some(None));
    assert!(nested.prompts.borrow().is_empty());
}

#[test]
fn only_the_branch_that_grew_is_compacted() {
    let alice = numbered(20);
    alice.ok(
        "configureCompaction",
        json!({"compactAfter": 60, "tailTokenBudget": 0}),
    );
    // The leaf is on a short branch from the third message; the other branch is long.
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "parentId": "3", "message": {"id": "b", "role": "user", "parts": [{"type": "text", "text": "b"}]}}),
    );
    let scripted = Scripted::default();
    assert_eq!(
        grow(&alice, &scripted, &CompactionTracker::default(), "x"),
        None
    );
    alice.ok("setLeaf", json!({"sessionId": "s", "id": "20"}));
    let long = "many words ".repeat(50);
    assert_eq!(
        grow(&alice, &scripted, &CompactionTracker::default(), &long),
        Some(CompactionReason::Compacted)
    );
    assert_eq!(history(&alice, json!({"leafId": "b"})), "m1 m2 m3 b");
}

#[test]
fn an_estimate_counts_the_prompt_and_the_visible_messages() {
    let alice = numbered(4);
    alice.ok(
        "configureAgent",
        json!({"systemInstructions": ["abcdefgh"]}),
    );
    let estimate = alice.ok("estimateTokens", json!({"sessionId": "s"}));
    assert_eq!(
        estimate,
        json!({"messages": 8, "systemPrompt": 2, "tools": 0, "total": 10})
    );
    cover(&alice, "1", "3", "abcdefghijkl");
    let estimate = alice.ok("estimateTokens", json!({"sessionId": "s"}));
    assert_eq!(estimate["messages"], 5);
    assert_eq!(
        alice.ok("estimateTokens", json!({"sessionId": "s", "leafId": "2"}))["messages"],
        4
    );
}

#[test]
fn session_settings_precede_the_agents() {
    let alice = Alice::with_session();
    let default = json!({"compactAfter": null, "protectHead": 3, "tailTokenBudget": 20000, "minTailMessages": 2});
    assert_eq!(alice.ok("configureCompaction", json!({})), default);
    alice.ok(
        "configureCompaction",
        json!({"compactAfter": 1000, "protectHead": 1}),
    );
    let own = alice.ok(
        "configureCompaction",
        json!({"sessionId": "s", "protectHead": 5}),
    );
    assert_eq!(
        own,
        json!({"compactAfter": 1000, "protectHead": 5, "tailTokenBudget": 20000, "minTailMessages": 2})
    );
    assert_eq!(
        alice.refused("configureCompaction", json!({"sessionId": "no"})),
        "session_not_found"
    );
    assert_eq!(
        alice.refused("configureCompaction", json!({"compactAfter": 0})),
        "invalid_request"
    );
    assert_eq!(
        alice.refused("configureCompaction", json!({"protectHead": -1})),
        "invalid_request"
    );
    assert_eq!(
        alice.refused("configureCompaction", json!({"protectHead": 100_001})),
        "invalid_request"
    );
}

#[test]
fn a_compaction_of_an_empty_session_returns_the_reason() {
    let alice = Alice::with_session();
    let outcome = alice.ok("compact", json!({"sessionId": "s"}));
    assert_eq!(outcome["reason"], "nothing_to_compact");
    assert_eq!(outcome["compaction"], Value::Null);
    assert_eq!(
        alice.refused("compact", json!({"sessionId": "no"})),
        "session_not_found"
    );
}

#[test]
fn the_agents_model_writes_the_summary() {
    let alice = numbered(12);
    alice.ok(
        "configureCompaction",
        json!({"tailTokenBudget": 0, "protectHead": 1}),
    );
    alice.ok("configureAgent", json!({"model": "openai:small"}));
    let settings = [("OPENAI_API_KEY".to_owned(), "k".to_owned())];
    alice.outbound.settings.borrow_mut().extend(settings);
    let answer =
        json!({"choices": [{"message": {"content": " All of it. "}, "finish_reason": "stop"}]});
    alice.outbound.answer(ScriptedAnswer::json(&answer));
    let outcome = alice.ok("compact", json!({"sessionId": "s"}));
    assert_eq!(outcome["reason"], "compacted");
    assert_eq!(outcome["compaction"]["summary"], "All of it.");
    assert_eq!(history(&alice, json!({})), "m1 All of it. m11 m12");
    let request = alice.outbound.calls.borrow()[0].body.clone();
    assert!(
        request.contains("[user] m2") && !request.contains("m12"),
        "{request}"
    );
    // A summariser that fails is a reason in the answer, and the conversation is
    // unchanged.
    alice.append_texts(&["n1", "n2", "n3"]);
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(500, "hunter2")));
    let outcome = alice.ok("compact", json!({"sessionId": "s"}));
    assert_eq!(outcome["reason"], "summariser_failed");
    assert_eq!(outcome["error"]["code"], "model_failed");
    assert!(!outcome.to_string().contains("hunter2"));
}

#[test]
fn without_a_model_the_demo_writes_one() {
    let alice = numbered(12);
    let outcome = alice.ok("configureCompaction", json!({"tailTokenBudget": 0}));
    assert_eq!(outcome["tailTokenBudget"], 0);
    let outcome = alice.ok("compact", json!({"sessionId": "s"}));
    assert_eq!(outcome["reason"], "compacted", "{outcome}");
    assert!(
        outcome["compaction"]["summary"]
            .as_str()
            .unwrap()
            .contains("m5")
    );
}
