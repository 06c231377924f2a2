//! What was read from the database, kept in memory until the next write. A Durable Object is the
//! only writer of its storage, so what it has read stays true until it writes. A class that extends
//! the object may run transactions of its own: whoever ends one calls [`ReadCache::clear`].

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A value that was read from the database, by its type and a key. There is one value at a time:
/// an agent mostly works on one session.
#[derive(Default)]
pub struct ReadCache {
    entry: RefCell<Option<Entry>>,
    open_transactions: Cell<u32>,
    is_disabled: Cell<bool>,
}

struct Entry {
    key: String,
    value: Rc<dyn Any>,
}

impl ReadCache {
    /// Must be called before each statement: one that may write clears the cache, even if it
    /// then fails.
    pub fn before_statement(&self, sql: &str) {
        if !only_reads(sql) {
            self.clear();
        }
    }

    pub fn clear(&self) {
        self.entry.take();
    }

    /// From now on, nothing is kept: another object writes to the same storage.
    pub fn disable(&self) {
        self.is_disabled.set(true);
        self.clear();
    }

    /// The value of this type and key, if nothing was written since [`Self::put`].
    pub fn get<T: 'static>(&self, key: &str) -> Option<Rc<T>> {
        let entry = self.entry.borrow();
        let entry = entry.as_ref().filter(|entry| entry.key == key)?;
        Rc::clone(&entry.value).downcast().ok()
    }

    /// Keeps a value until the next write. A transaction may be undone, so a value that is put
    /// during a transaction is not kept.
    pub fn put<T: 'static>(&self, key: &str, value: T) {
        if self.open_transactions.get() == 0 && !self.is_disabled.get() {
            self.entry.replace(Some(Entry {
                key: key.to_owned(),
                value: Rc::new(value),
            }));
        }
    }

    /// Must surround each transaction.
    pub fn during_transaction<T>(&self, work: impl FnOnce() -> T) -> T {
        self.open_transactions.set(self.open_transactions.get() + 1);
        let result = work();
        self.open_transactions.set(self.open_transactions.get() - 1);
        result
    }
}

/// Whether the statement can't write: statements that write never begin with `SELECT`.
pub fn only_reads(sql: &str) -> bool {
    sql.trim_start().starts_with("SELECT")
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &str = "\n    SELECT 1";
    const WRITES: [&str; 4] = [
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET a = 1 RETURNING a",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "CREATE TABLE t (a)",
    ];

    #[test]
    fn a_write_clears_the_value_and_a_read_does_not() {
        for write in WRITES {
            let cache = ReadCache::default();
            cache.put("a", 1_i64);
            cache.before_statement(READ);
            assert_eq!(cache.get::<i64>("a").as_deref(), Some(&1));
            cache.before_statement(write);
            assert_eq!(cache.get::<i64>("a"), None, "{write}");
        }
    }

    #[test]
    fn a_value_is_found_by_its_key_and_type_alone() {
        let cache = ReadCache::default();
        cache.put("a", 1_i64);
        assert_eq!(cache.get::<i64>("b"), None);
        assert_eq!(cache.get::<String>("a"), None);
        cache.put("b", 2_i64);
        assert_eq!(cache.get::<i64>("a"), None);
        assert_eq!(cache.get::<i64>("b").as_deref(), Some(&2));
    }

    #[test]
    fn a_transaction_and_a_disabled_cache_keep_no_value() {
        let cache = ReadCache::default();
        cache.put("a", 1_i64);
        cache.during_transaction(|| {
            cache.put("a", 2_i64);
            assert_eq!(cache.get::<i64>("a").as_deref(), Some(&1));
            cache.during_transaction(|| cache.before_statement(WRITES[0]));
            cache.put("a", 3_i64);
        });
        assert_eq!(cache.get::<i64>("a"), None);
        cache.put("a", 4_i64);
        assert_eq!(cache.get::<i64>("a").as_deref(), Some(&4));
        cache.disable();
        assert_eq!(cache.get::<i64>("a"), None);
        cache.put("a", 5_i64);
        assert_eq!(cache.get::<i64>("a"), None);
    }
}
