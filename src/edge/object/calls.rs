//! Runs operations that are called over Workers RPC, in the same way as requests over HTTP.
//! The final steps of both are here.

use std::rc::Rc;

use js_sys::JsString;
use wasm_bindgen::prelude::*;

use super::Object;
use crate::edge::host::Runtime;
use crate::edge::http::{self, ReceivedBody};
use crate::edge::request_log::{RequestNote, trace_of_refused};
use crate::edge::rpc::{self, RpcCall, RpcOptions};
use crate::edge::storage::{Sqlite, empty};
use crate::edge::text::Sent;
use access::{self, Caller};
use api::admission::admit;
use api::dispatch::{self, clear_pages};
use api::operation::{Agent, Reply};
use api::route::Route;
use api::table::NamedOperation;
use base::budget::Reservation;
use base::error::Result;
use base::host::Host as _;
use base::trace::run_in;
use store::erased::LeftPages;

impl Object {
    pub(super) async fn call(
        self: &Rc<Self>,
        operation: &JsValue,
        json: JsValue,
        options: &JsValue,
        is_own: bool,
    ) -> Result<JsValue, JsValue> {
        let answer = match RpcCall::parse(operation, json, options) {
            Ok(call) => self.answer_call(call, is_own).await,
            Err(error) => {
                RequestNote::here(&self.log).refused(self.name.get(), &error, None);
                Err(error)
            }
        };
        answer.map_err(|error| rpc::to_thrown(&error))
    }

    async fn answer_call(self: &Rc<Self>, call: RpcCall, is_own: bool) -> Result<JsValue> {
        let db = Sqlite::new(&self.storage);
        let note = RequestNote::begin(&self.log);
        let answer = self.run_call(call, is_own, &db, &note).await;
        let (name, cost) = (self.name.get(), Some(&db.statements));
        match &answer {
            Ok(_) => note.answered(name, 200, cost),
            Err(error) => note.refused(name, error, cost),
        }
        self.recover_once();
        self.join_later();
        self.export_later();
        answer
    }

    async fn run_call(
        self: &Rc<Self>,
        call: RpcCall,
        is_own: bool,
        db: &Sqlite<'_>,
        note: &RequestNote,
    ) -> Result<JsValue> {
        if let Some(agent) = &call.options.agent {
            self.name.check(agent)?;
        }
        let agent = self.name.get();
        let route = call.route(agent);
        note.set_route(&route);
        let RpcCall {
            operation,
            json,
            options:
                RpcOptions {
                    token,
                    traceparent,
                    tracestate,
                    ..
                },
        } = call;
        // A binding has neither a host nor an origin that `AUTH = "local"` could check.
        let caller = if is_own {
            Caller::Owner
        } else {
            access::identify(&self.policy, &Runtime, Some(agent), token.as_deref()).inspect_err(
                |_| {
                    note.set_trace(trace_of_refused(None, traceparent.as_deref()).as_ref());
                },
            )?
        };
        let Some(trace) = self.begin_trace((traceparent, tracestate), &caller) else {
            return self.run_as(&caller, &route, &operation, json, db).await;
        };
        let trace = Rc::new(trace);
        let began_at = Runtime.now_ms();
        note.set_trace(Some(&trace));
        let running = self.run_as(&caller, &route, &operation, json, db);
        let answer = run_in(Some(Rc::clone(&trace)), running).await;
        self.note_request(&trace, &route, began_at, answer.as_ref().err());
        answer
    }

    /// Runs the call of an authenticated caller.
    async fn run_as(
        self: &Rc<Self>,
        caller: &Caller,
        route: &Route,
        operation: &NamedOperation,
        json: Option<JsString>,
        db: &Sqlite<'_>,
    ) -> Result<JsValue> {
        let admission = admit(caller, route)?;
        let ReceivedBody { bytes, reservation } = rpc::receive(json, admission.max_body_bytes)?;
        admission.check_capacity()?;
        self.open_tables(db)?;
        let blank = self.blank(db);
        let agent = Agent {
            body: Some(&reservation),
            db: if self.is_migrated.get() { db } else { &blank },
            ..self.agent(db, caller, &[])
        };
        let mut reply = dispatch::run(&agent, operation.get()?, bytes).await?;
        drop(reservation);
        let may_be_repeated = admission.may_be_repeated;
        // The answer's memory stays reserved until the text is returned to the caller.
        let (body, _reservation) = self.conclude(db, &mut reply, may_be_repeated).await?;
        self.follow_answer(reply.grown, reply.changed, reply.indexing_continues);
        rpc::to_text(body, may_be_repeated)
    }

    /// Does the work that must precede an answer, and reserves the answer's memory.
    pub(super) async fn conclude(
        &self,
        db: &Sqlite<'_>,
        reply: &mut Reply,
        may_be_repeated: bool,
    ) -> Result<(Sent, Reservation)> {
        self.clear_after(db, reply.empties_storage, &reply.purged)
            .await?;
        self.join_now().await;
        self.store_name(&Sqlite::new(&self.storage))?;
        let body = Sent::of(std::mem::take(&mut reply.body));
        let reservation = http::reserve_answer(&body, may_be_repeated)?;
        Ok((body, reservation))
    }

    /// Empties the storage, or clears the remains of purges, if the operation requires it.
    /// The receipt of a purge is only true once this has succeeded. If it fails, the caller
    /// gets no receipt, and repeating the request completes the purge.
    pub(super) async fn clear_after(
        &self,
        db: &Sqlite<'_>,
        empties: bool,
        left: &LeftPages,
    ) -> Result<()> {
        if empties {
            self.empty().await
        } else {
            self.clear_pages(db, left).await
        }
    }

    /// Clears the remains that the tool `forget` left. If this fails, the next purge does
    /// it.
    pub(super) async fn clear_left(&self, db: &Sqlite<'_>) {
        let left = self.work.pages.take_left();
        if let Err(error) = self.clear_pages(db, &left).await {
            http::log(&error);
        }
    }

    /// Clears the remains of purged text in table pages, in free pages and in the
    /// write-ahead log. `db` counts the rows that this writes.
    pub(super) async fn clear_pages(&self, db: &Sqlite<'_>, left: &LeftPages) -> Result<()> {
        clear_pages(&self.agent(db, &Caller::Owner, &[]), left).await
    }

    pub(super) async fn empty(&self) -> Result<()> {
        self.is_migrated.set(false);
        self.turns.checks.set_recovery_due(false);
        self.is_joining_due.set(false);
        self.turns.cancel_all();
        empty(&self.storage).await?;
        // Emptying the storage has also deleted the alarm.
        self.wakes_at_ms.set(0);
        Ok(())
    }
}
