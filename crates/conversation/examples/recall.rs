//! Measures natively how often a search finds the messages that answer a question. `npm run
//! bench -- recall` builds the data sets and runs this program.
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

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};

use base::database::Database;
use base::error::Result;
use base::numbers::{row_number, split_row_number};
use base::testing::Sqlite;
use search::counter::Candidate;
use search::fuse::{NEIGHBOR_SHARE, Nearest, WORDS_SHARE, fuse_with, with_neighbors};
use search::merge::merge;
use search::query::WordQuery;
use search::weights::{WEIGHTS, Weights};
use serde_json::Value;
use session_agent_conversation::index::agent_candidates::of_agent;
use session_agent_conversation::index::build::{BuildScope, advance};
use session_agent_conversation::index::candidates::{IndexMatch, IndexMatches};
use session_agent_conversation::index::find::TextReader;
use session_agent_conversation::index::order::{CandidateSource, order};
use session_agent_conversation::index::request::SearchRequest;
use store::testing::migrated;

struct Group {
    db: Sqlite,
    questions: Vec<Question>,
}

struct Question {
    kind: String,
    query: Query,
    /// The queries that a model may use instead, all in one search.
    queries: Vec<Query>,
    /// The positions of the messages that answer it.
    gold: Vec<(i64, i64)>,
    /// The similarity of each message's vector, if vectors were given.
    nearness: Vec<(i64, f64)>,
}

struct Query {
    text: String,
    /// The candidates from the index, and the texts that were read: the same for all
    /// weights.
    offered: OnceCell<IndexMatches>,
    read: RefCell<HashMap<(i64, i64), Option<Candidate>>>,
}

impl Query {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            offered: OnceCell::new(),
            read: RefCell::default(),
        }
    }

    /// The ranking by words, with the query repeated `queries` times.
    fn rank(&self, db: &Sqlite, weights: &Weights, queries: usize) -> Vec<((i64, i64), f64)> {
        let repeated = vec![self.text.clone(); queries];
        let search = SearchRequest {
            queries: &repeated,
            session_id: None,
            limit: 10,
            roles: None,
            since_ms: None,
            until_ms: None,
            filter: None,
        };
        let query = &WordQuery::parse_all(search.queries)[0];
        let load = || of_agent(db, &search, query).unwrap();
        let offer = self.offered.get_or_init(load);
        let mut texts = ReadTexts {
            reader: TextReader::new(db, &search, query, offer),
            read: &self.read,
        };
        order(&mut texts, query, offer, weights, queries).unwrap()
    }
}

#[derive(Default, Clone, Copy)]
struct Sums {
    questions: f64,
    at_5: f64,
    at_10: f64,
    all_at_10: f64,
}

/// A part of the ranking, and how to switch it off to measure what it contributes.
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
        weights.agent_factor = 1.0;
    }),
    ("questions", |weights| weights.question = 1.0),
    ("numbers", |weights| weights.number = 1.0),
    ("the speaker's name", |weights| weights.speaker = 1.0),
    ("words of time", |weights| weights.time = 1.0),
];

/// The texts of one question: each is read once.
struct ReadTexts<'a> {
    reader: TextReader<'a>,
    read: &'a RefCell<HashMap<(i64, i64), Option<Candidate>>>,
}

impl CandidateSource for ReadTexts<'_> {
    fn read(&mut self, events: &[IndexMatch]) -> Result<Vec<Candidate>> {
        let mut known = self.read.borrow_mut();
        let is_new = |event: &&IndexMatch| !known.contains_key(&event.position);
        let unknown = events.iter().filter(is_new);
        let new: Vec<IndexMatch> = unknown
            .map(|IndexMatch { position, score }| IndexMatch {
                position: *position,
                score: *score,
            })
            .collect();
        for event in &new {
            known.insert(event.position, None);
        }
        for candidate in self.reader.read(&new)? {
            known.insert((candidate.session, candidate.seq), Some(candidate));
        }
        let found = events
            .iter()
            .filter_map(|event| known[&event.position].clone());
        Ok(found.collect())
    }
}

/// The shares of words and of neighbors when the rankings are fused.
#[derive(Clone, Copy)]
struct Shares {
    words: f64,
    neighbours: f64,
}

const SHARES: Shares = Shares {
    words: WORDS_SHARE,
    neighbours: NEIGHBOR_SHARE,
};

fn main() {
    let switches = std::env::var("SWITCHES").is_ok();
    let tries = std::env::var("TRY").unwrap_or_default();
    for path in std::env::args().skip(1) {
        let vectors = std::fs::read(path.replace(".json", ".vec")).unwrap_or_default();
        let groups = read(&path, &vectors);
        println!("{path}");
        let known = measure(&groups, &WEIGHTS, None);
        for (kind, sums) in &known {
            println!("  {kind:10} {sums}");
        }
        if !vectors.is_empty() {
            for (kind, sums) in measure(&groups, &WEIGHTS, Some(SHARES)) {
                println!("  with meanings {kind:10} {sums}");
            }
        }
        for (name, switch_off) in SWITCHES.iter().filter(|_| switches) {
            let mut weights = WEIGHTS;
            switch_off(&mut weights);
            let kinds = measure(&groups, &weights, None);
            println!("  without {name:28} {}", kinds["all"]);
        }
        for change in tries.split(';').filter(|change| !change.is_empty()) {
            let (mut weights, mut shares) = (WEIGHTS, SHARES);
            for part in change.split(',') {
                set(&mut weights, &mut shares, part);
            }
            let is_of_shares = change.contains("neighbours=") || change.contains("words=");
            if !is_of_shares {
                report_change(change, &known, &measure(&groups, &weights, None));
            } else {
                let before = measure(&groups, &WEIGHTS, Some(SHARES));
                report_change(change, &before, &measure(&groups, &weights, Some(shares)));
            }
        }
    }
}

/// Changes a constant of the ranking: `TRY="before=0.2;together=0,question=1"` measures two
/// changes, the second one of two constants.
fn set(weights: &mut Weights, shares: &mut Shares, change: &str) {
    let (name, value) = change.split_once('=').unwrap();
    let number = match name {
        "repeats" => &mut weights.repeats,
        "most" => &mut weights.most,
        "typical_words" => &mut weights.typical_words,
        "length_share" => &mut weights.length_share,
        "about" => &mut weights.about,
        "after_question" => &mut weights.after_question,
        "after" => &mut weights.after,
        "before" => &mut weights.before,
        "two_after" => &mut weights.two_after,
        "two_before" => &mut weights.two_before,
        "three_away" => &mut weights.three_away,
        "together" => &mut weights.together,
        "least_coverage" => &mut weights.least_coverage,
        "found" => &mut weights.found,
        "long_words" => &mut weights.long_words,
        "long_power" => &mut weights.long_power,
        "role_power" => &mut weights.role_power,
        "asked_agent" => &mut weights.agent_factor,
        "question" => &mut weights.question,
        "number" => &mut weights.number,
        "speaker" => &mut weights.speaker,
        "time" => &mut weights.time,
        "words" => &mut shares.words,
        "neighbours" => &mut shares.neighbours,
        _ => panic!("no number is called {name}"),
    };
    *number = value.parse().unwrap();
}

/// The changes of R@5 and R@10 in percentage points: for all questions, for both halves of
/// the groups, and for the kinds with a change of R@10.
fn report_change(change: &str, before: &BTreeMap<String, Sums>, after: &BTreeMap<String, Sums>) {
    let points = |kind: &str, of: fn(&Sums) -> f64| match (before.get(kind), after.get(kind)) {
        (Some(before), Some(after)) => 100.0 * (of(after) - of(before)) / after.questions,
        _ => 0.0,
    };
    let at_10 = |kind: &str| points(kind, |sums| sums.at_10);
    let is_kind = |kind: &&String| !["all", "half 1", "half 2"].contains(&kind.as_str());
    let kinds: String = after
        .keys()
        .filter(is_kind)
        .filter(|kind| at_10(kind).abs() > 0.3)
        .map(|kind| format!(" {kind} {:+.1}", at_10(kind)))
        .collect();
    println!(
        "  {change:32} R@5 {:+.1}  R@10 {:+.1} ({:+.1} {:+.1}) {kinds}",
        points("all", |sums| sums.at_5),
        at_10("all"),
        at_10("half 1"),
        at_10("half 2"),
    );
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

/// The texts nearest to a question.
fn by_meaning(question: &Question, shares: Shares) -> Nearest<(i64, i64)> {
    let items = with_neighbors(question.nearness.clone(), shares.neighbours)
        .into_iter()
        .map(|(number, near)| (split_row_number(number), near))
        .collect();
    Nearest::new(items)
}

fn measure(
    groups: &[Group],
    weights: &Weights,
    meanings: Option<Shares>,
) -> BTreeMap<String, Sums> {
    let mut kinds: BTreeMap<String, Sums> = BTreeMap::new();
    for (half, group) in groups.iter().enumerate() {
        let Group { db, questions } = group;
        let half = ["half 1", "half 2"][half % 2];
        for question in questions {
            let ranked = question.query.rank(db, weights, 1);
            let hits = match meanings {
                Some(shares) => fuse_with(&ranked, &by_meaning(question, shares), shares.words),
                None => ranked,
            };
            add(&mut kinds, &["all", half, &question.kind], question, &hits);
            if !question.queries.is_empty() && meanings.is_none() {
                let several = question.queries.len();
                let rankings = question.queries.iter();
                let hits = merge(
                    rankings
                        .map(|query| query.rank(db, weights, several))
                        .collect(),
                );
                let kind = format!("{}, as several queries", question.kind);
                add(&mut kinds, &[&kind], question, &hits);
            }
        }
    }
    kinds
}

fn add(
    kinds: &mut BTreeMap<String, Sums>,
    names: &[&str],
    question: &Question,
    hits: &[((i64, i64), f64)],
) {
    let share = |most: usize| {
        let found = |gold: &&(i64, i64)| hits.iter().take(most).any(|hit| hit.0 == **gold);
        question.gold.iter().filter(found).count() as f64 / question.gold.len() as f64
    };
    for name in names {
        let sums = kinds.entry((*name).to_owned()).or_default();
        sums.questions += 1.0;
        sums.at_5 += share(5);
        sums.at_10 += share(10);
        sums.all_at_10 += f64::from(u8::from(share(10) > 0.999));
    }
}

/// Reads a set and its vectors: those of each group's messages, then of its questions, as
/// 32-bit numbers. Each vector has length 1.
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
        let (own, rest) = left.split_at(many * bytes);
        left = rest;
        let numbers = |vector: &[u8]| {
            let numbers = vector.chunks_exact(4);
            numbers
                .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
                .collect()
        };
        (0..many)
            .map(|at| numbers(&own[at * bytes..(at + 1) * bytes]))
            .collect()
    };
    groups
        .iter()
        .map(|group| {
            let mut message_vectors = take(count(group, "messages"));
            if std::env::var("SIGNS").is_ok() {
                message_vectors.iter_mut().for_each(to_signs);
            }
            let question_vectors = take(count(group, "questions"));
            read_group(group, &message_vectors, &question_vectors)
        })
        .collect()
}

/// Reduces a vector to one bit per number, as messages' vectors are stored
/// (`recall/signs.rs`).
fn to_signs(vector: &mut Vec<f32>) {
    let numbers = vector.len() as f32;
    let average = vector.iter().sum::<f32>() / numbers;
    for number in vector {
        let sign = if *number > average { 1.0 } else { -1.0 };
        *number = sign / numbers.sqrt();
    }
}

fn read_group(group: &Value, message_vectors: &[Vec<f32>], question_vectors: &[Vec<f32>]) -> Group {
    let db = migrated();
    let mut seqs: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    let mut row_numbers: Vec<i64> = Vec::new();
    let mut of_ids: HashMap<String, i64> = HashMap::new();
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
        row_numbers.push(row_number(*number, *seq));
        of_ids.insert(text("id").to_owned(), row_number(*number, *seq));
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
    while advance(&db, BuildScope::Anyone(None)).unwrap().continues {}
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let questions = group["questions"].as_array().unwrap().iter();
    let dot = |one: &Vec<f32>, other: &Vec<f32>| -> f64 {
        one.iter().zip(other).map(|(a, b)| f64::from(a * b)).sum()
    };
    let questions = questions
        .zip(question_vectors)
        .map(|(question, question_vectors)| Question {
            nearness: row_numbers
                .iter()
                .zip(message_vectors)
                .map(|(row_number, message_vectors)| {
                    (*row_number, dot(question_vectors, message_vectors))
                })
                .collect(),
            // A question in another language is counted under its language.
            kind: match group["language"].as_str() {
                Some("en") => text(&question["kind"]),
                language => language.unwrap().to_owned(),
            },
            query: Query::new(&text(&question["question"])),
            queries: question["queries"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|query| Query::new(&text(query)))
                .collect(),
            gold: question["gold"]
                .as_array()
                .unwrap()
                .iter()
                .map(|id| split_row_number(of_ids[&text(id)]))
                .collect(),
        });
    Group {
        db,
        questions: questions.collect(),
    }
}
