//! Runs operations that are called over Workers RPC, in the same way as requests over HTTP.
//! The final steps of both are here.

use std::rc::Rc;

use js_sys::JsString;
use wasm_bindgen::prelude::*;

use super::Object;
use crate::edge::host::Runtime;
use crate::edge::http::{self, ReceivedBody};
use crate::edge::request_log::RequestNote;
use crate::edge::rpc::{self, RpcCall};
use crate::edge::storage::{Sqlite, empty};
use crate::edge::text::Sent;
use access::{self, Caller};
use api::dispatch::{self, clear_pages};
use api::operation::{Agent, Reply};
use api::request::Request;
use api::route::Route;
use api::tracing::trace_of_refused;
use base::background::Background as _;
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
        let db = Sqlite::new(&self.storage);
        let note = RequestNote::begin(&self.log);
        let called = RpcCall::parse(operation, json, options, &note)
            .and_then(|call| self.understand_call(call, is_own, &note));
        let answer = match called {
            Ok((request, json)) if request.trace.is_none() => {
                self.serve_call(&request, json, &db).await
            }
            Ok((request, json)) => {
                let began_at = Runtime.now_ms();
                let serving = self.serve_call(&request, json, &db);
                let served = run_in(request.trace.clone(), serving).await;
                if let Some(trace) = &request.trace {
                    self.record_request(trace, &request, began_at, served.as_ref().err());
                }
                served
            }
            Err(error) => Err(error),
        };
        self.end_request(&note, answer.as_ref().map(|_| Some(200)), &db);
        answer.map_err(|error| rpc::to_thrown(&error))
    }

    /// Understands a call, as `understand` does a request over HTTP. Returns its JSON, too.
    fn understand_call(
        &self,
        call: RpcCall,
        is_own: bool,
        note: &RequestNote,
    ) -> Result<(Request, Option<JsString>)> {
        let mut options = call.options;
        if let Some(agent) = &options.agent {
            self.name.check(agent)?;
        }
        let agent = self.name.get();
        let route = Route::operation(agent, call.operation);
        let entry = self.entry_point();
        // A binding has neither a host nor an origin that `AUTH = "local"` could check.
        let caller = if is_own {
            Caller::Owner
        } else {
            access::identify(
                entry.policy,
                entry.host,
                Some(agent),
                options.token.as_deref(),
            )
            .inspect_err(|_| {
                let traceparent = options.traceparent.as_deref();
                note.set_trace(trace_of_refused(None, traceparent, &Runtime).as_ref());
            })?
        };
        let request = Request::new(&entry, route, caller, |name| options.take_header(name));
        note.set_trace(request.trace.as_deref());
        Ok((request, call.json))
    }

    /// Serves a call: copies its JSON, and runs its operation.
    async fn serve_call(
        self: &Rc<Self>,
        request: &Request,
        json: Option<JsString>,
        db: &Sqlite<'_>,
    ) -> Result<JsValue> {
        let admission = request.admit()?;
        let ReceivedBody { bytes, reservation } = rpc::receive(json, admission.max_body_bytes)?;
        admission.check_capacity()?;
        self.open_tables(db)?;
        if request.caller.only_session().is_some() {
            db.bypass_cache();
        }
        let blank = self.blank(db);
        let agent = Agent {
            body: Some(&reservation),
            db: self.readable(db, &blank),
            ..self.agent(db, request)
        };
        let mut reply = dispatch::run(&agent, admission.operation()?, bytes).await?;
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
            self.log(&error);
        }
    }

    /// Clears the remains of purged text in table pages, in free pages and in the
    /// write-ahead log. `db` counts the rows that this writes.
    pub(super) async fn clear_pages(&self, db: &Sqlite<'_>, left: &LeftPages) -> Result<()> {
        clear_pages(&self.own_agent(db), left).await
    }

    pub(super) async fn empty(&self) -> Result<()> {
        self.is_migrated.set(false);
        self.turns.checks.set_recovery_due(false);
        self.joining.set_due(false);
        self.turns.cancel_all();
        empty(&self.storage).await?;
        // Emptying the storage has also deleted the alarm.
        self.alarm.clear();
        Ok(())
    }
}
