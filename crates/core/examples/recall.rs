//! Measures how often a search finds what answers a question, natively. `npm run bench --
//! recall` makes the sets and runs this program.
//!
//!   recall SET.json …

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a program that measures may panic and print"
)]

use std::collections::BTreeMap;

use serde_json::Value;
use session_agent_core::base::database::Database;
use session_agent_core::base::numbers::{place, split_place};
use session_agent_core::search::build::{BuildScope, advance};
use session_agent_core::search::find::find_by;
use session_agent_core::search::fuse::{NEIGHBOUR_SHARE, Nearest, with_neighbours};
use session_agent_core::search::request::SearchRequest;
use session_agent_core::search::weights::{WEIGHTS, Weights};
use session_agent_core::testing::{Sqlite, migrated};

struct Group {
    db: Sqlite,
    questions: Vec<Question>,
}

struct Question {
    kind: String,
    text: String,
    gold: Vec<String>,
    /// How near each message is by meaning, if vectors were given.
    nearness: Vec<(i64, f64)>,
}

#[derive(Default, Clone, Copy)]
struct Sums {
    questions: f64,
    at_5: f64,
    at_10: f64,
    all_at_10: f64,
}

/// What is switched off to measure what it is worth, and how.
type Switch = (&'static str, fn(&mut Weights));

const SWITCHES: &[Switch] = &[
    ("nothing", |_| {}),
    ("the words of neighbours", |weights| {
        weights.after_question = 0.0;
        weights.after = 0.0;
        weights.before = 0.0;
        weights.two_after = 0.0;
        weights.two_before = 0.0;
        weights.three_away = 0.0;
    }),
    ("after a question", |weights| {
        weights.after_question = weights.after;
    }),
    ("right after", |weights| weights.after = 0.0),
    ("right before", |weights| weights.before = 0.0),
    ("two after", |weights| weights.two_after = 0.0),
    ("two before", |weights| weights.two_before = 0.0),
    ("three away", |weights| weights.three_away = 0.0),
    ("words side by side", |weights| weights.together = 0.0),
    ("coverage", |weights| weights.least_coverage = 1.0),
    ("who, where and when", |weights| weights.about = 0.0),
    ("length in a word's weight", |weights| {
        weights.length_share = 0.0;
    }),
    ("length of a text", |weights| weights.long_power = 0.0),
    ("the role that says less", |weights| {
        weights.role_power = 0.0;
    }),
    ("the agent that is asked for", |weights| {
        weights.asked_agent = 1.0;
    }),
    ("questions", |weights| weights.question = 1.0),
    ("numbers", |weights| weights.number = 1.0),
    ("the speaker's name", |weights| weights.speaker = 1.0),
];

fn main() {
    let switches = std::env::var("SWITCHES").is_ok();
    for path in std::env::args().skip(1) {
        let vectors = std::fs::read(path.replace(".json", ".vec")).unwrap_or_default();
        let groups = read(&path, &vectors);
        println!("{path}");
        for (kind, sums) in measure(&groups, &WEIGHTS, None) {
            println!("  {kind:10} {sums}");
        }
        if !vectors.is_empty() {
            for (kind, sums) in measure(&groups, &WEIGHTS, Some(NEIGHBOUR_SHARE)) {
                println!("  with meanings {kind:10} {sums}");
            }
            println!(
                "  with meanings, without neighbours {}",
                measure(&groups, &WEIGHTS, Some(0.0))["all"]
            );
        }
        for (name, switch_off) in SWITCHES.iter().filter(|_| switches) {
            let mut weights = WEIGHTS;
            switch_off(&mut weights);
            let kinds = measure(&groups, &weights, None);
            println!("  without {name:28} {}", kinds["all"]);
        }
    }
}

impl std::fmt::Display for Sums {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = |sum: f64| sum / self.questions;
        write!(
            to,
            "{:5} {:.3} {:.3} {:.3}",
            self.questions,
            share(self.at_5),
            share(self.at_10),
            share(self.all_at_10)
        )
    }
}

/// What is nearest to a question; `None`: words alone are asked.
fn by_meaning(question: &Question, share: Option<f64>) -> Vec<Nearest<(i64, i64)>> {
    let Some(share) = share else {
        return Vec::new();
    };
    let items = with_neighbours(question.nearness.clone(), share)
        .into_iter()
        .map(|(number, near)| (split_place(number), near))
        .collect();
    vec![Nearest::new(items)]
}

fn measure(groups: &[Group], weights: &Weights, meanings: Option<f64>) -> BTreeMap<String, Sums> {
    let mut kinds: BTreeMap<String, Sums> = BTreeMap::new();
    for Group { db, questions } in groups {
        for question in questions {
            let search = SearchRequest {
                queries: std::slice::from_ref(&question.text),
                session_id: None,
                limit: 10,
                roles: None,
                since_ms: None,
                until_ms: None,
            };
            let nearest: Vec<Nearest<(i64, i64)>> = by_meaning(question, meanings);
            let hits = find_by(db, &search, &nearest, weights).unwrap();
            let share = |most: usize| {
                let found = |gold: &&String| hits.iter().take(most).any(|hit| hit.id == **gold);
                question.gold.iter().filter(found).count() as f64 / question.gold.len() as f64
            };
            for kind in ["all", &question.kind] {
                let sums = kinds.entry(kind.to_owned()).or_default();
                sums.questions += 1.0;
                sums.at_5 += share(5);
                sums.at_10 += share(10);
                sums.all_at_10 += f64::from(u8::from(share(10) > 0.999));
            }
        }
    }
    kinds
}

/// Reads a set, and its vectors: those of each group's messages, then of its questions, as
/// 32-bit numbers. Each vector has the length 1.
fn read(path: &str, vectors: &[u8]) -> Vec<Group> {
    let set: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let groups = set["groups"].as_array().unwrap();
    let count = |group: &Value, list: &str| group[list].as_array().unwrap().len();
    let texts: usize = groups
        .iter()
        .map(|group| count(group, "messages") + count(group, "questions"))
        .sum();
    let bytes = vectors.len() / texts;
    let mut left = vectors;
    let mut take = |many: usize| -> Vec<Vec<f32>> {
        let (taken, rest) = left.split_at(many * bytes);
        left = rest;
        let numbers = |vector: &[u8]| {
            let numbers = vector.chunks_exact(4);
            numbers
                .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
                .collect()
        };
        (0..many)
            .map(|at| numbers(&taken[at * bytes..(at + 1) * bytes]))
            .collect()
    };
    groups
        .iter()
        .map(|group| {
            let said = take(count(group, "messages"));
            let asked = take(count(group, "questions"));
            read_group(group, &said, &asked)
        })
        .collect()
}

fn read_group(group: &Value, said: &[Vec<f32>], asked: &[Vec<f32>]) -> Group {
    let db = migrated();
    let mut seqs: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    let mut places: Vec<i64> = Vec::new();
    for message in group["messages"].as_array().unwrap() {
        let text = |field: &str| message[field].as_str().unwrap_or_default();
        let session = text("sessionId");
        if !seqs.contains_key(session) {
            db.run(
                "INSERT INTO cf_agents_sessions (number, id, agent_id, created_at, updated_at)
                 VALUES (?1, ?2, 'a', 0, 0)",
                &[(seqs.len() as i64 + 1).into(), session.into()],
            )
            .unwrap();
        }
        let next = seqs.len() as i64 + 1;
        let (number, seq) = seqs.entry(session.to_owned()).or_insert((next, 0));
        *seq += 1;
        places.push(place(*number, *seq));
        let metadata = message["name"]
            .as_str()
            .map(|name| format!("{{\"name\":\"{name}\"}}"));
        let action = match text("role") {
            "user" => "user_message",
            _ => "agent_message",
        };
        db.run(
            "INSERT INTO cf_agents_events (session_id, seq, id, parent_seq, action, content, metadata, created_at, written_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0)",
            &[
                session.into(),
                (*seq).into(),
                text("id").into(),
                (*seq - 1).into(),
                action.into(),
                text("text").into(),
                metadata.as_deref().into(),
                message["createdAt"].as_i64().unwrap().into(),
            ],
        )
        .unwrap();
    }
    while advance(&db, BuildScope::Anyone(None)).unwrap().goes_on {}
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let questions = group["questions"].as_array().unwrap().iter();
    let dot = |one: &Vec<f32>, other: &Vec<f32>| -> f64 {
        one.iter().zip(other).map(|(a, b)| f64::from(a * b)).sum()
    };
    let questions = questions.zip(asked).map(|(question, asked)| Question {
        nearness: places
            .iter()
            .zip(said)
            .map(|(place, said)| (*place, dot(asked, said)))
            .collect(),
        // What is asked in another language counts under its language.
        kind: text(&question["kind"])
            .split(' ')
            .next_back()
            .unwrap()
            .to_owned(),
        text: text(&question["question"]),
        gold: question["gold"]
            .as_array()
            .unwrap()
            .iter()
            .map(text)
            .collect(),
    });
    Group {
        db,
        questions: questions.collect(),
    }
}
