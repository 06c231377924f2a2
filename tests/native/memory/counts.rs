//! The stored counts of a block's entries and deleted items, and the replacements among them, equal
//! a count of the rows after any writes.

use serde_json::{Value, json};

use crate::Alice;
use base::columns::{load, load_values};
use base::database::Database;
use base::testing::Dice;
use memory::counts::{count_deleted, count_entries};

const GAMES: u64 = 24;
const MOVES: usize = 120;

/// The counts by the rows, counted one by one: each block's entries and deleted items.
fn counted(db: &dyn Database, sql: &str) -> Vec<(String, String)> {
    load(db, sql, &[]).unwrap()
}

fn check(alice: &Alice, case: &str) {
    let db = &alice.db;
    let blocks = "SELECT scope, block FROM cf_agents_entries
            UNION SELECT scope, block FROM cf_agents_item_versions
            UNION SELECT scope, block FROM cf_agents_item_counts";
    for (scope, block) in counted(db, blocks) {
        let rows = |table: &str, more: &str| {
            let sql = format!("SELECT 1 FROM {table} WHERE scope = ?1 AND block = ?2 {more}");
            let params = [scope.as_str().into(), block.as_str().into()];
            db.rows(&sql, &params).unwrap().len() as i64
        };
        assert_eq!(
            [
                count_entries(db, &scope, &block).unwrap(),
                count_deleted(db, &scope, &block).unwrap(),
            ],
            [
                rows("cf_agents_entries", ""),
                rows("cf_agents_item_versions", "AND content IS NULL"),
            ],
            "{case}: {scope}/{block}"
        );
    }
    let stored: Vec<String> = load_values(
        db,
        "SELECT e.scope || '/' || e.block || '/' || replaced.value || '/' || e.key
           FROM cf_agents_entries AS e, json_each(e.note, '$.supersedes') AS replaced
          GROUP BY 1
          ORDER BY 1",
        &[],
    )
    .unwrap();
    let recorded: Vec<String> = load_values(
        db,
        "SELECT scope || '/' || block || '/' || key || '/' || replacer
           FROM cf_agents_replacements
          ORDER BY 1",
        &[],
    )
    .unwrap();
    assert_eq!(recorded, stored, "{case}");
}

/// A random player over the entries of an agent and its sessions.
struct Player {
    alice: Alice,
    dice: Dice,
    sessions: Vec<String>,
}

impl Player {
    fn scope(&mut self) -> Value {
        match self.dice.roll(3) {
            0 => Value::Null,
            _ => match self.sessions.len() {
                0 => Value::Null,
                some => json!(self.sessions[self.dice.roll(some)]),
            },
        }
    }

    fn keys(&mut self, most: usize) -> Vec<String> {
        let some = self.dice.roll(most + 1);
        (0..some)
            .map(|_| format!("k{}", self.dice.roll(12)))
            .collect()
    }

    /// Makes a move. A refused one counts too: it must leave the counts unchanged.
    fn play(&mut self) -> String {
        let scope = self.scope();
        let label = ["facts", "other"][self.dice.roll(2)];
        let key = format!("k{}", self.dice.roll(12));
        self.alice.host.advance(self.dice.roll(3) as i64);
        let (operation, body) = match self.dice.roll(20) {
            0 => (
                "removeBlock",
                json!({"sessionId": scope, "label": label, "purge": self.dice.roll(3) == 0}),
            ),
            1 if self.sessions.len() < 5 => ("createSession", json!({})),
            2 if scope.is_string() => ("forkSession", json!({"sessionId": scope})),
            3 if scope.is_string() => return self.move_session(&scope),
            4 if scope.is_string() && self.dice.roll(2) == 0 => {
                self.sessions.retain(|id| scope != *id);
                ("deleteSession", json!({"sessionId": scope}))
            }
            5..=8 => (
                "deleteEntry",
                json!({"sessionId": scope, "label": label, "key": key}),
            ),
            9 => (
                "revertBlock",
                json!({"sessionId": scope, "label": label, "key": key, "version": self.dice.roll(4)}),
            ),
            roll => {
                let mut body = json!({"sessionId": scope, "label": label, "key": key,
                                      "content": format!("it rains {}", self.dice.roll(5))});
                if roll < 14 {
                    body["supersedes"] = json!(self.keys(2));
                }
                ("setEntry", body)
            }
        };
        let case = format!("{operation} {body}");
        let outcome = self.alice.call(operation, body.clone());
        match (operation, outcome) {
            ("createSession" | "forkSession", Ok(session)) => {
                self.sessions
                    .push(session["id"].as_str().unwrap().to_owned());
            }
            ("setEntry", Err(error)) if error.code.name() == "block_not_found" => {
                let block = json!({"sessionId": scope, "label": label, "kind": "searchable"});
                self.alice.ok("defineBlock", block);
            }
            _ => {}
        }
        case
    }

    /// Exports a session, deletes it, and imports it again.
    fn move_session(&mut self, id: &Value) -> String {
        let id = id.as_str().unwrap();
        let file = self.alice.export(id).unwrap();
        self.alice.ok("deleteSession", json!({"sessionId": id}));
        self.alice.import(id, &file).unwrap();
        format!("export and import {id}")
    }
}

#[test]
fn counts_are_exact_after_any_writes() {
    for seed in 1..=GAMES {
        let mut player = Player {
            alice: Alice::default(),
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            sessions: Vec::new(),
        };
        for number in 0..MOVES {
            let case = player.play();
            check(
                &player.alice,
                &format!("seed {seed}, move {number}: {case}"),
            );
        }
        player.alice.assert_consistent(&format!("seed {seed}"));
    }
}

#[test]
fn entry_counts_are_shown_without_reading_the_entries() {
    let alice = Alice::default();
    alice.ok(
        "defineBlock",
        json!({"label": "facts", "kind": "searchable"}),
    );
    let mut steps = Vec::new();
    for count in [100, 1_000] {
        for n in steps.len() * 100..count {
            let entry = json!({"label": "facts", "key": format!("k{n}"), "content": "it rains"});
            alice.ok("setEntry", entry);
        }
        alice.db.take_steps();
        let prompt = alice.ok("renderPrompt", json!({}))["prompt"].to_string();
        assert!(
            prompt.contains(&format!("{count} entries indexed.")),
            "{prompt}"
        );
        steps.push(alice.db.take_steps());
    }
    // A count reads the few entries that are not counted yet, and their number varies.
    assert!(steps[1] < steps[0] + 400, "{steps:?}");
}

#[test]
fn the_oldest_deleted_item_is_dropped_first() {
    let alice = Alice::default();
    alice.ok(
        "defineBlock",
        json!({"label": "facts", "kind": "searchable"}),
    );
    for n in 0..1_003 {
        alice.host.advance(1);
        let key = format!("k{n}");
        let entry = json!({"label": "facts", "key": key, "content": "it rains"});
        alice.ok("setEntry", entry);
        alice.ok("deleteEntry", json!({"label": "facts", "key": key}));
    }
    let count_versions = |n: usize| {
        let item = json!({"label": "facts", "key": format!("k{n}")});
        alice.ok("getBlockVersions", item)["versions"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(
        [
            count_versions(0),
            count_versions(2),
            count_versions(3),
            count_versions(1_002)
        ],
        [0, 0, 2, 2]
    );
    check(&alice, "after 1,003 deletions");
}
