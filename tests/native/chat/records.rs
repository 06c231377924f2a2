//! The records of turns: what `getTurns` and `getTurn` return for finished turns, whatever their
//! outcome, and to which callers.

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls, define, text_answer, user};
use access::{Caller, TokenScope};
use base::database::Database;
use base::ids::Id;
use base::outbound::CallFailure;
use base::testing::ScriptedAnswer;
use conversation::session::last_turns::fold_surplus;
use conversation::session::stored_turns::{MAX_FAILED_EACH, MAX_FAILING_SESSIONS, MAX_SILENT_EACH};

impl Alice {
    /// All turns of a request, page by page.
    pub fn turns_of(&self, request: Value, limit: usize) -> Vec<Value> {
        let mut turns: Vec<Value> = Vec::new();
        let mut cursor = Value::Null;
        for _ in 0..200 {
            let mut body = request.clone();
            body["limit"] = json!(limit);
            body["cursor"] = cursor;
            let page = self.ok("getTurns", body);
            let shown = page["turns"].as_array().unwrap();
            assert!(shown.len() <= limit);
            turns.extend(shown.iter().cloned());
            cursor = page["cursor"].clone();
            if cursor.is_null() {
                for turn in &turns {
                    let one = self.ok("getTurn", json!({"turnId": turn["turnId"]}));
                    assert_eq!(one, *turn);
                }
                return turns;
            }
        }
        panic!("the pages have no end");
    }

    pub fn turns(&self, session: &str) -> Vec<Value> {
        let all = self.turns_of(json!({"sessionId": session}), 100);
        assert_eq!(self.turns_of(json!({"sessionId": session}), 1), all);
        all
    }

    fn turn_in(&self, session: &str, text: &str) {
        self.outbound.answer(text_answer("Yes."));
        self.chat(json!({"id": session, "message": user(text)}));
    }

    fn stored_failures(&self) -> usize {
        let sql = "SELECT 1 FROM cf_agents_failed_turns";
        self.db.rows(sql, &[]).unwrap().len()
    }

    fn is_of(&mut self, session: &str) {
        self.caller = Caller::Scoped(TokenScope {
            session_id: Some(Id::parse(session.to_owned()).unwrap()),
            expires_at: i64::MAX,
            ..TokenScope::default()
        });
    }
}

fn session_ids(turns: &[Value]) -> Vec<&str> {
    let ids = turns.iter().map(|turn| turn["sessionId"].as_str().unwrap());
    ids.collect()
}

/// A local run can't serve the default model, and the demo answers. No model is named that was not
/// requested.
#[test]
fn a_demo_fallback_is_recorded() {
    let alice = Alice::default();
    alice.outbound.bindings.borrow_mut().push("AI".to_owned());
    alice.outbound.answer(Err(CallFailure::RemoteOnly {
        binding: "AI".to_owned(),
    }));
    alice.chat(json!({"id": "s", "message": user("hi")}));
    let turns = alice.turns("s");
    assert_eq!(turns[0]["finishReason"], "stop");
    assert_eq!(turns[0]["model"], "demo");
    assert_eq!(turns[0]["steps"][0]["model"], "demo");
    let usage = alice.ok("getUsage", json!({"by": "model"}));
    assert_eq!(usage["usage"][0]["model"], "demo");
}

#[test]
fn a_simple_turn_is_recorded_without_an_extra_row() {
    let alice = Alice::with_model();
    alice.turn_in("s", "hi");
    let turns = alice.turns("s");
    let [turn] = turns.as_slice() else {
        panic!("{turns:?}");
    };
    let events = alice.events();
    assert_eq!(turn["messageId"], events[1]["id"]);
    assert_eq!(turn["askedBy"], json!({"kind": "secret"}));
    assert_eq!(turn["model"], "openai:m");
    assert_eq!(turn["finishReason"], "stop");
    assert_eq!(turn["failure"], Value::Null);
    assert_eq!(turn["startedAt"], 1_000_000);
    assert_eq!(turn["traceId"], Value::Null);
    assert_eq!(
        turn["usage"],
        json!({"inputTokens": 10, "outputTokens": 2, "cachedInputTokens": 0, "cost": 0.0})
    );
    let step = &turn["steps"][0];
    assert_eq!(step["model"], "openai:m");
    assert_eq!(
        (&step["inputTokens"], &step["outputTokens"]),
        (&json!(10), &json!(2))
    );
    assert_eq!(step["timeToFirstTokenMs"], 0);
    assert_eq!(step["context"]["sentMessages"], 1);
    let part = |name: &str| step["context"][name].as_i64().unwrap();
    let sum = part("systemPrompt") + part("tools") + part("messages") + part("reminder");
    assert_eq!(part("total"), sum);
    assert!(part("messages") > 0 && part("windowTokens") > part("total"));
    assert_eq!(step["tools"], json!([]));
    assert_eq!(alice.stored_failures(), 0);
    let answer = turn.to_string();
    assert!(
        !answer.contains("Yes.") && !answer.contains("hi\""),
        "{answer}"
    );
}

#[test]
fn a_turns_tools_are_recorded_by_kind_without_content() {
    let alice = Alice::with_model();
    define(&alice, "weather", false);
    define(&alice, "asks", true);
    alice.ok("defineBlock", json!({"label": "notes", "kind": "writable"}));
    alice.outbound.answer(calls(&[
        ("c1", "weather", json!({"city": "Atlantis"})),
        (
            "c2",
            "set_context",
            json!({"label": "notes", "content": "Atlantis"}),
        ),
        ("c3", "nothing", json!({})),
    ]));
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(500, "Atlantis sank")));
    alice.outbound.answer(text_answer("It sank."));
    alice.chat_text("weather?");
    let turn = &alice.turns("s")[0];
    assert_eq!(turn["steps"].as_array().unwrap().len(), 2);
    assert_eq!(turn["steps"][0]["finishReason"], "tool-calls");
    let tools = turn["steps"][0]["tools"].as_array().unwrap();
    let reply: Vec<_> = tools
        .iter()
        .map(|tool| {
            (
                tool["name"].as_str().unwrap(),
                tool["kind"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        reply,
        [
            ("weather", "registered"),
            ("set_context", "memory"),
            ("nothing", "registered")
        ]
    );
    assert_eq!(
        tools[0]["error"],
        "The call failed. See its result in the log."
    );
    assert_eq!(
        (&tools[1]["error"], &tools[1]["durationMs"]),
        (&Value::Null, &json!(0))
    );
    assert_eq!(
        (&tools[2]["error"], &tools[2]["startedAt"]),
        (
            &json!("The call was not made. See its result in the log."),
            &Value::Null
        )
    );
    assert!(!turn.to_string().contains("Atlantis"));
    // A call that waits for the user runs in the turn that continues.
    alice.outbound.answer(calls(&[("c4", "asks", json!({}))]));
    alice.chat_text("ask");
    let waiting = &alice.turns("s")[0];
    assert_eq!(waiting["finishReason"], "tool-calls");
    assert_eq!(waiting["steps"][0]["tools"][0]["startedAt"], Value::Null);
    let mut message = alice.shown()[3].clone();
    let approval = message["parts"][1]["approval"]["id"].clone();
    message["parts"][1]["state"] = json!("approval-responded");
    message["parts"][1]["approval"] = json!({"id": approval, "approved": true});
    alice.outbound.answer(Ok(ScriptedAnswer::text(200, "done")));
    alice.outbound.answer(text_answer("Done."));
    alice.chat(json!({"id": "s", "messages": [message]}));
    let turns = alice.turns("s");
    assert_eq!(turns.len(), 3);
    let made = &turns[0]["steps"][0];
    assert_eq!(
        (&made["model"], &made["tools"][0]["name"]),
        (&Value::Null, &json!("asks"))
    );
    assert_eq!(made["tools"][0]["durationMs"], 0);
    assert_eq!(turns[0]["steps"][1]["model"], "openai:m");
}

#[test]
fn a_failure_without_output_is_recorded_in_one_row() {
    let alice = Alice::with_model();
    alice.fail_in("s", "hi");
    assert_eq!(alice.stored_failures(), 1);
    let turns = alice.turns("s");
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["failure"]["code"], "model_failed");
    let sentence = turns[0]["failure"]["message"].as_str().unwrap();
    assert!(sentence.contains("could not be reached"), "{sentence}");
    assert_eq!(turns[0]["messageId"], Value::Null);
    assert_eq!(turns[0]["finishReason"], "error");
    assert_eq!(turns[0]["steps"][0]["failure"], turns[0]["failure"]);
    alice.turn_in("s", "again");
    alice.fail_in("s", "and again");
    let turns = alice.turns("s");
    let finished: Vec<_> = turns.iter().map(|turn| &turn["finishReason"]).collect();
    assert_eq!(finished, ["error", "stop", "error"]);
    for limit in [1, 100] {
        for session in [json!({"sessionId": "s"}), json!({})] {
            let mut request = session;
            request["failed"] = json!(true);
            let failed = alice.turns_of(request, limit);
            assert_eq!(failed, [turns[0].clone(), turns[2].clone()]);
        }
    }
}

#[test]
fn a_failure_after_partial_output_is_recorded_once() {
    let alice = Alice::with_model();
    let chunk = json!({"choices": [{"delta": {"content": "Well, "}}]});
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::stream(&format!("data: {chunk}\n\n"))));
    alice.chat_text("hi");
    let turns = alice.turns("s");
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["failure"]["code"], "model_failed");
    assert_eq!(turns[0]["messageId"], alice.events()[1]["id"]);
    let failed = alice.turns_of(json!({"sessionId": "s", "failed": true}), 5);
    assert_eq!(failed, turns);
    // After its answer is deleted, the failure is still reported.
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": [turns[0]["messageId"]]}),
    );
    let stored = alice.turns("s");
    assert_eq!(
        (stored.len(), &stored[0]["failure"]),
        (1, &turns[0]["failure"])
    );
}

#[test]
fn a_turn_abandoned_after_crashes_is_recorded_as_such() {
    let mut alice = Alice::with_interrupted_turns(1);
    for _ in 0..2 {
        assert_eq!(alice.recover(&alice.db).works.len(), 1);
        alice.crash();
    }
    for work in alice.recover(&alice.db).works {
        alice.run_work(work);
    }
    let turns = alice.turns("s0");
    assert_eq!(turns[0]["recoveries"], 3);
    assert_eq!(turns[0]["failure"]["code"], "model_failed");
    let sentence = turns[0]["failure"]["message"].as_str().unwrap();
    assert!(sentence.contains("interrupted several times"), "{sentence}");
    // An unreadable record.
    let alice = Alice::with_interrupted_turns(1);
    let sql = "UPDATE cf_agents_last_turns SET state = '{' WHERE session_id = 's0'";
    alice.db.run(sql, &[]).unwrap();
    assert_eq!(alice.recover(&alice.db).works.len(), 0);
    let turns = alice.turns("s0");
    assert_eq!(turns[0]["failure"]["code"], "corrupt_row");
}

#[test]
fn a_resumed_turn_records_its_attempts_and_caller() {
    let mut alice = Alice::with_model();
    drop(
        alice
            .begin(&json!({"id": "s", "message": user("Go.")}))
            .unwrap(),
    );
    alice.crash();
    alice.host.advance(5_000);
    for work in alice.recover(&alice.db).works {
        alice.outbound.answer(text_answer("Here."));
        alice.run_work(work);
    }
    let turn = &alice.turns("s")[0];
    assert_eq!(
        (&turn["recoveries"], &turn["durationMs"]),
        (&json!(1), &json!(5_000))
    );
    assert_eq!(turn["askedBy"], json!({"kind": "secret"}));
    assert_eq!(turn["steps"][0]["startedAt"], 1_005_000);
}

#[test]
fn turns_of_all_sessions_are_listed_newest_first() {
    let alice = Alice::with_model();
    let order = [0, 1, 0, 2, 2, 1, 0, 3, 0];
    for (n, session) in order.iter().enumerate() {
        alice.host.advance(1_000);
        let (session, text) = (format!("s{session}"), format!("n{n}"));
        match n % 4 {
            3 => alice.fail_in(&session, &text),
            _ => alice.turn_in(&session, &text),
        }
    }
    let expected: Vec<String> = order.iter().rev().map(|n| format!("s{n}")).collect();
    for limit in [1, 2, 3, 100] {
        let turns = alice.turns_of(json!({}), limit);
        assert_eq!(session_ids(&turns), expected, "{limit}");
        let times: Vec<i64> = turns
            .iter()
            .map(|turn| turn["endedAt"].as_i64().unwrap())
            .collect();
        assert!(times.is_sorted_by(|a, b| a > b), "{times:?}");
    }
    // A session that continues during paging loses none of its older turns.
    let first = alice.ok("getTurns", json!({"limit": 1}));
    alice.host.advance(1_000);
    alice.turn_in("s1", "meanwhile");
    let mut cursor = first["cursor"].clone();
    let mut rest = Vec::new();
    while !cursor.is_null() {
        let page = alice.ok("getTurns", json!({"limit": 2, "cursor": cursor}));
        rest.extend(page["turns"].as_array().unwrap().clone());
        cursor = page["cursor"].clone();
    }
    assert_eq!(session_ids(&rest), expected[1..]);
}

#[test]
fn a_page_is_counted_in_turns_not_events() {
    let alice = Alice::with_model();
    alice.turn_in("s", "first");
    let texts: Vec<String> = (0..1_000).map(|n| format!("text {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for _ in 0..4 {
        alice.append_texts(&texts);
    }
    alice.turn_in("s", "second");
    alice.append_texts(&texts);
    alice.db.take_steps();
    let page = alice.ok("getTurns", json!({"sessionId": "s"}));
    let steps = alice.db.take_steps();
    assert_eq!(page["turns"].as_array().unwrap().len(), 2);
    // Below the first turn, one event remains to be read.
    assert!(steps < 2_000, "{steps}");
    // Without the named events, a page scans for them, a bounded number at a time.
    alice
        .db
        .run(
            "UPDATE cf_agents_events SET ends_turn = json_remove(ends_turn, '$.record.before')",
            &[],
        )
        .unwrap();
    let turns = alice.turns_of(json!({"sessionId": "s"}), 5);
    assert_eq!(turns.len(), 2);
}

#[test]
fn older_turns_stay_recorded_whatever_follows() {
    let alice = Alice::with_model();
    for text in ["a", "b", "c", "d"] {
        alice.turn_in("s", text);
    }
    let all = alice.turns("s");
    assert_eq!(all.len(), 4);
    // The middle of the chain is deleted.
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": [all[1]["messageId"]]}),
    );
    assert_eq!(
        alice.turns("s"),
        [all[0].clone(), all[2].clone(), all[3].clone()]
    );
    alice.turn_in("s", "e");
    assert_eq!(alice.turns("s").len(), 4);
    // An answer whose position was taken by an append is reported, too.
    let started = alice
        .begin(&json!({"id": "s", "message": user("f")}))
        .unwrap();
    alice.append_texts(&["meanwhile"]);
    alice.outbound.answer(text_answer("Late."));
    alice.run_work(started.work.unwrap());
    alice.turn_in("s", "g");
    assert_eq!(alice.turns("s").len(), 6);
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    assert_eq!(alice.turns(fork["id"].as_str().unwrap()), [] as [Value; 0]);
    let file = alice.export("s").unwrap();
    assert!(!file.contains("timeToFirstToken"));
    let bob = Alice::with_model();
    bob.import("s", &file).unwrap();
    assert_eq!(bob.turns("s"), [] as [Value; 0]);
    alice.fail_in("s", "h");
    alice.ok("clearMessages", json!({"sessionId": "s"}));
    assert_eq!(alice.turns("s"), [] as [Value; 0]);
    assert_eq!(alice.stored_failures(), 0);
}

#[test]
fn records_do_not_depend_on_whether_the_turn_row_still_exists() {
    let alice = Alice::with_model();
    let texts: Vec<String> = (0..1_200).map(|n| format!("text {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    alice.turn_in("s", "first");
    alice.append_texts(&texts[..1_000]);
    alice.append_texts(&texts[1_000..]);
    let rows = |alice: &Alice| {
        let sql = "SELECT 1 FROM cf_agents_last_turns WHERE session_id = 's'";
        alice.db.rows(sql, &[]).unwrap().len()
    };
    let run_others = |round: &str| {
        for n in 0..40 {
            alice.turn_in(&format!("other-{n}"), &format!("{round} {n}"));
        }
        fold_surplus(&alice.db).unwrap();
    };
    let before = alice.ok("getTurns", json!({"sessionId": "s"}));
    assert_eq!(before["turns"].as_array().unwrap().len(), 1);
    run_others("once");
    assert_eq!(rows(&alice), 0);
    assert_eq!(alice.ok("getTurns", json!({"sessionId": "s"})), before);
    // The next turn includes the previous one, too.
    alice.turn_in("s", "second");
    let after = alice.ok("getTurns", json!({"sessionId": "s"}));
    assert_eq!(after["turns"][1], before["turns"][0]);
    // A turn without a final event leaves no stale position.
    alice.stop_in("s", "third");
    run_others("again");
    assert_eq!(rows(&alice), 0);
    assert_eq!(alice.turns("s").len(), 3);
}

#[test]
fn imports_and_appends_cannot_forge_a_record() {
    let alice = Alice::with_model();
    alice.turn_in("s", "hi");
    let file = alice.export("s").unwrap();
    let forged = r#""ends_turn":{"inputTokens":9},"endsTurn":{"inputTokens":9},"action":"#;
    let file = file.replace("\"action\":", forged);
    let bob = Alice::with_model();
    let _ = bob.import("s", &file);
    assert_eq!(bob.turns_of(json!({}), 5), [] as [Value; 0]);
}

#[test]
fn a_sessions_failures_do_not_depend_on_other_sessions() {
    let alice = Alice::with_model();
    let each = usize::try_from(MAX_FAILED_EACH).unwrap();
    for n in 0..each + 3 {
        alice.host.advance(1_000);
        alice.fail_in("s", &format!("n{n}"));
    }
    let failed = alice.turns_of(json!({"sessionId": "s", "failed": true}), 7);
    assert_eq!(failed.len(), each);
    let newest = failed[0]["endedAt"].as_i64().unwrap();
    assert_eq!(
        failed[each - 1]["endedAt"],
        newest - 1_000 * (each as i64 - 1)
    );
    // Others fail far more often, and later.
    alice.fail_in_many_others(3_000);
    alice.host.advance(10_000_000);
    alice.db.take_steps();
    alice.fail_in("t", "more");
    let steps = alice.db.take_steps();
    assert!(steps < 6_000, "a failure reads no other session: {steps}");
    let listed = alice.turns_of(json!({"sessionId": "s", "failed": true}), 7);
    assert_eq!(listed, failed);
    assert_eq!(alice.stored_failures(), each + 3_000 + 1);
    // The agent's own list is paged, newest first, and misses none.
    let all = alice.turns_of(json!({"failed": true}), 100);
    assert_eq!(all.len(), each + 3_000 + 1);
    assert_eq!(session_ids(&all)[0], "t");
    assert_eq!(session_ids(&all[all.len() - each..]), ["s"; 16]);
    // They are deleted with their session.
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    assert_eq!(alice.stored_failures(), 3_000 + 1);
}

/// Creates sessions that contain only failed and stopped turns.
fn add_failures(alice: &Alice, sessions: i64, failed: i64, silent: i64) {
    let sql = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {sessions})
         INSERT INTO cf_agents_sessions (id, agent_id, created_at, updated_at)
         SELECT 'out-' || n, 'alice', 1, 1 FROM numbers"
    );
    alice.db.run(&sql, &[]).unwrap();
    let sql = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {sessions}),
                        slots (slot) AS (SELECT 0 UNION ALL SELECT slot + 1 FROM slots WHERE slot < 31)
         INSERT INTO cf_agents_failed_turns
         SELECT 'out-' || n, slot, slot, 2000000 + n * 100 + slot, 0,
                json_object('inputTokens', 0, 'outputTokens', 0, 'hasFailed', json('true'),
                            'record', json_object('requestId', 'r', 'endedAt', 2000000 + n * 100 + slot))
           FROM numbers, slots
          WHERE slot < {failed}
             OR slot BETWEEN {MAX_FAILED_EACH} AND {} ",
        MAX_FAILED_EACH + silent - 1
    );
    alice.db.run(&sql, &[]).unwrap();
}

#[test]
fn reading_all_failures_is_bounded_and_complete() {
    let steps = |sessions: i64, silent: i64| {
        let alice = Alice::with_model();
        add_failures(&alice, sessions, MAX_FAILED_EACH, silent);
        alice.db.take_steps();
        let page = alice.ok("getTurns", json!({"failed": true, "limit": 50}));
        assert_eq!(page["turns"].as_array().unwrap().len(), 50);
        alice.db.take_steps()
    };
    let few = steps(MAX_FAILING_SESSIONS + 1, 0);
    let many = steps(4 * MAX_FAILING_SESSIONS, 0);
    assert!(many < few + few / 10, "{few} {many}");
    // Stopped turns are not read either.
    let stopped = steps(4 * MAX_FAILING_SESSIONS, MAX_SILENT_EACH);
    assert!(stopped < few + few / 10, "{few} {stopped}");
    // All of them are shown, once each. Those of sessions that started last come first.
    let alice = Alice::with_model();
    let (sessions, failed) = (2 * MAX_FAILING_SESSIONS + 7, 1);
    add_failures(&alice, sessions, failed, MAX_SILENT_EACH);
    let mut shown: Vec<i64> = Vec::new();
    let (mut cursor, mut pages) = (Value::Null, 0);
    loop {
        let body = json!({"failed": true, "limit": 100, "cursor": cursor});
        let page = alice.ok("getTurns", body);
        let turns = page["turns"].as_array().unwrap();
        shown.extend(turns.iter().map(|turn| turn["endedAt"].as_i64().unwrap()));
        cursor = page["cursor"].clone();
        pages += 1;
        if cursor.is_null() {
            break;
        }
        assert!(pages < 100);
    }
    assert_eq!(shown.len() as i64, sessions * failed);
    assert!(shown.is_sorted_by(|one, next| one > next));
    for cursor in ["", "x", "1.2", "1.2.3", "1.2.x.s"] {
        let body = json!({"failed": true, "cursor": cursor});
        assert_eq!(
            alice.refused("getTurns", body),
            "invalid_request",
            "{cursor}"
        );
    }
}

#[test]
fn a_turn_stopped_before_any_output_is_recorded_in_one_row() {
    let alice = Alice::with_model();
    alice.turn_in("s", "hi");
    alice.host.advance(1_000);
    let written = |alice: &Alice, is_stopped: bool| {
        alice.db.take_costs();
        let started = alice
            .begin(&json!({"id": "s", "message": user(if is_stopped { "Stop." } else { "Go." })}))
            .unwrap();
        alice.host.advance(700);
        if is_stopped {
            alice.ok("cancelTurn", json!({"sessionId": "s"}));
        } else {
            alice.outbound.answer(text_answer("Yes."));
        }
        alice.run_work(started.work.unwrap());
        alice.db.take_costs().1
    };
    let plain = written(&alice, false);
    let stopped = written(&alice, true);
    // The turn's row instead of the answer, and the record.
    assert_eq!(stopped, plain + 1);
    let turns = alice.turns("s");
    let finished: Vec<_> = turns.iter().map(|turn| &turn["finishReason"]).collect();
    assert_eq!(finished, ["cancelled", "stop", "stop"]);
    let turn = &turns[0];
    assert_eq!(
        (&turn["messageId"], &turn["failure"], &turn["durationMs"]),
        (&Value::Null, &Value::Null, &json!(700))
    );
    assert_eq!(turn["askedBy"], json!({"kind": "secret"}));
    // It is not a failure, in any list or count.
    for request in [
        json!({"failed": true}),
        json!({"failed": true, "sessionId": "s"}),
    ] {
        assert_eq!(alice.turns_of(request, 5), [] as [Value; 0]);
    }
    assert_eq!(alice.turns_of(json!({}), 1), turns);
    let usage = alice.ok("getUsage", json!({"sessionId": "s", "by": "day"}));
    assert!(!usage.to_string().contains("\"failedTurns\":1"), "{usage}");
    // A later turn does not overwrite it.
    alice.turn_in("s", "again");
    assert_eq!(alice.turns("s")[1..], turns);
    alice.ok("clearMessages", json!({"sessionId": "s"}));
    assert_eq!(alice.turns("s"), [] as [Value; 0]);
}

#[test]
fn repeated_stops_are_bounded_and_displace_no_failure() {
    let alice = Alice::with_model();
    alice.fail_in("s", "hi");
    let each = usize::try_from(MAX_SILENT_EACH).unwrap();
    for n in 0..each + 3 {
        alice.host.advance(1_000);
        alice.stop_in("s", &format!("n{n}"));
    }
    let turns = alice.turns("s");
    assert_eq!(turns.len(), each + 1);
    assert_eq!(turns[each]["failure"]["code"], "model_failed");
    assert_eq!(
        alice
            .turns_of(json!({"sessionId": "s", "failed": true}), 1)
            .len(),
        1
    );
}

#[test]
fn a_turn_stopped_after_a_crash_is_recorded() {
    let mut alice = Alice::with_interrupted_turns(1);
    alice.crash();
    alice.ok("cancelTurn", json!({"sessionId": "s0"}));
    assert_eq!(alice.turns("s0")[0]["finishReason"], "cancelled");
    // The message that it answered was deleted.
    let alice = Alice::with_model();
    let started = alice
        .begin(&json!({"id": "s", "message": user("Go.")}))
        .unwrap();
    let message = alice.events()[0]["id"].clone();
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": [message]}),
    );
    alice.ok("cancelTurn", json!({"sessionId": "s"}));
    alice.run_work(started.work.unwrap());
    assert_eq!(alice.turns("s")[0]["finishReason"], "cancelled");
}

#[test]
fn a_session_token_sees_only_its_turns() {
    let mut alice = Alice::with_model();
    alice.turn_in("s", "mine");
    alice.turn_in("t", "theirs");
    alice.fail_in("t", "theirs, too");
    let others = alice.turns("t");
    alice.is_of("s");
    assert_eq!(alice.turns("s").len(), 1);
    for request in [
        json!({}),
        json!({"sessionId": "t"}),
        json!({"failed": true}),
        json!({"sessionId": "t", "failed": true}),
    ] {
        assert_eq!(alice.refused("getTurns", request), "forbidden");
    }
    for turn in others {
        let id = &turn["turnId"];
        assert_eq!(alice.refused("getTurn", json!({"turnId": id})), "forbidden");
        // It isn't found under its own session's name either.
        let body = json!({"turnId": id, "sessionId": "s"});
        assert_eq!(alice.ok("getTurn", body), Value::Null);
    }
    // The caller is reported, but no token.
    alice.turn_in("s", "again");
    assert_eq!(alice.turns("s")[0]["askedBy"], json!({"kind": "token"}));
}

#[test]
fn a_turn_id_works_with_a_very_long_session_id() {
    let alice = Alice::with_model();
    let long = "é".repeat(200);
    alice.turn_in(&long, "hi");
    // The time in an id distinguishes sessions with the same prefix.
    alice.host.advance(1);
    alice.turn_in(&"é".repeat(199), "hello");
    let turns = alice.turns(&long);
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["sessionId"], long);
    assert_eq!(
        alice.refused("getTurn", json!({"turnId": "t-1"})),
        "invalid_request"
    );
}
