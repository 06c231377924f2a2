//! Helpers for exports of sessions and agents, and for `verify`.

use serde_json::{Value, json};

use crate::Alice;
use api::agent_file::import::ImportedAgent;
use api::answers;
use api::file_import::FileImport as _;
use api::transfer::{begin_agent_export, begin_agent_import, begin_export, begin_import};
use base::database::Database;
use base::error::Error;
use lifecycle::transfer::PagedFile as _;
use lifecycle::transfer::import::Imported;

impl Alice {
    pub fn export(&self, session_id: &str) -> Result<String, Error> {
        let mut export = begin_export(&self.agent(&self.db), session_id.to_owned())?;
        let mut file = String::new();
        while let Some(page) = export.next_page(&self.db)? {
            file.push_str(&page);
        }
        Ok(file)
    }

    /// Imports the file in pieces of `bytes` bytes, with `?allowSources=true`.
    pub fn import_in(
        &self,
        db: &dyn Database,
        session_id: &str,
        file: &str,
        bytes: usize,
    ) -> Result<Imported, Error> {
        let mut import = begin_import(&self.agent(db), session_id.to_owned(), true)?;
        let imported = file
            .as_bytes()
            .chunks(bytes)
            .try_for_each(|piece| import.push(db, &self.host, piece))
            .and_then(|()| import.finish(db, &self.host));
        answers::assert_output_matches_schema("importSession", &imported);
        imported
    }

    /// Imports the file in one piece, without `?allowSources=true`.
    pub fn import_untrusted(&self, session_id: &str, file: &str) -> Result<Imported, Error> {
        let mut import = begin_import(&self.agent(&self.db), session_id.to_owned(), false)?;
        let imported = import
            .push(&self.db, &self.host, file.as_bytes())
            .and_then(|()| import.finish(&self.db, &self.host));
        answers::assert_output_matches_schema("importSession", &imported);
        imported
    }

    /// Imports the file with `?allowSources=true`.
    pub fn import(&self, session_id: &str, file: &str) -> Result<Imported, Error> {
        self.import_in(&self.db, session_id, file, 50_000)
    }

    /// The answers of all operations that read a session.
    pub fn read_session(&self, session_id: &str) -> Vec<Value> {
        let mut answer: Vec<Value> = [
            ("getSession", json!({})),
            ("loadEvents", json!({"limit": 1000})),
            ("getHistory", json!({"limit": 1000})),
            ("getLatestLeaf", json!({})),
            ("getChanges", json!({"limit": 1000})),
            ("buildWorkingContext", json!({})),
            ("configureCompaction", json!({})),
            ("getBlocks", json!({})),
            ("freezePrompt", json!({})),
            ("getReminder", json!({})),
        ]
        .into_iter()
        .map(|(operation, mut body)| {
            body["sessionId"] = json!(session_id);
            self.ok(operation, body)
        })
        .collect();
        for event in answer[1].as_array().unwrap().clone() {
            let body = json!({"sessionId": session_id, "messageId": event["id"]});
            answer.push(self.ok("getMessage", body));
        }
        answer
    }
}

/// An agent whose session `s` has three messages.
pub fn small() -> Alice {
    let alice = Alice::with_session();
    alice.append_texts(&["one", "two"]);
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "message": {"id": "m", "role": "assistant", "parts": []}}),
    );
    alice
}

impl Alice {
    /// The pages of the whole agent's file.
    pub fn agent_pages(&self, after: Option<&str>) -> Result<Vec<String>, Error> {
        let mut export = begin_agent_export(&self.agent(&self.db), after)?;
        let mut pages = Vec::new();
        while let Some(page) = export.next_page(&self.db)? {
            pages.push(page);
        }
        Ok(pages)
    }

    pub fn export_agent(&self) -> String {
        self.agent_pages(None).unwrap().concat()
    }

    pub fn import_agent_in(
        &self,
        db: &dyn Database,
        file: &str,
        bytes: usize,
        allows_sources: bool,
    ) -> Result<ImportedAgent, Error> {
        let agent = self.agent(db);
        let mut import = begin_agent_import(&agent, allows_sources)?;
        let imported = file
            .as_bytes()
            .chunks(bytes)
            .try_for_each(|piece| import.push(db, &self.host, piece))
            .and_then(|()| import.end(db, &self.host));
        answers::assert_output_matches_schema("importAgent", &imported);
        imported
    }

    pub fn import_agent(&self, file: &str) -> Result<ImportedAgent, Error> {
        self.import_agent_in(&self.db, file, 50_000, true)
    }
}

impl Alice {
    /// All findings of `verify`, page by page.
    pub fn verified(&self, body: Value) -> Vec<Value> {
        let mut findings = Vec::new();
        let mut body = body;
        loop {
            let page = self.ok("verify", body.clone());
            findings.extend(page["findings"].as_array().unwrap().iter().cloned());
            if page["cursor"].is_null() {
                return findings;
            }
            body["cursor"] = page["cursor"].clone();
        }
    }

    /// Asserts that `verify` finds nothing, and that the totals of paths are right.
    pub fn assert_consistent(&self, case: &str) {
        assert_eq!(self.verified(json!({})), Vec::<Value>::new(), "{case}");
        self.assert_totals(case);
    }
}
