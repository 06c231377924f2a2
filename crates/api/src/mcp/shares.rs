//! Shares things that an object has few of, such as streams, among its callers. A caller gets all
//! that nobody else wants. If nothing is left, a caller with fewer takes one from the caller with
//! the most, until both have about the same. So a token never leaves the others without any.

use std::collections::{BTreeMap, VecDeque};

/// What happens to a new value if nothing is left.
#[derive(Clone, Copy, PartialEq)]
pub enum WhenFull {
    /// It replaces the newest value of the caller with the most, if that one has two more than the
    /// new value's caller. Otherwise it is refused, so that what runs is seldom ended.
    Refuse,
    /// It replaces the oldest value of the caller with the most.
    Forget,
}

/// Values of callers, the oldest first.
pub struct Shared<V> {
    most: usize,
    when_full: WhenFull,
    entries: VecDeque<SharedEntry<V>>,
}

struct SharedEntry<V> {
    /// A text that is the same for callers of the same rights.
    caller: String,
    key: String,
    value: V,
}

impl<V> Shared<V> {
    pub fn new(most: usize, when_full: WhenFull) -> Self {
        Self {
            most,
            when_full,
            entries: VecDeque::new(),
        }
    }

    /// Removes a value.
    pub fn take(&mut self, caller: &str, key: &str) -> Option<V> {
        let matches = |entry: &SharedEntry<V>| entry.caller == caller && entry.key == key;
        let index = self.entries.iter().position(matches)?;
        self.entries.remove(index).map(|entry| entry.value)
    }

    pub fn retain(&mut self, keeps: impl Fn(&V) -> bool) {
        self.entries.retain(|entry| keeps(&entry.value));
    }

    /// Adds a value as the newest, or replaces the one with this key. `false`: it was refused.
    pub fn insert(&mut self, caller: &str, key: &str, value: V) -> bool {
        drop(self.take(caller, key));
        if self.entries.len() >= self.most {
            let mut shares: BTreeMap<&str, usize> = BTreeMap::new();
            for entry in &self.entries {
                *shares.entry(&entry.caller).or_default() += 1;
            }
            let own = shares.get(caller).copied().unwrap_or_default();
            let Some((most, count)) = shares.into_iter().max_by_key(|(_, count)| *count) else {
                return false;
            };
            // With equal shares, a caller replaces its own.
            let most = if count == own { caller } else { most };
            let is_theirs = |entry: &SharedEntry<V>| entry.caller == most;
            let index = match self.when_full {
                WhenFull::Forget => self.entries.iter().position(is_theirs),
                WhenFull::Refuse if count >= own + 2 => self.entries.iter().rposition(is_theirs),
                WhenFull::Refuse => return false,
            };
            index.and_then(|index| self.entries.remove(index));
        }
        self.entries.push_back(SharedEntry {
            caller: caller.to_owned(),
            key: key.to_owned(),
            value,
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::Dice;

    fn count(shared: &Shared<()>, caller: &str) -> usize {
        let entries = shared.entries.iter();
        entries.filter(|entry| entry.caller == caller).count()
    }

    #[test]
    fn a_lone_caller_uses_all_capacity_until_others_arrive() {
        let mut shared = Shared::new(4, WhenFull::Refuse);
        for n in 0..9 {
            assert_eq!(shared.insert("a", &n.to_string(), ()), n < 4);
        }
        for n in 0..9 {
            assert_eq!(shared.insert("b", &n.to_string(), ()), n < 2);
        }
        assert_eq!((count(&shared, "a"), count(&shared, "b")), (2, 2));
        // Existing streams are renewed, and a granted share is not revoked.
        assert!(shared.insert("a", "0", ()));
        assert!(!shared.insert("a", "3", ()));
    }

    /// For random actions of callers, the capacity is never exceeded, and a caller that
    /// keeps requesting entries gets at least its share minus one.
    #[test]
    fn every_caller_gets_its_share() {
        for seed in 0..200 {
            let mut dice = Dice(seed * 2 + 1);
            let most = 1 + dice.roll(12);
            let when_full = [WhenFull::Refuse, WhenFull::Forget][dice.roll(2)];
            let mut shared = Shared::new(most, when_full);
            let callers: Vec<String> = (0..=dice.roll(5)).map(|n| n.to_string()).collect();
            for _ in 0..300 {
                let caller = &callers[dice.roll(callers.len())];
                let key = dice.roll(20).to_string();
                match dice.roll(8) {
                    0 => drop(shared.take(caller, &key)),
                    _ => drop(shared.insert(caller, &key, ())),
                }
                assert!(shared.entries.len() <= most);
            }
            for caller in &callers {
                for n in 0..most {
                    shared.insert(caller, &format!("last {n}"), ());
                }
                let share = most / callers.len();
                let own = count(&shared, caller);
                assert!(own + 1 >= share, "{own} of {most} for {}", callers.len());
            }
        }
    }
}
