//! The Durable Object: one agent.
//!
//! Bound by hand rather than by the worker crate's macro, whose responses hold
//! bytes of Rust's: here an answer made by SQLite stays a JavaScript string all
//! the way out.

use std::cell::Cell;

use wasm_bindgen::prelude::*;
use worker::{Env, web_sys, worker_sys};

use super::host::Runtime;
use super::storage::{Sqlite, Storage, empty};
use super::{http, policy};
use crate::access::{self, Policy};
use crate::api::route::{self, Route};
use crate::api::{Agent, Reply, dispatch};
use crate::error::{Error, Result};
use crate::schema;

#[wasm_bindgen]
pub struct SessionAgent {
    storage: Storage,
    policy: Policy,
    /// The name it is addressed by; an object made without one answers to its id.
    name: String,
    /// Whether its tables are known to be this build's.
    is_migrated: Cell<bool>,
}

#[wasm_bindgen]
impl SessionAgent {
    #[wasm_bindgen(constructor)]
    pub fn new(state: worker_sys::DurableObjectState, env: Env) -> Self {
        let state = worker::State::from(state);
        let id = state.id();
        Self {
            storage: JsValue::from(state.storage().as_raw()).unchecked_into(),
            policy: policy(&env),
            name: id.name().unwrap_or_else(|| id.to_string()),
            is_migrated: Cell::new(false),
        }
    }

    pub async fn fetch(&self, request: web_sys::Request) -> Result<web_sys::Response, JsValue> {
        let db = Sqlite::new(&self.storage);
        match self.handle(request, &db).await {
            Ok(reply) => http::answer(&reply.body, &db.meter),
            Err(error) => http::refuse(&error, Some(&db.meter)),
        }
    }
}

impl SessionAgent {
    async fn handle(&self, request: web_sys::Request, db: &Sqlite<'_>) -> Result<Reply> {
        let Route::Rpc { agent, operation } = route::parse(&request.method(), &request.url())?
        else {
            return Err(Error::invalid(
                "path",
                "An object answers for its agent alone; this address is the Worker's.",
            ));
        };
        if agent != self.name {
            return Err(Error::invalid(
                "agent",
                "The path names another agent than the one whose object this is.",
            ));
        }
        let authorization = http::find_header(&request, "authorization");
        let bearer = access::find_bearer(authorization.as_deref());
        let caller = access::identify(&self.policy, &Runtime, &self.name, bearer)?;
        let body = http::read_body(request).await?;

        if !self.is_migrated.get() {
            schema::migrate(db, &Runtime)?;
            self.is_migrated.set(true);
        }
        let agent = Agent {
            name: &self.name,
            db,
            host: &Runtime,
            policy: &self.policy,
            caller: &caller,
        };
        let reply = dispatch(&agent, &operation, &body)?;
        if reply.empties_storage {
            self.is_migrated.set(false);
            empty(&self.storage).await?;
        }
        Ok(reply)
    }
}
