//! An unused agent: reading it writes nothing, and returns the same as an agent with empty tables.

use std::cell::Cell;

use serde_json::{Value, json};

use crate::Alice;
use crate::shared::examples::{READS, examples};
use api::chat::resume_chat;
use api::dispatch::dispatch;
use api::operation::Agent;
use api::operations::message_reads::get_messages;
use api::socket;
use api::transfer::{begin_agent_export, begin_export};
use base::database::Database as _;
use base::error::Code;
use base::testing::{FixedHost, Sqlite};
use lifecycle::transfer::PagedFile as _;
use store::schema::blank::{BlankDatabase, MadeListener};
use store::schema::open;

struct UnusedAgent {
    alice: Alice,
    are_made: Cell<bool>,
}

/// Creating the tables has no other effect.
struct NoListener;

impl MadeListener for NoListener {
    fn tables_made(&self) {}
}

impl UnusedAgent {
    fn new() -> Self {
        Self {
            alice: Alice {
                db: Sqlite::new(),
                ..Alice::default()
            },
            are_made: Cell::new(false),
        }
    }

    fn db(&self) -> BlankDatabase<'_> {
        BlankDatabase {
            db: &self.alice.db,
            host: &self.alice.host,
            are_made: &self.are_made,
            on_made: &NoListener,
        }
    }

    fn assert_unwritten(&self, by: &str) {
        assert!(!self.are_made.get(), "{by} makes tables");
        assert_eq!(self.alice.db.dump(), Sqlite::new().dump(), "{by}");
    }

    fn call(&self, operation: &str, body: &Value) -> Result<Value, Value> {
        let db = self.db();
        let agent = self.alice.agent(&db);
        let body = body.to_string();
        let reply = self
            .alice
            .finish(&agent, dispatch(&agent, operation, body.as_bytes()));
        match reply {
            Ok(reply) => Ok(serde_json::from_str(&reply.body.into_string()).unwrap()),
            Err(error) => Err(serde_json::from_str(&error.body()).unwrap()),
        }
    }
}

fn inputs() -> Vec<(&'static str, Value)> {
    let mut inputs: Vec<(&str, Value)> = examples()
        .into_iter()
        .map(|example| (example.operation, example.body))
        .collect();
    // The same without a session, if the operation allows that.
    for (operation, body) in inputs.clone() {
        if let Some(fields) = body.as_object()
            && fields.contains_key("sessionId")
        {
            let mut fields = fields.clone();
            fields.remove("sessionId");
            inputs.push((operation, Value::Object(fields)));
        }
    }
    inputs
}

#[test]
fn an_unused_agent_answers_like_an_empty_one() {
    let mut tried = 0;
    for (operation, body) in inputs() {
        if !READS.contains(&operation) {
            continue;
        }
        let blank = UnusedAgent::new();
        let empty = Alice {
            host: FixedHost::default(),
            ..Alice::default()
        };
        let expected = empty
            .call(operation, body.clone())
            .map_err(|error| serde_json::from_str::<Value>(&error.body()).unwrap());
        let mut found = blank.call(operation, &body);
        let mut expected = expected;
        if operation == "getStats" {
            for stats in [&mut found, &mut expected] {
                let stats = stats.as_mut().unwrap().as_object_mut().unwrap();
                stats.remove("databaseBytes");
                stats.remove("tables");
            }
        }
        if operation == "mintToken" {
            assert_eq!(found.is_ok(), expected.is_ok(), "{operation} {body}");
        } else {
            assert_eq!(found, expected, "{operation} {body}");
        }
        blank.assert_unwritten(&format!("{operation} {body}"));
        tried += 1;
    }
    println!("{tried} inputs tried");
    assert!(tried >= READS.len());
}

#[test]
fn the_first_valid_write_creates_the_tables() {
    let blank = UnusedAgent::new();
    let append = json!({"sessionId": "s", "events": [{"action": "user_message", "content": "hi"}]});
    let refused = blank.call("appendEvents", &append).unwrap_err();
    assert_eq!(refused["error"]["code"], "session_not_found");
    let refused = blank
        .call("createSession", &json!({"name": 5}))
        .unwrap_err();
    assert_eq!(refused["error"]["code"], "invalid_request");
    blank.call("createSession", &json!({"id": "s"})).unwrap();
    assert!(blank.are_made.get());
    blank.call("appendEvents", &append).unwrap();
    let events = blank
        .call("loadEvents", &json!({"sessionId": "s"}))
        .unwrap();
    assert_eq!(events.as_array().unwrap().len(), 1);
}

#[test]
fn reading_an_unused_agent_writes_nothing() {
    let blank = UnusedAgent::new();
    let db = blank.db();
    let agent = blank.alice.agent(&db);
    assert!(resume_chat(&agent, "s").unwrap().is_none());
    blank.assert_unwritten("resumeChat");
    let Err(refused) = begin_export(&agent, "s".to_owned()) else {
        panic!("a session that is not there has a file")
    };
    assert_eq!(refused.code, Code::SessionNotFound);
    blank.assert_unwritten("exportSession");
    assert_eq!(
        get_messages(&agent, "s".to_owned())
            .unwrap()
            .body
            .into_string(),
        "[]"
    );
    blank.assert_unwritten("the messages");
    let socket = socket::open(&agent, "s".to_owned()).unwrap();
    assert_eq!(socket::greet(&agent, &socket).unwrap().len(), 1);
    blank.assert_unwritten("a socket");
}

#[test]
fn a_wrangler_table_does_not_make_an_agent_and_any_other_does() {
    let blank = UnusedAgent::new();
    let (db, host) = (&blank.alice.db, &blank.alice.host);
    db.run("CREATE TABLE __miniflare_do_name (name TEXT)", &[])
        .unwrap();
    assert!(!open(db, host).unwrap());
    db.run("CREATE TABLE mine (name TEXT)", &[]).unwrap();
    assert!(open(db, host).unwrap());
}

#[test]
fn an_unused_agent_exports_like_an_empty_one() {
    let blank = UnusedAgent::new();
    let empty = Alice::default();
    let db = blank.db();
    let found = file_of(&blank.alice.agent(&db));
    assert_eq!(found, file_of(&empty.agent(&empty.db)));
    blank.assert_unwritten("exportAgent");
}

fn file_of(agent: &Agent<'_>) -> String {
    let mut export = begin_agent_export(agent, None).unwrap();
    let mut file = String::new();
    while let Some(page) = export.next_page(agent.db).unwrap() {
        file.push_str(&page);
    }
    file
}
