//! The stored totals of paths, compared with a walk.

use crate::Alice;
use base::columns::load_values;
use base::ids::Id;
use context::compaction::estimate::event_tokens;
use conversation::log::event_facts::load_parents;
use conversation::log::row::get_event_row;
use conversation::messages::history::count_messages;
use conversation::messages::tree::path_sums::PathSums;
use std::collections::HashMap;

/// The most events of a session that are compared.
const MAX_EVENTS: i64 = 300;

impl Alice {
    /// Asserts that each stored total of a path matches a walk. Returns how many were stored.
    pub fn assert_totals(&self, game: &str) -> usize {
        let ids: Vec<String> =
            load_values(&self.db, "SELECT id FROM cf_agents_sessions", &[]).unwrap();
        let mut stored = 0;
        for id in ids.into_iter().filter_map(|id| Id::parse(id).ok()) {
            let mut tokens: HashMap<i64, i64> = HashMap::from([(0, 0)]);
            for event in load_parents(&self.db, &id, 0, MAX_EVENTS).unwrap() {
                let place = format!("{game}: {} of {}", event.seq, id.as_str());
                // A test may have damaged the row.
                let own =
                    get_event_row(&self.db, &id, event.seq).and_then(|row| event_tokens(&row));
                let sum = own
                    .ok()
                    .zip(tokens.get(&event.parent_seq))
                    .map(|(a, b)| a + b);
                tokens.extend(sum.map(|sum| (event.seq, sum)));
                let path = PathSums::of(&self.db, &id, event.seq).unwrap();
                let totals = path.whole().unwrap();
                assert_eq!(
                    totals.messages.is_some(),
                    totals.tokens.is_some(),
                    "{place}"
                );
                if let Some(messages) = totals.messages {
                    let counted = count_messages(&self.db, &id, path.segments()).unwrap();
                    assert_eq!(messages, counted, "{place}");
                    stored += 1;
                }
                if let Some((stored, sum)) = totals.tokens.zip(sum) {
                    assert_eq!(stored, sum, "{place}");
                }
            }
        }
        stored
    }
}
