//! The Durable Object: one agent.
//!
//! Bound by hand rather than by the worker crate's macro, whose responses hold
//! bytes of Rust's: here an answer made by SQLite stays a JavaScript string all
//! the way out.

use std::cell::Cell;
use std::rc::Rc;

use wasm_bindgen::prelude::*;
use worker::{Env, web_sys, worker_sys};

use super::host::Runtime;
use super::outside::Bindings;
use super::storage::{Sqlite, Storage, empty};
use super::{http, policy, site, transfer};
use crate::access::{self, Caller, Policy};
use crate::api::route::{self, Route};
use crate::api::{Agent, Reply, begin_export, begin_import, dispatch, follow_up, get_messages};
use crate::compaction::auto::Watch;
use crate::error::{Error, Result};
use crate::ids::Id;
use crate::memory::homes::agent::{VIA_HEADER, parse_via};
use crate::schema;

#[wasm_bindgen]
pub struct SessionAgent {
    state: worker::State,
    /// Shared with what goes on after an answer.
    object: Rc<Object>,
}

struct Object {
    storage: Storage,
    policy: Policy,
    outside: Bindings,
    /// The name it is addressed by; an object made without one answers to its id.
    name: String,
    /// Whether its tables are known to be this build's.
    is_migrated: Cell<bool>,
    watch: Watch,
}

#[wasm_bindgen]
impl SessionAgent {
    #[wasm_bindgen(constructor)]
    pub fn new(state: worker_sys::DurableObjectState, env: Env) -> Self {
        let state = worker::State::from(state);
        let id = state.id();
        let object = Object {
            storage: JsValue::from(state.storage().as_raw()).unchecked_into(),
            policy: policy(&env),
            outside: Bindings::new(&env),
            name: id.name().unwrap_or_else(|| id.to_string()),
            is_migrated: Cell::new(false),
            watch: Watch::default(),
        };
        Self {
            state,
            object: Rc::new(object),
        }
    }

    pub async fn fetch(&self, request: web_sys::Request) -> Result<web_sys::Response, JsValue> {
        let object = &self.object;
        let db = Sqlite::new(&object.storage);
        match object.handle(request, &db).await {
            Ok(Answer::Reply(reply)) => {
                if let Some(grown) = reply.grown {
                    self.follow_up(grown);
                }
                http::answer(&reply.body, &db.meter)
            }
            Ok(Answer::Stream(body)) => http::stream(&body, &db.meter, "application/x-ndjson"),
            Ok(Answer::Site(response)) => response,
            Err(error) => http::refuse(&error, Some(&db.meter)),
        }
    }
}

impl SessionAgent {
    /// Goes on after the answer, on a meter of its own.
    fn follow_up(&self, grown: Id) {
        let object = Rc::clone(&self.object);
        self.state.wait_until(async move {
            let db = Sqlite::new(&object.storage);
            let agent = object.agent(&db, &Caller::Owner, &[]);
            if let Err(error) = follow_up(&agent, &grown).await {
                http::log(&error);
            }
        });
    }
}

enum Answer {
    Reply(Reply),
    /// A body that is read as it is sent.
    Stream(JsValue),
    Site(Result<web_sys::Response, JsValue>),
}

impl Object {
    fn agent<'a>(&'a self, db: &'a Sqlite<'_>, caller: &'a Caller, via: &'a [String]) -> Agent<'a> {
        Agent {
            name: &self.name,
            db,
            host: &Runtime,
            policy: &self.policy,
            caller,
            outside: &self.outside,
            watch: &self.watch,
            via,
        }
    }

    async fn handle(&self, request: web_sys::Request, db: &Sqlite<'_>) -> Result<Answer> {
        let route = route::parse(&request.method(), &request.url())?;
        if site::is_public(&route)
            && let Some(response) = site::serve(&route)
        {
            return Ok(Answer::Site(response));
        }
        if route.agent().is_some_and(|agent| agent != self.name) {
            return Err(Error::invalid(
                "agent",
                "The path names another agent than the one whose object this is.",
            ));
        }
        let authorization = http::find_header(&request, "authorization");
        let bearer = access::find_bearer(authorization.as_deref());
        let caller = access::identify(&self.policy, &Runtime, Some(&self.name), bearer)?;
        if let Some(response) = site::serve(&route) {
            return Ok(Answer::Site(response));
        }
        let via = parse_via(http::find_header(&request, VIA_HEADER).as_deref());
        // An import reads its body itself, bit by bit.
        let (body, pieces) = match route {
            Route::Import { .. } => (Vec::new(), http::Body::new(request)?),
            _ => (http::read_body(request).await?, http::Body::empty()),
        };
        self.migrate(db)?;
        let agent = self.agent(db, &caller, &via);
        let reply = match route {
            Route::Rpc { operation, .. } => dispatch(&agent, &operation, &body).await?,
            Route::Messages { session_id, .. } => get_messages(&agent, session_id)?,
            Route::Export { session_id, .. } => {
                let export = begin_export(&agent, session_id)?;
                return transfer::to_stream(&self.storage, export).map(Answer::Stream);
            }
            Route::Import { session_id, .. } => {
                let import = begin_import(&agent, session_id)?;
                transfer::receive(db, import, pieces).await?
            }
            Route::Health | Route::OpenApi | Route::Console => {
                return Err(Error::storage(
                    "a page of the site was taken for an agent's",
                ));
            }
        };
        if reply.empties_storage {
            self.is_migrated.set(false);
            empty(&self.storage).await?;
        }
        Ok(Answer::Reply(reply))
    }

    /// Once in an object's life in memory. Right before its first statement, not
    /// in the constructor: a request that is refused costs no row.
    fn migrate(&self, db: &Sqlite<'_>) -> Result<()> {
        if !self.is_migrated.get() {
            schema::migrate(db, &Runtime)?;
            self.is_migrated.set(true);
        }
        Ok(())
    }
}
