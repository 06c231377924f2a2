//! A scripted embedding model.

use serde_json::{Value, json};

use crate::Alice;
use base::database::Database;
use base::testing::{ScriptedAnswer, wait_for};
use recall::entries::follow_writes;

impl Alice {
    pub fn embedding_by(self, model: &str) -> Self {
        let mut settings = self.outbound.settings.borrow_mut();
        settings.insert("EMBEDDING_MODEL".to_owned(), model.to_owned());
        drop(settings);
        self
    }

    /// Sets the model's next answer: one vector for each text of the request.
    pub fn embeds(&self, vectors: &[[f64; 3]]) {
        self.outbound
            .answer(ScriptedAnswer::json(&json!({"data": vectors})));
    }

    /// The texts of each request to the embedding model.
    pub fn embedding_requests(&self) -> Vec<Value> {
        let calls = self.outbound.ai_calls.borrow();
        let texts = |input: &String| serde_json::from_str::<Value>(input).unwrap()["text"].clone();
        calls.iter().map(|(_, input)| texts(input)).collect()
    }

    pub fn rows_in(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        self.db.rows(&sql, &[]).unwrap()[0].integer(0).unwrap()
    }

    /// Writes an entry and creates its vector, as the object does after the answer.
    pub fn add_entry(&self, key: &str, content: &str) -> Value {
        self.set_entry(json!({"label": "kb", "key": key, "content": content}))
    }

    pub fn set_entry(&self, entry: Value) -> Value {
        let requests_before = self.embedding_requests().len();
        let written = self.ok("setEntry", entry);
        assert_eq!(
            self.embedding_requests().len(),
            requests_before,
            "a write calls no model"
        );
        self.make_vectors(&self.db);
        written
    }

    /// Creates the vectors of the entries that were written.
    pub fn make_vectors(&self, db: &dyn Database) {
        let agent = self.agent(db);
        while wait_for(follow_writes(&agent.memory())) == Ok(true) {}
    }

    pub fn search_entries(&self, query: &str) -> Value {
        self.ok("searchContext", json!({"label": "kb", "query": query}))
    }
}
