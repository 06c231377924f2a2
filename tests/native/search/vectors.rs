//! Search by meaning: entries and messages. The embedding model is scripted, and its requests are
//! compared.

use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use crate::shared::examples::{Example, READS, examples, populated};
use crate::{Alice, ids};
use access::{Caller, TokenScope};
use api::dispatch::dispatch;
use base::database::Database;
use base::ids::Id;
use base::outbound::CallFailure;
use base::testing::{Failing, ScriptedAnswer};

const RAIN: [f64; 3] = [1.0, 0.2, 0.0];
const CATS: [f64; 3] = [0.0, 1.0, 0.2];
const MONEY: [f64; 3] = [0.0, 0.0, 1.0];

fn keys(found: &Value) -> Vec<&str> {
    let results = found["results"].as_array().unwrap();
    results
        .iter()
        .map(|entry| entry["key"].as_str().unwrap())
        .collect()
}

/// An agent with a block `kb` and an embedding model.
fn with_embeddings() -> Alice {
    let alice = Alice::with_session().embedding_by("workers-ai:@cf/m");
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    alice
}

/// An agent with the entries `umbrella` and `kitten`, each with its vector.
fn with_vectors() -> Alice {
    let alice = with_embeddings();
    alice.embeds(&[RAIN]);
    alice.add_entry("umbrella", "Take it when it drizzles.");
    alice.embeds(&[CATS]);
    alice.add_entry("kitten", "It purrs.");
    alice
}

#[test]
fn an_entry_is_found_by_meaning() {
    let alice = with_vectors();
    alice.embeds(&[RAIN]);
    let found = alice.search_entries("wet weather");
    assert_eq!(keys(&found), ["umbrella", "kitten"]);
    assert_eq!(found["results"][0]["content"], "Take it when it drizzles.");
    assert_eq!(found["vectors"], json!({"pending": false}));
    assert_eq!(
        alice.embedding_requests(),
        [
            json!(["Take it when it drizzles."]),
            json!(["It purrs."]),
            json!(["wet weather"])
        ]
    );
}

#[test]
fn results_found_by_words_and_meaning_come_first() {
    let alice = with_vectors();
    alice.embeds(&[MONEY]);
    alice.add_entry("tax", "Drizzles of forms.");
    alice.embeds(&[RAIN]);
    assert_eq!(keys(&alice.search_entries("drizzling"))[0], "umbrella");
}

#[test]
fn without_a_model_only_words_are_searched_and_no_vector_is_stored() {
    let alice = Alice::with_session();
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    alice.add_entry("umbrella", "Take it when it drizzles.");
    assert_eq!(
        alice.search_entries("drizzle")["results"][0]["key"],
        json!("umbrella")
    );
    assert_eq!(alice.search_entries("wet weather"), json!({"results": []}));
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 0);
}

#[test]
fn a_write_survives_an_embedding_failure_and_a_search_adds_the_vector() {
    let alice = with_embeddings();
    alice.outbound.answer(Ok(ScriptedAnswer::text(400, "no")));
    alice.add_entry("umbrella", "Take it when it drizzles.");
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 0);
    // The vector of the query, then the vector of the entry that has none.
    alice.embeds(&[RAIN]);
    alice.embeds(&[RAIN]);
    let found = alice.search_entries("wet weather");
    assert_eq!(keys(&found), ["umbrella"]);
    assert_eq!(found["vectors"], json!({"pending": false}));
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 1);
}

#[test]
fn an_embedding_failure_leaves_word_results_and_is_reported() {
    let alice = with_vectors();
    for answer in [
        Ok(ScriptedAnswer::text(400, "no")),
        ScriptedAnswer::json(&json!({"data": [[0.0, 0.0, 0.0]]})),
        Err(CallFailure::TimedOut { silence_ms: 1 }),
    ] {
        alice.outbound.answer(answer);
        let found = alice.search_entries("drizzle");
        assert_eq!(keys(&found), ["umbrella"]);
        assert_eq!(found["vectors"]["error"]["code"], "model_failed");
    }
    let alice = alice.embedding_by("bge");
    let found = alice.search_entries("drizzle");
    assert_eq!(keys(&found), ["umbrella"]);
    assert_eq!(found["vectors"]["error"]["code"], "invalid_request");
}

#[test]
fn a_failed_embedding_still_compares_existing_vectors() {
    let alice = with_vectors();
    alice.outbound.answer(Ok(ScriptedAnswer::text(400, "no")));
    alice.add_entry("tax", "Forms.");
    alice.embeds(&[CATS]);
    alice.outbound.answer(Ok(ScriptedAnswer::text(400, "no")));
    let found = alice.search_entries("animals");
    assert_eq!(keys(&found), ["kitten", "umbrella"]);
    assert_eq!(found["vectors"]["pending"], true);
    assert_eq!(found["vectors"]["error"]["code"], "model_failed");
}

#[test]
fn a_changed_entry_never_keeps_its_old_vector() {
    let alice = with_vectors();
    alice.embeds(&[MONEY]);
    alice.add_entry("umbrella", "Costs ten euros.");
    alice.embeds(&[RAIN]);
    assert_eq!(keys(&alice.search_entries("wet weather"))[0], "kitten");
    alice.outbound.answer(Ok(ScriptedAnswer::text(400, "no")));
    alice.add_entry("umbrella", "Costs twelve euros.");
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 1);
    // Writing the same text again creates only the missing vector.
    alice.embeds(&[MONEY]);
    alice.add_entry("umbrella", "Costs twelve euros.");
    let requests_before = alice.embedding_requests().len();
    alice.add_entry("umbrella", "Costs twelve euros.");
    assert_eq!(alice.embedding_requests().len(), requests_before);
}

#[test]
fn vectors_are_deleted_with_their_entries() {
    let alice = with_vectors();
    alice.ok("deleteEntry", json!({"label": "kb", "key": "kitten"}));
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 1);
    alice.ok("removeBlock", json!({"label": "kb", "purge": true}));
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 0);
    alice.ok(
        "defineBlock",
        json!({"sessionId": "s", "label": "own", "kind": "searchable"}),
    );
    alice.embeds(&[CATS]);
    alice.set_entry(json!({"sessionId": "s", "label": "own", "key": "k", "content": "c"}));
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 1);
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 0);
}

#[test]
fn changing_the_model_recreates_all_vectors() {
    let alice = with_vectors().embedding_by("workers-ai:@cf/other");
    alice.embeds(&[CATS]);
    alice.embeds(&[CATS, RAIN]);
    // The model gets the entries in the order of their keys: kitten, umbrella.
    assert_eq!(keys(&alice.search_entries("animals"))[0], "kitten");
    assert_eq!(
        *alice.embedding_requests().last().unwrap(),
        json!(["It purrs.", "Take it when it drizzles."])
    );
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 2);
    alice.embeds(&[CATS]);
    assert_eq!(alice.search_entries("animals")["vectors"]["pending"], false);
}

#[test]
fn a_search_creates_a_bounded_number_of_vectors() {
    let alice = with_embeddings();
    for n in 0..100 {
        alice.outbound.answer(Ok(ScriptedAnswer::text(400, "no")));
        alice.add_entry(&format!("k{n:03}"), &format!("text {n}"));
    }
    alice.embeds(&[CATS]);
    alice.embeds(&[RAIN; 64]);
    assert_eq!(alice.search_entries("animals")["vectors"]["pending"], true);
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 64);
    alice.embeds(&[CATS]);
    alice.embeds(&[RAIN; 36]);
    assert_eq!(alice.search_entries("animals")["vectors"]["pending"], false);
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 100);
}

#[test]
fn long_texts_are_embedded_in_small_batches_stored_as_they_arrive() {
    let alice = with_embeddings();
    for number in 0..20 {
        alice.outbound.answer(Ok(ScriptedAnswer::text(400, "no")));
        alice.add_entry(&format!("k{number:02}"), &"rain ".repeat(400)[..2_000]);
    }
    let before = alice.embedding_requests().len();
    alice.embeds(&[RAIN]);
    alice.embeds(&[RAIN; 16]);
    alice.outbound.answer(Ok(ScriptedAnswer::text(400, "no")));
    let found = alice.search_entries("umbrella");
    let requests = alice.embedding_requests().split_off(before);
    let sizes: Vec<usize> = requests
        .iter()
        .map(|texts| texts.as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [1, 16, 4]);
    assert_eq!(found["vectors"]["pending"], true);
    assert_eq!(found["vectors"]["error"]["code"], "model_failed");
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 16);
    assert!(!found["results"].as_array().unwrap().is_empty());
}

#[test]
fn required_phrases_are_matched_by_words_alone() {
    let alice = with_vectors();
    let requests_before = alice.embedding_requests().len();
    assert_eq!(
        keys(&alice.search_entries("\"when it drizzles\" weather")),
        ["umbrella"]
    );
    assert_eq!(keys(&alice.search_entries("drizz*")), ["umbrella"]);
    assert_eq!(keys(&alice.search_entries("")), [""; 0]);
    assert_eq!(alice.embedding_requests().len(), requests_before);
}

#[test]
fn other_blocks_entries_are_not_found() {
    let alice = with_vectors();
    alice.ok(
        "defineBlock",
        json!({"label": "other", "kind": "searchable"}),
    );
    alice.embeds(&[RAIN]);
    alice.set_entry(json!({"label": "other", "key": "rain", "content": "Rain."}));
    alice.embeds(&[RAIN]);
    let found = alice.ok(
        "searchContext",
        json!({"label": "other", "query": "wet weather"}),
    );
    assert_eq!(keys(&found), ["rain"]);
}

#[test]
fn the_models_tools_search_by_meaning_too() {
    let alice = with_vectors();
    alice.embeds(&[MONEY]);
    alice.ok(
        "callTool",
        json!({"name": "set_context", "arguments": {"label": "kb", "content": "Forms.", "metadata": {"title": "Tax"}}}),
    );
    alice.make_vectors(&alice.db);
    assert_eq!(
        *alice.embedding_requests().last().unwrap(),
        json!(["Tax\nForms."])
    );
    alice.embeds(&[MONEY]);
    let found = alice.ok(
        "callTool",
        json!({"name": "search_context", "arguments": {"label": "kb", "query": "cash"}}),
    );
    assert!(
        found["output"].as_str().unwrap().starts_with("[tax] Tax"),
        "{found}"
    );
}

#[test]
fn an_entry_and_its_vector_are_each_written_atomically() {
    let body = json!({"label": "kb", "key": "umbrella", "content": "New."}).to_string();
    let mut tried = 0;
    loop {
        let alice = with_vectors();
        let before = alice.db.dump();
        alice.embeds(&[MONEY]);
        let failing = Failing::after(&alice.db, tried);
        match alice.send(&failing, "setEntry", body.as_bytes()) {
            Err(_) => assert_eq!(alice.db.dump(), before, "statement {tried}"),
            // The entry is written. Its vector is written, or the next search writes it.
            Ok(written) => {
                assert_eq!(written["content"], "New.");
                alice.make_vectors(&failing);
                let vectors = alice.rows_in("cf_agents_entry_vectors");
                assert_eq!(vectors, 1 + i64::from(!failing.has_failed()));
                alice.outbound.answers.borrow_mut().clear();
                alice.embeds(&[MONEY]);
                if vectors == 1 {
                    alice.embeds(&[MONEY]);
                }
                assert_eq!(keys(&alice.search_entries("cash"))[0], "umbrella");
            }
        }
        if !failing.has_failed() {
            break;
        }
        tried += 1;
    }
    assert!(tried > 5);
}

/// An agent that searches by meaning, whose session `s` has two messages.
fn with_two_messages() -> Alice {
    let alice = Alice::with_session().embedding_by("workers-ai:@cf/m");
    alice.ok("configureAgent", json!({"vectors": true}));
    alice.append_message("a", "Take an umbrella.");
    alice.append_message("b", "The kitten purrs.");
    alice
}

#[test]
fn messages_are_found_by_meaning_once_vectors_are_enabled() {
    let alice = with_two_messages();
    assert_eq!(alice.embedding_requests(), [json!(null); 0]);
    alice.embeds(&[RAIN]);
    // The model gets the newest message first.
    alice.embeds(&[CATS, RAIN]);
    let found = alice.ok("search", json!({"query": "wet weather"}));
    assert_eq!(ids(&found["results"]), ["a", "b"]);
    assert_eq!(found["vectors"], json!({"pending": false}));
    assert_eq!(
        alice.embedding_requests(),
        [
            json!(["wet weather"]),
            json!(["The kitten purrs.", "Take an umbrella."])
        ]
    );
    // Later searches make vectors of new messages only.
    alice.append_message("c", "Pay the bill.");
    alice.embeds(&[MONEY]);
    alice.embeds(&[MONEY]);
    assert_eq!(alice.found("cash"), ["c", "b", "a"]);
    assert_eq!(
        *alice.embedding_requests().last().unwrap(),
        json!(["Pay the bill."])
    );
}

#[test]
fn an_agent_without_vectors_has_no_cost_for_them() {
    let alice = with_two_messages();
    alice.ok("configureAgent", json!({"vectors": false}));
    let found = alice.ok("search", json!({"query": "umbrellas"}));
    assert_eq!(ids(&found["results"]), ["a"]);
    assert_eq!(found.get("vectors"), None);
    assert_eq!(alice.embedding_requests(), [json!(null); 0]);
    assert_eq!(alice.rows_in("cf_agents_event_vectors"), 0);
}

#[test]
fn tool_results_and_empty_messages_have_no_vector() {
    let alice = with_two_messages();
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [
            {"action": "tool_call_request", "toolCalls": [{"id": "c", "name": "t", "arguments": {"q": "rain"}}]},
            {"action": "tool_result", "toolCallId": "c", "toolName": "t", "content": "rain"},
            {"action": "user_message", "content": ""},
        ]}),
    );
    alice.embeds(&[CATS]);
    alice.embeds(&[CATS, RAIN]);
    assert_eq!(alice.found("animals"), ["b", "a"]);
}

#[test]
fn vectors_are_deleted_with_their_events() {
    let count = |alice: &Alice| alice.rows_in("cf_agents_event_vectors");
    let searched = || {
        let alice = with_two_messages();
        alice.embeds(&[RAIN]);
        alice.embeds(&[CATS, RAIN]);
        alice.search("wet weather");
        assert_eq!(count(&alice), 2);
        alice
    };
    let alice = searched();
    alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": ["a"]}));
    assert_eq!(count(&alice), 1);
    let alice = searched();
    alice.ok("updateMessage", json!({"sessionId": "s", "message": {"id": "a", "role": "user", "parts": [{"type": "text", "text": "Pay."}]}}));
    assert_eq!(count(&alice), 1);
    alice.embeds(&[RAIN]);
    alice.embeds(&[MONEY]);
    assert_eq!(alice.found("wet weather"), ["b", "a"]);
    let alice = searched();
    alice.ok("clearMessages", json!({"sessionId": "s"}));
    assert_eq!(count(&alice), 0);
    let alice = searched();
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    assert_eq!(count(&alice), 2);
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    assert_eq!(count(&alice), 0);
    // The next search creates the fork's vectors.
    alice.embeds(&[RAIN]);
    alice.embeds(&[CATS, RAIN]);
    assert_eq!(alice.search("wet weather")[0]["sessionId"], fork["id"]);
}

#[test]
fn semantic_search_respects_filters_and_rights() {
    let alice = Alice::with_session().embedding_by("workers-ai:@cf/m");
    alice.ok("configureAgent", json!({"vectors": true}));
    alice.ok("createSession", json!({"id": "t"}));
    for (session, id, action, at) in [
        ("s", "a", "user_message", 10),
        ("s", "b", "agent_message", 20),
        ("t", "c", "user_message", 30),
    ] {
        alice.ok("appendEvents", json!({"sessionId": session, "events": [{"id": id, "action": action, "content": id, "createdAt": at}]}));
    }
    alice.embeds(&[RAIN]);
    alice.embeds(&[RAIN, RAIN, RAIN]);
    alice.search("wet");
    for (more, expected) in [
        (json!({}), "abc"),
        (json!({"sessionId": "s"}), "ab"),
        (json!({"roles": ["user"]}), "ac"),
        (json!({"roles": ["tool"]}), ""),
        (json!({"since": 20}), "bc"),
        (json!({"until": 20, "roles": ["assistant"]}), "b"),
    ] {
        alice.embeds(&[RAIN]);
        let mut found = ids(&Value::from(alice.search_with("wet", more.clone())));
        found.sort();
        assert_eq!(found.join(""), expected, "{more}");
    }
    let scope = TokenScope {
        session_id: Some(Id::parse("s".to_owned()).unwrap()),
        operations: None,
        expires_at: i64::MAX,
        ..TokenScope::default()
    };
    let alice = Alice {
        caller: Caller::Scoped(scope),
        ..alice
    };
    alice.embeds(&[RAIN]);
    let mut found = alice.found("wet");
    found.sort();
    assert_eq!(found, ["a", "b"]);
}

/// Stores vectors of events of session `s`, as SQL writes them.
fn store_vectors(alice: &Alice, vectors: &[(i64, &str)]) {
    for (seq, vector) in vectors {
        let sql = format!(
            "INSERT INTO cf_agents_event_vectors (place, model, vector)
             VALUES ((1 << 32) | ?1, 'workers-ai:@cf/m', {vector})"
        );
        alice.db.rows(&sql, &[(*seq).into()]).unwrap();
    }
}

/// A session with this many messages, and an index of their words.
fn with_messages(thousands: usize) -> Alice {
    let alice = Alice::with_session().embedding_by("workers-ai:@cf/m");
    alice.ok("configureAgent", json!({"vectors": true}));
    for _ in 0..thousands {
        let events: Vec<Value> = (0..1000)
            .map(|_| json!({"action": "user_message", "content": "x"}))
            .collect();
        alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    }
    alice.search("\"first\"");
    alice
}

fn seqs(hits: &[Value]) -> Vec<i64> {
    hits.iter()
        .map(|hit| hit["seq"].as_i64().unwrap())
        .collect()
}

#[test]
fn all_vectors_are_compared_and_the_oldest_missing_are_made_last() {
    let alice = with_messages(11);
    // The vector of event 11,000 has another length.
    store_vectors(
        &alice,
        &[(11_000, "x'0505'"), (9_000, "x'01'"), (500, "x'03'")],
    );
    alice.embeds(&[[1.0, 0.2, 0.0]]);
    assert_eq!(seqs(&alice.search("wet")), [9_000, 500]);
    // No vectors are missing among the newest 10,000.
    let sql = "INSERT OR REPLACE INTO cf_agents_event_vectors (place, model, vector)
               SELECT (1 << 32) | seq, 'workers-ai:@cf/m', x'04'
                 FROM cf_agents_events
                WHERE seq > 1000";
    alice.db.unguarded(|| alice.db.run(sql, &[])).unwrap();
    alice.embeds(&[[1.0, 0.2, 0.0]]);
    alice.embeds(&[[1.0, 0.0, 0.0]; 64]);
    let found = alice.ok("search", json!({"query": "wet", "limit": 3}));
    assert_eq!(found["vectors"], json!({"pending": true}));
    // Those right below the oldest vector were created first.
    let sql = "SELECT min(place & 0xFFFFFFFF), max(place & 0xFFFFFFFF), count(*)
                 FROM cf_agents_event_vectors
                WHERE vector = x'01'";
    let row = &alice.db.rows(sql, &[]).unwrap()[0];
    let made = [0, 1, 2].map(|column| row.integer(column).unwrap());
    assert_eq!(made, [436, 499, 64]);
}

#[test]
fn a_search_compares_the_newest_80_000_messages() {
    let alice = with_messages(11);
    // Most of these events were deleted: only their vectors count.
    let sql = "WITH RECURSIVE seqs (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM seqs WHERE seq < 90000)
               INSERT INTO cf_agents_event_vectors (place, model, vector)
               SELECT (1 << 32) | seq, 'workers-ai:@cf/m', iif(seq IN (10000, 10001), x'01', x'04')
                 FROM seqs";
    alice.db.rows(sql, &[]).unwrap();
    alice.embeds(&[RAIN]);
    let found = alice.ok("search", json!({"query": "wet", "limit": 2}));
    assert_eq!(found["results"][0]["seq"], 10_001);
    assert_ne!(found["results"][1]["seq"], 10_000);
    assert_eq!(found["vectors"], json!({"pending": false}));
}

#[test]
fn vectors_of_an_earlier_build_are_compared_and_converted() {
    let alice = with_two_messages();
    // A character per number, as an earlier build wrote them.
    store_vectors(&alice, &[(1, "'~XO'"), (2, "'O~X'")]);
    alice.embeds(&[RAIN]);
    assert_eq!(alice.found("wet weather"), ["a", "b"]);
    let sql = "SELECT typeof(vector), hex(vector) FROM cf_agents_event_vectors ORDER BY place";
    let stored = alice.db.rows(sql, &[]).unwrap();
    let stored: Vec<(&str, &str)> = stored.iter().map(|row| row.read().unwrap()).collect();
    assert_eq!(stored, [("blob", "01"), ("blob", "02")]);
    // Only the query was embedded.
    assert_eq!(alice.embedding_requests(), [json!(["wet weather"])]);
    alice.embeds(&[CATS]);
    assert_eq!(alice.found("animals"), ["b", "a"]);
}

#[test]
fn a_search_converts_a_bounded_number_of_earlier_vectors() {
    let alice = with_messages(1);
    let sql = "INSERT INTO cf_agents_event_vectors (place, model, vector)
               SELECT (1 << 32) | seq, 'workers-ai:@cf/m', iif(seq = 7, '~XO', 'OX~')
                 FROM cf_agents_events";
    alice.db.rows(sql, &[]).unwrap();
    let earlier = "SELECT count(*) FROM cf_agents_event_vectors WHERE typeof(vector) = 'text'";
    for left in [488, 0, 0] {
        alice.embeds(&[RAIN]);
        assert_eq!(seqs(&alice.search_with("wet", json!({"limit": 1}))), [7]);
        let counted = alice.db.rows(earlier, &[]).unwrap();
        assert_eq!(counted[0].integer(0).unwrap(), left);
    }
}

#[test]
fn new_vectors_are_stored_all_or_none() {
    let mut tried = 0;
    loop {
        let alice = with_two_messages();
        alice.search("\"kitten purrs\"");
        let before = alice.db.dump();
        alice.embeds(&[RAIN]);
        alice.embeds(&[CATS, RAIN]);
        let failing = Failing::after(&alice.db, tried);
        let outcome = alice.send(&failing, "search", br#"{"query": "wet weather"}"#);
        if !failing.has_failed() {
            assert_eq!(ids(&outcome.unwrap()["results"]), ["a", "b"]);
            assert_eq!(alice.rows_in("cf_agents_event_vectors"), 2);
            break;
        }
        // If a read fails, the search fails. If storing vectors fails, the answer reports it.
        if let Ok(found) = outcome {
            assert_eq!(found["vectors"]["error"]["code"], "storage_failed");
        }
        let stored = alice.rows_in("cf_agents_event_vectors");
        assert!(
            stored == 2 || alice.db.dump() == before,
            "statement {tried}"
        );
        tried += 1;
    }
    assert!(tried > 8);
}

/// Runs `act` while the next request to the model is under way.
fn during_next_call(alice: &Rc<Alice>, act: impl FnOnce(&Alice) + 'static) {
    let same = Rc::clone(alice);
    *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(move || act(&same)));
}

#[test]
fn an_entry_changed_during_embedding_gets_the_new_texts_vector() {
    let alice = Rc::new(with_embeddings());
    during_next_call(&alice, |alice| {
        alice.embeds(&[MONEY]);
        alice.add_entry("umbrella", "Costs ten euros.");
        alice.embeds(&[RAIN]);
    });
    alice.add_entry("umbrella", "Take it when it drizzles.");
    let sql = "SELECT vector FROM cf_agents_entry_vectors";
    let stored = alice.db.rows(sql, &[]).unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].text(0).unwrap(), "OO~");
    // The vector of a deleted entry is not stored, not even for an entry that reuses its number.
    during_next_call(&alice, |alice| {
        alice.ok("deleteEntry", json!({"label": "kb", "key": "umbrella"}));
        alice.outbound.answer(Ok(ScriptedAnswer::text(400, "no")));
        alice.add_entry("kitten", "It purrs.");
        alice.embeds(&[RAIN]);
    });
    alice.add_entry("umbrella", "Take it when it drizzles.");
    assert_eq!(alice.rows_in("cf_agents_entry_vectors"), 0);
}

#[test]
fn an_event_deleted_during_embedding_gets_no_vector() {
    let alice = Rc::new(with_two_messages());
    let again = Rc::clone(&alice);
    // Nothing happens during the query's embedding. During the messages' embedding, one message is
    // deleted.
    during_next_call(&alice, move |alice| {
        alice.embeds(&[RAIN]);
        during_next_call(&again, |alice| {
            alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": ["a"]}));
            alice.embeds(&[CATS, RAIN]);
        });
    });
    assert_eq!(alice.found("wet weather"), ["b"]);
    assert_eq!(alice.rows_in("cf_agents_event_vectors"), 1);
}

/// The model never answers: a write is acknowledged, and words find what was written.
#[test]
fn a_write_does_not_wait_for_a_stalled_model() {
    let alice = with_embeddings();
    alice.outbound.hangs_after_answers.set(true);
    for n in 0..3 {
        let key = format!("umbrella {n}");
        let body = json!({"label": "kb", "key": key, "content": "Take it when it drizzles."});
        let agent = alice.agent(&alice.db);
        let body = body.to_string();
        let mut write = pin!(dispatch(&agent, "setEntry", body.as_bytes()));
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(written) = write.as_mut().poll(&mut context) else {
            panic!("the write waits");
        };
        assert!(written.is_ok());
    }
    assert!(alice.embedding_requests().is_empty());
    assert_eq!(keys(&alice.search_entries("drizzle")).len(), 3);
}

/// Operations that call models, and may search the memory.
const CALLS_MODEL: &[&str] = &["learn", "consolidate", "runTurn"];

#[test]
fn no_write_calls_the_embedding_model_before_responding() {
    let mut tried = 0;
    for Example { operation, body } in examples() {
        if READS.contains(&operation) || CALLS_MODEL.contains(&operation) {
            continue;
        }
        let alice = populated().embedding_by("workers-ai:@cf/m");
        drop(alice.call(operation, body));
        assert!(alice.embedding_requests().is_empty(), "{operation}");
        tried += 1;
    }
    assert!(tried > 50, "{tried}");
}
