//! The cost limit of one search, whatever an agent contains, and the results within the limit: the
//! same as a full scan.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::shared::searches::append_many;
use crate::{Alice, Dice, ids};
use search::words::words;

fn seqs(answer: &Value) -> BTreeSet<i64> {
    let results = answer["results"].as_array().unwrap().iter();
    results.map(|hit| hit["seq"].as_i64().unwrap()).collect()
}

fn indexed(alice: &Alice) {
    alice.search("anything");
    while conversation::index::build::build_batch(&alice.db).unwrap() {}
}

/// Whether a text matches a query, by a naive scan.
fn matches_query(text: &str, query: &str) -> bool {
    let all = words(text);
    let phrases: Vec<Vec<String>> = query.split('"').skip(1).step_by(2).map(words).collect();
    if !phrases.is_empty() {
        let matches_query =
            |phrase: &Vec<String>| all.windows(phrase.len()).any(|row| row == phrase);
        return phrases.iter().all(matches_query);
    }
    query.split(' ').any(|term| match term.strip_suffix('*') {
        Some(prefix) if prefix.len() > 1 => all.iter().any(|word| word.starts_with(prefix)),
        Some(word) => all.iter().any(|one| one == word),
        None => all.iter().any(|word| word == term),
    })
}

/// Words with common prefixes. Each is its own stem.
const WORDS: &[&str] = &[
    "ba", "bab", "baba", "bo", "bob", "da", "dad", "dado", "ko", "kok", "qu", "7", "77", "z",
];

fn query_of(dice: &mut Dice) -> String {
    let word = |dice: &mut Dice| WORDS[dice.roll(WORDS.len())];
    match dice.roll(4) {
        0 => format!("\"{} {}\"", word(dice), word(dice)),
        1 => format!(
            "\"{} {}\" \"{}\" {}*",
            word(dice),
            word(dice),
            word(dice),
            word(dice)
        ),
        2 => format!("{}* {}*", word(dice), word(dice)),
        _ => format!("{} {}*", word(dice), word(dice)),
    }
}

#[test]
fn search_results_match_a_full_scan() {
    let mut dice = Dice(7);
    let mut found_any = 0;
    for _ in 0..6 {
        let alice = Alice::with_session();
        alice.ok("createSession", json!({"id": "t"}));
        let mut texts = Vec::new();
        for session in ["s", "t"] {
            let messages: Vec<String> = (0..40)
                .map(|_| {
                    let text: Vec<&str> = (0..1 + dice.roll(5))
                        .map(|_| WORDS[dice.roll(WORDS.len())])
                        .collect();
                    text.join(" ")
                })
                .collect();
            append_many(&alice, session, &messages);
            texts.push(messages);
        }
        indexed(&alice);
        for _ in 0..100 {
            let query = query_of(&mut dice);
            let expected = |texts: &[String]| -> BTreeSet<i64> {
                let found = (1..)
                    .zip(texts)
                    .filter(|(_, text)| matches_query(text, &query));
                found.map(|(seq, _)| seq).collect()
            };
            // One of the two sessions alone, then both.
            for (session, texts) in ["s", "t"].iter().zip(&texts) {
                let body = json!({"query": query, "sessionId": session, "limit": 100});
                let answer = alice.ok("search", body);
                let mut found = seqs(&answer);
                // A turn right after a question is found, too; no text here is a question.
                assert_eq!(answer.get("truncated"), None);
                found.retain(|seq| matches_query(&texts[*seq as usize - 1], &query));
                assert_eq!(found, expected(texts), "{query} in {session}");
                found_any += found.len();
            }
            let answer = alice.ok("search", json!({"query": query, "limit": 100}));
            let all = texts
                .iter()
                .map(|texts| expected(texts).len())
                .sum::<usize>();
            let found = answer["results"].as_array().unwrap().iter();
            let found = found.filter(|hit| {
                let place = usize::from(hit["sessionId"] == "t");
                matches_query(
                    &texts[place][hit["seq"].as_u64().unwrap() as usize - 1],
                    &query,
                )
            });
            assert_eq!(found.count(), all.min(100), "{query}");
        }
    }
    assert!(found_any > 2_000, "{found_any}");
}

#[test]
fn omitting_common_words_is_reported_and_rare_ones_are_found() {
    let alice = Alice::with_session();
    // Each message has a word that begins with `com`, and one of a few hundred others.
    let texts: Vec<String> = (0..50_000)
        .map(|n| format!("common{} rare{n} always", n % 300))
        .collect();
    append_many(&alice, "s", &texts);
    indexed(&alice);
    for (query, is_cut, expected) in [
        ("rare7", false, Some(8)),
        ("rare7 always", true, Some(8)),
        ("com* rare7", true, Some(8)),
        ("rare77*", false, None),
        ("always", true, None),
        ("com*", true, None),
        ("\"common7 rare7 always\"", false, Some(8)),
        ("\"common7 always rare7\"", false, None),
    ] {
        let answer = alice.ok("search", json!({"query": query}));
        let first = answer["results"].get(0).and_then(|hit| hit["seq"].as_i64());
        assert_eq!(answer["truncated"] == true, is_cut, "{query}");
        match expected {
            Some(seq) => assert_eq!(first, Some(seq), "{query}"),
            None => assert_eq!(first.is_none(), query.contains("always rare"), "{query}"),
        }
    }
    // In one session, prefixes are searched in its newest 8,000 events.
    let of = |query: &str| alice.ok("search", json!({"sessionId": "s", "query": query}));
    assert_eq!(of("rare7")["results"][0]["seq"], 8);
    assert_eq!(of("rare49*")["results"].as_array().unwrap().len(), 20);
    assert_eq!(of("rare49*")["truncated"], true);
    assert_eq!(of("rare70*")["results"], json!([]));
    assert_eq!(of("always")["truncated"], true);
    assert_eq!(of("\"common7 rare7 always\"")["results"][0]["seq"], 8);
}

#[test]
fn a_filtered_search_reports_what_it_omits() {
    let alice = Alice::with_session();
    let texts: Vec<String> = (0..12_000).map(|n| format!("word {n}")).collect();
    append_many(&alice, "s", &texts);
    indexed(&alice);
    let found = |more: Value| {
        let mut body = json!({"query": "word"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        alice.ok("search", body)
    };
    assert_eq!(found(json!({"roles": ["user"]}))["truncated"], true);
    assert_eq!(found(json!({"roles": ["tool"]}))["results"], json!([]));
    assert_eq!(found(json!({"roles": ["tool"]}))["truncated"], true);
    let rare = alice.ok("search", json!({"query": "77 78", "roles": ["user"]}));
    assert_eq!(seqs(&rare), BTreeSet::from([78, 79]));
    assert_eq!(rare.get("truncated"), None);
}

#[test]
fn one_endlessly_repeated_word_breaks_no_search() {
    let alice = Alice::with_session();
    let text = format!("begin {} the very end", "again and ".repeat(150_000));
    alice.append_message("long", &text);
    alice.append_message("short", "again and again");
    indexed(&alice);
    for query in [
        "again",
        "ag*",
        "\"again and\"",
        "end",
        "\"very end\"",
        "\"begin again\"",
    ] {
        for session in [json!(null), json!("s")] {
            let body = json!({"query": query, "sessionId": session, "limit": 100});
            let found = ids(&alice.ok("search", body)["results"]);
            assert!(found.contains(&"long".to_owned()), "{query} {session}");
        }
    }
    // An omitted word doesn't make the words around it adjacent.
    assert_eq!(alice.found("\"and the\""), [""; 0]);
}

/// Entries of a block, each of which contains the common words.
fn with_entries(many: usize) -> Alice {
    let alice = Alice::with_session();
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    for n in 0..many {
        let content = format!("the user likes common words of number {n} very{}", n % 50);
        let body = json!({"label": "kb", "key": format!("k{n}"), "content": content});
        alice.ok("setEntry", body);
    }
    alice
}

#[test]
fn the_number_of_visited_entries_is_bounded() {
    let visited = |many: usize| {
        let alice = with_entries(many);
        let query = "what common words does the user like, of which number: very7?";
        alice.ok("searchContext", json!({"label": "kb", "query": query}));
        alice.db.take_steps();
        let answer = alice.ok("searchContext", json!({"label": "kb", "query": query}));
        let first = answer["results"][0]["content"].as_str().unwrap();
        assert!(first.ends_with("very7"), "{answer}");
        (alice.db.take_steps(), answer["truncated"] == true)
    };
    let (few, many) = (visited(1_000), visited(4_000));
    assert!(many.0 < few.0 * 11 / 10, "{few:?} {many:?}");
    assert_eq!((few.1, many.1), (true, true));
    assert!(!visited(300).1);
}

#[test]
fn word_frequencies_are_exact_in_a_large_block() {
    let alice = with_entries(3_000);
    let found = |query: &str| {
        let answer = alice.ok(
            "searchContext",
            json!({"label": "kb", "query": query, "limit": 100}),
        );
        let keys = answer["results"].as_array().unwrap().iter();
        let keys: Vec<String> = keys
            .map(|entry| entry["key"].as_str().unwrap().to_owned())
            .collect();
        (keys, answer["truncated"] == true)
    };
    assert_eq!(found("17"), (vec!["k17".to_owned()], false));
    assert_eq!(found("user 17").0[0], "k17");
    assert_eq!(found("\"number 17\"").0, ["k17"]);
    assert_eq!(found("numb*").0.len(), 100);
    let beginnings = found("299*");
    assert_eq!((beginnings.0.len(), beginnings.1), (11, false));
}
