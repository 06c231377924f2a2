//! The answer to a request that came in over HTTP.

use std::rc::Rc;

use wasm_bindgen::prelude::*;
use worker::web_sys;

use super::Object;
use super::traced::Traced;
use crate::edge::host::Runtime;
use crate::edge::mcp::Answering;
use crate::edge::request_log::{RequestNote, trace_of_refused};
use crate::edge::storage::Sqlite;
use crate::edge::text::Sent;
use crate::edge::{health, http, mcp, stream};
use access::Caller;
use api::admission::{admit, find_via};
use api::authorization::{PAGE_HEADERS, answer_return, describe_client};
use api::chat::BegunTurn;
use api::chat::begin_chat;
use api::chat::resume_chat;
use api::dispatch;
use api::mcp::Outbox;
use api::operation::{Agent, Reply};
use api::operations::message_reads::get_messages;
use api::provider::{self, ProviderAnswer};
use api::route::{self, Route};
use base::budget::Reservation;
use base::database::SqlText;
use base::error::{Error, Result};
use base::host::Host as _;
use base::outbound::LocalBoxFuture;
use base::trace::{self, TRACEPARENT, TRACESTATE};
use chat::run::listener::TurnListener;
use chat::stream::chunks::HEADERS;
use memory::backends::agent::VIA_HEADER;
use provider_api::calls::{ApiCall, ApiHeaders};

pub enum ObjectAnswer {
    /// The reservation counts the reply's memory until the reply is sent.
    Reply(Reply, Sent, Reservation),
    /// A body that is produced while it is sent.
    Stream(JsValue),
    Turn(BegunTurn),
    /// An answer in the API of a provider.
    Provider(ProviderAnswer),
    /// An answer of the Model Context Protocol.
    Mcp(mcp::McpReply),
    Nothing,
    Response(Result<web_sys::Response, JsValue>),
}

impl ObjectAnswer {
    fn status(&self) -> u16 {
        match self {
            Self::Reply(..) | Self::Stream(_) | Self::Turn(_) | Self::Provider(_) => 200,
            Self::Mcp(message) => message.answer.status,
            Self::Nothing => 204,
            Self::Response(response) => response.as_ref().map_or(500, web_sys::Response::status),
        }
    }
}

fn answer_turn(listener: TurnListener, db: &Sqlite<'_>) -> Result<web_sys::Response, JsValue> {
    match stream::of_events(listener) {
        Ok(body) => http::stream(&body, &db.statements, &HEADERS),
        Err(error) => http::refuse(&error, Some(&db.statements)),
    }
}

/// A whole answer in the API of a provider.
fn answer_whole(
    body: String,
    db: &Sqlite<'_>,
    headers: &[(&str, &str)],
) -> Result<web_sys::Response, JsValue> {
    let body = Sent::of(SqlText::from(body));
    let reservation = match http::reserve_answer(&body, false) {
        Ok(reservation) => reservation,
        Err(error) => return http::refuse(&error, Some(&db.statements)),
    };
    http::answer(200, &body, &db.statements, reservation, headers)
}

/// Whether a header can hold this text.
fn is_visible_ascii(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7F).contains(&byte))
}

impl Object {
    pub(super) async fn answer(
        self: &Rc<Self>,
        request: web_sys::Request,
        body: Option<Vec<u8>>,
        granted: Option<String>,
        traced: &Traced,
    ) -> Result<web_sys::Response, JsValue> {
        let db = Sqlite::new(&self.storage);
        let note = RequestNote::begin(&self.log);
        let url = request.url();
        let is_front = url.contains("/chat") && self.is_front(&request);
        let handled = self
            .handle(request, body, granted, &db, &note, traced)
            .await;
        note.set_trace(traced.get().as_deref());
        let (name, cost) = (self.name.get(), Some(&db.statements));
        match &handled {
            // The stream's first request has a line.
            Ok(ObjectAnswer::Mcp(message)) if message.answer.is_poll => {}
            Ok(answer) => note.answered(name, answer.status(), cost),
            Err(error) => note.refused(name, error, cost),
        }
        self.recover_once();
        self.join_later();
        self.export_later();
        match handled {
            Ok(ObjectAnswer::Reply(reply, body, reservation)) => {
                self.follow_answer(reply.grown, reply.changed, reply.indexing_continues);
                http::answer(200, &body, &db.statements, reservation, &[])
            }
            Ok(ObjectAnswer::Stream(body)) => {
                let headers = [("content-type", "application/x-ndjson")];
                http::stream(&body, &db.statements, &headers)
            }
            Ok(ObjectAnswer::Turn(mut begun)) => {
                if let Some(work) = begun.work.take() {
                    if is_front && self.may_lease(&work, &db) {
                        return self.begin_leased(work, &db);
                    }
                    self.begin(work);
                }
                answer_turn(begun.listener, &db)
            }
            Ok(ObjectAnswer::Provider(answer)) => {
                let answer: LocalBoxFuture<'_, _> =
                    Box::pin(self.answer_provider(&url, answer, &db));
                answer.await
            }
            Ok(ObjectAnswer::Mcp(message)) => {
                self.follow_answer(None, None, message.answer.indexing_continues);
                message.respond(&db.statements)
            }
            Ok(ObjectAnswer::Nothing) => http::nothing(&db.statements),
            Ok(ObjectAnswer::Response(response)) => response,
            Err(error) => http::refuse_at(&url, &error, Some(&db.statements)),
        }
    }

    /// As [`Object::answer`], for a request whose answer may follow other messages. If one of them
    /// comes first, the response is a stream of events.
    pub(super) async fn answer_message(
        self: &Rc<Self>,
        request: web_sys::Request,
        body: Option<Vec<u8>>,
        granted: Option<String>,
        traced: &Rc<Traced>,
        outbox: &Rc<Outbox>,
    ) -> Result<web_sys::Response, JsValue> {
        let (object, traced) = (Rc::clone(self), Rc::clone(traced));
        let work = async move { object.answer(request, body, granted, &traced).await };
        let mut answering = Answering::new(Box::pin(self.working(work)), Rc::clone(outbox));
        if let Some(answer) = answering.begin().await {
            return answer;
        }
        let db = Sqlite::new(&self.storage);
        let headers = [
            ("content-type", "text/event-stream"),
            // Without this header nginx would buffer the events.
            ("x-accel-buffering", "no"),
        ];
        match answering.into_stream() {
            Ok(body) => http::stream(&body, &db.statements, &headers),
            Err(error) => http::refuse(&error, Some(&db.statements)),
        }
    }

    /// Begins the turn. Responds when the answer begins or, if it isn't streamed, is complete:
    /// until then an error still has its own HTTP status. The turn continues if the client
    /// disconnects.
    async fn answer_provider(
        self: &Rc<Self>,
        url: &str,
        answer: ProviderAnswer,
        db: &Sqlite<'_>,
    ) -> Result<web_sys::Response, JsValue> {
        let begun = match answer {
            ProviderAnswer::Whole(body) => return answer_whole(body, db, &[]),
            ProviderAnswer::Turn(begun) => *begun,
        };
        if let Some(work) = begun.work {
            self.begin(work);
        }
        let session = [("x-session-id", begun.session_id.as_str())];
        let named = is_visible_ascii(begun.session_id.as_str());
        let session = if named { &session[..] } else { &[] };
        let mut listener = begun.listener;
        let failed = if begun.is_streamed {
            match listener.begins().await {
                Ok(()) => {
                    let mut headers = vec![
                        ("content-type", "text/event-stream"),
                        ("cache-control", "no-cache"),
                        // Without this header nginx would buffer the events.
                        ("x-accel-buffering", "no"),
                    ];
                    headers.extend(session);
                    return match stream::of_events(listener) {
                        Ok(body) => http::stream(&body, &db.statements, &headers),
                        Err(error) => http::refuse_at(url, &error, Some(&db.statements)),
                    };
                }
                Err(error) => error,
            }
        } else {
            match listener.whole().await {
                Ok(body) => return answer_whole(body, db, session),
                Err(error) => error,
            }
        };
        http::refuse_at(url, &failed, Some(&db.statements))
    }

    async fn handle(
        &self,
        request: web_sys::Request,
        short: Option<Vec<u8>>,
        granted: Option<String>,
        db: &Sqlite<'_>,
        note: &RequestNote,
        traced: &Traced,
    ) -> Result<ObjectAnswer> {
        let route = route::parse(&request.method(), &request.url())?;
        note.set_route(&route);
        let Some(agent) = route.agent() else {
            return match route {
                Route::Health => Ok(ObjectAnswer::Response(health::answer())),
                Route::OAuthClient => describe_client(&self.outbound)
                    .map(|client| ObjectAnswer::Response(http::answer_client(&client)))
                    .ok_or_else(route::no_such_route),
                // Only the Worker in front lists agents.
                _ => Err(route::no_such_route()),
            };
        };
        self.name.check(agent)?;
        let header = |name| http::find_header(&request, name);
        let caller = self
            .caller(&route, &request, granted.as_deref(), db)
            .inspect_err(|_| {
                traced.set(trace_of_refused(None, header(TRACEPARENT).as_deref()).map(Rc::new));
            })?;
        let asked = (header(TRACEPARENT), header(TRACESTATE));
        let trace = self.begin_trace(asked, &caller).map(Rc::new);
        traced.set(trace.clone());
        // An MCP message may name its trace in its body.
        if trace.is_none() && !matches!(route, Route::Mcp { .. }) {
            return self
                .handle_as(&caller, route, request, short, db, traced)
                .await;
        }
        let (told, began_at) = (route.clone(), Runtime.now_ms());
        let handling = self.handle_as(&caller, route, request, short, db, traced);
        let handled = trace::run_in(trace, handling).await;
        if let Some(trace) = traced.get() {
            self.note_request(&trace, &told, began_at, handled.as_ref().err());
        }
        handled
    }

    /// Handles the request of an authenticated caller.
    async fn handle_as(
        &self,
        caller: &Caller,
        route: Route,
        request: web_sys::Request,
        short: Option<Vec<u8>>,
        db: &Sqlite<'_>,
        traced: &Traced,
    ) -> Result<ObjectAnswer> {
        let admitted = admit(caller, &route)
            .and_then(|admission| http::check_encoding(&request).map(|()| admission));
        let admission = match admitted {
            Ok(admission) => admission,
            Err(error) => {
                http::discard(&request).await;
                return Err(error);
            }
        };
        let api_headers = match route {
            Route::Provider { .. } => ApiHeaders::read(|name| http::find_header(&request, name))?,
            _ => ApiHeaders::default(),
        };
        let via = find_via(caller, http::find_header(&request, VIA_HEADER).as_deref());
        if let Route::Socket { session_id, .. } = route {
            self.open_tables(db)?;
            let blank = self.blank(db);
            let agent = Agent {
                db: if self.is_migrated.get() { db } else { &blank },
                ..self.agent(db, caller, &via)
            };
            return self.open_socket(&agent, session_id, &request);
        }
        // An import reads its body itself, piece by piece.
        let (body, pieces) = match route {
            Route::Import { .. } | Route::ImportAgent { .. } => (
                http::ReceivedBody::nothing()?,
                Some(match short {
                    Some(bytes) => http::RequestBody::of(bytes),
                    None => http::RequestBody::new(&request)?,
                }),
            ),
            _ => (
                http::read_body(&request, short, admission.max_body_bytes).await?,
                None,
            ),
        };
        let http::ReceivedBody { bytes, reservation } = body;
        admission.check_capacity()?;
        match route {
            Route::Chat { .. }
            | Route::Import { .. }
            | Route::ImportAgent { .. }
            | Route::Provider {
                call: ApiCall::Turn(_),
                ..
            } => {
                self.get_ready(db)?;
            }
            // These may only read, so they create no tables.
            _ => self.open_tables(db)?,
        }
        if caller.only_session().is_some() {
            db.statements.narrow();
        }
        let blank = self.blank(db);
        let agent = Agent {
            body: Some(&reservation),
            db: if self.is_migrated.get() { db } else { &blank },
            ..self.agent(db, caller, &via)
        };
        // What an operation does not need is a function or a boxed future of its own. Inlined, it would
        // enlarge the future of every request, and the runtime would compile it for the first one.
        let mut reply = match route {
            Route::Rpc { operation, .. } => dispatch::run(&agent, operation.get()?, bytes).await?,
            Route::Messages { session_id, .. } => get_messages(&agent, session_id)?,
            Route::Export { .. } | Route::ExportAgent { .. } => {
                return self.send_file(&agent, route).map(ObjectAnswer::Stream);
            }
            Route::Import { .. } | Route::ImportAgent { .. } => {
                let taking: LocalBoxFuture<'_, _> =
                    Box::pin(self.take_file(&agent, db, route, pieces));
                taking.await?
            }
            Route::Chat { session_id, .. } => {
                return begin_chat(&agent, &session_id, bytes).map(ObjectAnswer::Turn);
            }
            Route::Resume { session_id, .. } => {
                let begun = resume_chat(&agent, &session_id)?;
                return Ok(begun.map_or(ObjectAnswer::Nothing, ObjectAnswer::Turn));
            }
            Route::Provider {
                session_id, call, ..
            } => {
                let address = session_id.as_deref();
                let answer: LocalBoxFuture<'_, _> = Box::pin(provider::answer(
                    &agent,
                    &call,
                    address,
                    &api_headers,
                    bytes,
                ));
                return answer.await.map(ObjectAnswer::Provider);
            }
            Route::Mcp { session_id, .. } => {
                let answer: LocalBoxFuture<'_, _> =
                    Box::pin(self.answer_mcp(&agent, session_id, &request, bytes, db, traced));
                return answer.await.map(ObjectAnswer::Mcp);
            }
            Route::OAuthReturn { returned, .. } => {
                let answer: LocalBoxFuture<'_, _> = Box::pin(answer_return(&agent, &returned));
                let page = answer.await;
                if let Some(failure) = &page.failure {
                    http::log(failure);
                }
                let body = Sent::of(SqlText::from(page.html));
                return Ok(ObjectAnswer::Response(http::answer(
                    page.status,
                    &body,
                    &db.statements,
                    reservation,
                    &PAGE_HEADERS,
                )));
            }
            Route::Health | Route::OAuthClient | Route::Agents { .. } | Route::Socket { .. } => {
                return Err(Error::storage(
                    "a request that has an answer was taken for an operation",
                ));
            }
        };
        drop(reservation);
        let (body, reservation) = self
            .conclude(db, &mut reply, admission.may_be_repeated)
            .await?;
        Ok(ObjectAnswer::Reply(reply, body, reservation))
    }

    async fn answer_mcp(
        &self,
        agent: &Agent<'_>,
        session_id: Option<String>,
        request: &web_sys::Request,
        bytes: Vec<u8>,
        db: &Sqlite<'_>,
        traced: &Traced,
    ) -> Result<mcp::McpReply> {
        let mut trace = traced.get();
        if let Some(named) = self.begin_trace_of_message(&bytes, trace.as_deref(), agent.caller) {
            trace = Some(Rc::new(named));
            traced.set(trace.clone());
        }
        let outbox = traced.outbox.as_deref();
        let answering = mcp::answer(agent, session_id, request, bytes, &self.clients, outbox);
        let answer = trace::run_in(trace, answering).await;
        // A tool may have erased something.
        self.clear_left(db).await;
        answer
    }
}
