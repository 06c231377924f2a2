//! Random play against a naive tree in memory: append anywhere, delete anything, choose
//! leaves, update, fork, clear, cover ranges with overlays. Every read is compared with
//! the tree.

use std::collections::BTreeMap;
use std::ops::Range;

use base::database::Database as _;
use base::ids::Id;
use conversation::log::tip::{AppendTip, get_append_tip, get_tip};
use serde_json::{Value, json};

use crate::{Alice, Dice, ids};

/// The expected log: each event's id, parent and text, by `seq`.
#[derive(Clone, Default)]
pub struct NaiveTree {
    events: BTreeMap<usize, (String, usize, String)>,
    last_seq: usize,
    /// The chosen leaf, and the newest `seq` when the leaf was chosen.
    chosen: Option<(usize, usize)>,
    overlays: Vec<Overlay>,
}

/// A summary of the events `from` to `to`, and the event above them.
#[derive(Clone)]
pub struct Overlay {
    id: String,
    summary: String,
    from: usize,
    to: usize,
    above: usize,
}

impl NaiveTree {
    /// The tree of session `s` as the agent reports it, after one more event.
    pub fn of(alice: &Alice) -> Self {
        let mut naive = Self::default();
        // The append ends the choice of a leaf, and its `seq` is the newest.
        alice.append_texts(&["the next game"]);
        for event in alice.events() {
            let seq = event["seq"].as_u64().unwrap() as usize;
            let parent = naive.find(&event["parentId"]);
            let text = |name: &str| event[name].as_str().unwrap().to_owned();
            let node = (text("id"), parent, text("content"));
            naive.events.insert(seq, node);
            naive.last_seq = seq;
        }
        let listed = alice.ok("getCompactions", json!({"sessionId": "s"}));
        for overlay in listed["compactions"].as_array().unwrap() {
            let from = naive.find(&overlay["fromId"]);
            naive.overlays.push(Overlay {
                id: overlay["id"].as_str().unwrap().to_owned(),
                summary: overlay["summary"].as_str().unwrap().to_owned(),
                from,
                to: naive.find(&overlay["toId"]),
                above: naive.events[&from].1,
            });
        }
        naive
    }

    /// The `seq` of an event by its id; 0 if the id is `null`.
    fn find(&self, id: &Value) -> usize {
        let found = self.events.iter().find(|(_, (known, ..))| id == known);
        found.map_or(0, |(seq, _)| *seq)
    }

    fn newest(&self) -> usize {
        self.events.keys().next_back().copied().unwrap_or(0)
    }

    fn leaf(&self) -> usize {
        match self.chosen {
            Some((leaf, at)) if self.newest() <= at => leaf,
            _ => self.newest(),
        }
    }

    fn id(&self, seq: usize) -> Value {
        self.events
            .get(&seq)
            .map_or(Value::Null, |(id, ..)| json!(id))
    }

    fn path(&self, mut seq: usize) -> Vec<usize> {
        let mut path = Vec::new();
        while seq != 0 {
            path.push(seq);
            seq = self.events[&seq].1;
        }
        path.reverse();
        path
    }

    /// The history as a reader sees it: ids and texts, with overlays in place of the
    /// events that they cover.
    fn history(&self, mut seq: usize) -> Vec<Value> {
        let mut history = Vec::new();
        while seq != 0 {
            let ending_here = self.overlays.iter().filter(|overlay| overlay.to == seq);
            if let Some(overlay) = ending_here.rev().min_by_key(|overlay| overlay.from) {
                history.push(json!([
                    format!("compaction_{}", overlay.id),
                    overlay.summary
                ]));
                seq = overlay.above;
                continue;
            }
            let (id, parent, text) = &self.events[&seq];
            history.push(json!([id, text]));
            seq = *parent;
        }
        history.reverse();
        history
    }

    fn append(&mut self, id: &str, parent: usize, text: &str) {
        self.last_seq += 1;
        self.events
            .insert(self.last_seq, (id.to_owned(), parent, text.to_owned()));
    }

    fn delete(&mut self, seqs: &[usize]) {
        let survivor = |events: &BTreeMap<usize, (String, usize, String)>, mut seq: usize| {
            while seqs.contains(&seq) {
                seq = events[&seq].1;
            }
            seq
        };
        let before = self.events.clone();
        self.events.retain(|seq, _| !seqs.contains(seq));
        for event in self.events.values_mut() {
            event.1 = survivor(&before, event.1);
        }
        for overlay in &mut self.overlays {
            overlay.to = survivor(&before, overlay.to);
            overlay.above = survivor(&before, overlay.above);
        }
        self.overlays.retain(|overlay| overlay.to >= overlay.from);
        for index in 0..self.overlays.len() {
            let Overlay {
                from, to, above, ..
            } = self.overlays[index];
            if !self.events.contains_key(&from) {
                let path = self.path(to);
                let first = path.iter().position(|seq| *seq > above);
                self.overlays[index].from = path[first.unwrap()];
            }
        }
        // An append ends the choice of a leaf.
        let newest = before.keys().next_back().copied().unwrap_or(0);
        self.chosen = self.chosen.filter(|(_, at)| newest <= *at);
        if let Some((leaf, at)) = self.chosen {
            let leaf = survivor(&before, leaf);
            self.chosen = (leaf != 0).then_some((leaf, at));
        }
    }
}

pub fn compare(alice: &Alice, naive: &NaiveTree, dice: &mut Dice, game: &str) {
    let expected: Vec<Value> = naive
        .events
        .iter()
        .map(|(seq, (id, parent, text))| json!([seq, id, naive.id(*parent), text]))
        .collect();
    let events: Vec<Value> = alice
        .events()
        .iter()
        .map(|event| {
            json!([
                event["seq"],
                event["id"],
                event["parentId"],
                event["content"]
            ])
        })
        .collect();
    assert_eq!(events, expected, "{game}");

    let leaf = alice.ok("getLatestLeaf", json!({"sessionId": "s"}));
    assert_eq!(leaf["id"], naive.id(naive.leaf()), "{game}");

    let seqs: Vec<usize> = naive.events.keys().copied().collect();
    let end = if seqs.is_empty() {
        0
    } else {
        seqs[dice.roll(seqs.len())]
    };
    let end = if dice.roll(3) == 0 { naive.leaf() } else { end };
    if end == 0 {
        return;
    }
    let path = naive.path(end);
    let length = alice.ok(
        "getPathLength",
        json!({"sessionId": "s", "leafId": naive.id(end)}),
    );
    assert_eq!(length["length"], path.len(), "{game}");

    // Read page by page up to the root.
    let limit = 1 + dice.roll(7);
    let mut pages: Vec<Vec<Value>> = Vec::new();
    let mut before = Value::Null;
    loop {
        let page = alice.ok(
            "getHistory",
            json!({"sessionId": "s", "leafId": naive.id(end), "limit": limit, "before": before}),
        );
        pages.push(
            page["messages"]
                .as_array()
                .unwrap()
                .iter()
                .map(|message| json!([message["id"], message["parts"][0]["text"]]))
                .collect(),
        );
        before = page["cursor"].clone();
        if before.is_null() {
            break;
        }
    }
    pages.reverse();
    let texts = naive.history(end);
    assert_eq!(pages.concat(), texts, "{game}");

    let overlays = alice.ok("getCompactions", json!({"sessionId": "s"}));
    let edge =
        |overlay: &Overlay| json!([overlay.id, naive.id(overlay.from), naive.id(overlay.to)]);
    let mut expected: Vec<Value> = naive.overlays.iter().map(edge).collect();
    let mut stored: Vec<Value> = overlays["compactions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|overlay| json!([overlay["id"], overlay["fromId"], overlay["toId"]]))
        .collect();
    expected.sort_by_key(Value::to_string);
    stored.sort_by_key(Value::to_string);
    assert_eq!(stored, expected, "{game}");

    let children: Vec<Value> = naive
        .events
        .iter()
        .filter(|(_, (_, parent, _))| *parent == end)
        .map(|(_, (id, ..))| json!(id))
        .collect();
    let branches = alice.ok(
        "getBranches",
        json!({"sessionId": "s", "messageId": naive.id(end)}),
    );
    assert_eq!(json!(ids(&branches["messages"])), json!(children), "{game}");

    if dice.roll(8) == 0 {
        let fork = alice.ok(
            "forkSession",
            json!({"sessionId": "s", "atId": naive.id(end)}),
        );
        let copy = alice.ok(
            "getHistory",
            json!({"sessionId": fork["id"], "limit": 1000}),
        );
        let copied: Vec<Value> = copy["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| json!([message["id"], message["parts"][0]["text"]]))
            .collect();
        assert_eq!(copied, texts, "{game}");
        alice.ok("deleteSession", json!({"sessionId": fork["id"]}));
    }
}

/// Asserts that the cached end of the last append matches the database.
fn compare_cached_end(alice: &Alice, game: &str) {
    let session = Id::parse("s".to_owned()).unwrap();
    let cache = alice.db.read_cache().unwrap();
    let Some(cached) = cache.get::<AppendTip>("s") else {
        return;
    };
    cache.clear();
    let stored = get_append_tip(&alice.db, &session, None).unwrap();
    // A chosen leaf is read with the newest event. It isn't needed again once it has a child.
    let with_newest_end = |tip: &AppendTip| {
        let mut tip = tip.clone();
        tip.ends.truncate(1);
        format!("{tip:?}")
    };
    assert_eq!(with_newest_end(&cached), with_newest_end(&stored), "{game}");
    let tip = get_tip(&alice.db, &session).unwrap();
    assert_eq!(format!("{tip:?}"), format!("{:?}", cached.tip), "{game}");
    cache.put("s", AppendTip::clone(&cached));
}

pub struct Rules {
    pub name: String,
    /// The numbers of the moves. Ids and texts contain these numbers.
    pub moves: Range<usize>,
    pub compared_every: usize,
}

impl Rules {
    /// Plays in session `s`, whose log is the one in `naive`.
    pub fn play(&self, alice: &Alice, mut naive: NaiveTree, dice: &mut Dice) {
        for turn in self.moves.clone() {
            let game = format!("{}, move {turn}", self.name);
            let seqs: Vec<usize> = naive.events.keys().copied().collect();
            let any = if seqs.is_empty() {
                0
            } else {
                seqs[dice.roll(seqs.len())]
            };
            match dice.roll(15) {
                0 => {
                    let (id, text) = (format!("own-{turn}"), format!("t{turn}"));
                    let message = json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]});
                    let body = json!({"sessionId": "s", "message": message});
                    alice.ok("appendMessage", body.clone());
                    let leaf = naive.leaf();
                    naive.append(&id, leaf, &text);
                    // The same request again adds nothing.
                    if dice.roll(2) == 0 {
                        alice.ok("appendMessage", body);
                    }
                }
                1..=3 => {
                    let text = format!("t{turn}");
                    let outcome = alice.ok("appendEvents", json!({"sessionId": "s", "events": [{"action": "user_message", "content": text}]}));
                    let leaf = naive.leaf();
                    naive.append(ids(&outcome["events"])[0].as_str(), leaf, &text);
                }
                4..=6 => {
                    let (id, text) = (format!("given-{turn}"), format!("t{turn}"));
                    let parent = if dice.roll(6) == 0 { 0 } else { any };
                    alice.ok("appendMessage", json!({"sessionId": "s", "parentId": naive.id(parent),
                        "message": {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}}));
                    naive.append(&id, parent, &text);
                }
                7 | 8 if any != 0 => {
                    let mut deleted = vec![any];
                    deleted.extend((0..dice.roll(3)).map(|_| seqs[dice.roll(seqs.len())]));
                    let named: Vec<Value> = deleted.iter().map(|seq| naive.id(*seq)).collect();
                    let (operation, field) = if dice.roll(2) == 0 {
                        ("deleteEvents", "eventIds")
                    } else {
                        ("deleteMessages", "messageIds")
                    };
                    alice.ok(operation, json!({"sessionId": "s", field: named}));
                    naive.delete(&deleted);
                }
                9 if any != 0 => {
                    alice.ok("setLeaf", json!({"sessionId": "s", "id": naive.id(any)}));
                    naive.chosen = Some((any, naive.newest()));
                }
                10 if any != 0 => {
                    let text = format!("u{turn}");
                    alice.ok("updateMessage", json!({"sessionId": "s",
                        "message": {"id": naive.id(any), "role": "user", "parts": [{"type": "text", "text": text}]}}));
                    if let Some(event) = naive.events.get_mut(&any) {
                        event.2 = text;
                    }
                }
                11 if dice.roll(8) == 0 => {
                    alice.ok("clearMessages", json!({"sessionId": "s"}));
                    naive.events.clear();
                    naive.overlays.clear();
                    naive.chosen = None;
                }
                12 | 13 if any != 0 => {
                    let path = naive.path(any);
                    let from = path[dice.roll(path.len())];
                    let summary = format!("s{turn}");
                    let overlay = alice.ok(
                        "addCompaction",
                        json!({"sessionId": "s", "summary": summary, "fromId": naive.id(from), "toId": naive.id(any)}),
                    );
                    naive.overlays.push(Overlay {
                        id: overlay["id"].as_str().unwrap().to_owned(),
                        summary,
                        from,
                        to: any,
                        above: naive.events[&from].1,
                    });
                }
                14 if !naive.overlays.is_empty() => {
                    let index = dice.roll(naive.overlays.len());
                    let overlay = naive.overlays.remove(index);
                    alice.ok(
                        "deleteCompaction",
                        json!({"sessionId": "s", "compactionId": overlay.id}),
                    );
                }
                _ => continue,
            }
            compare_cached_end(alice, &game);
            if dice.roll(self.compared_every) == 0 || turn + 1 == self.moves.end {
                compare(alice, &naive, dice, &game);
            }
        }
    }
}
