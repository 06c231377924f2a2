//! The answer to a request that came in over HTTP.

use std::rc::Rc;

use wasm_bindgen::prelude::*;
use worker::web_sys;

use super::Object;
use super::incoming::Incoming;
use crate::edge::host::Runtime;
use crate::edge::request_log::RequestNote;
use crate::edge::storage::Sqlite;
use crate::edge::text::Sent;
use crate::edge::{cors, health, http, mcp, stream};
use access::LEASE_HEADER;
use api::authorization::{PAGE_HEADERS, answer_return, describe_client};
use api::chat::StartedTurn;
use api::chat::begin_chat;
use api::chat::resume_chat;
use api::dispatch;
use api::limits::check_encoding;
use api::mcp::{Answering, Outbox, trace_of_message};
use api::operation::{Agent, Reply};
use api::operations::message_reads::get_messages;
use api::provider::{self, ProviderAnswer};
use api::request::Request;
use api::route::{self, Route};
use api::tracing::trace_of_refused;
use base::budget::Reservation;
use base::database::SqlText;
use base::error::{Error, Result};
use base::host::Host as _;
use base::outbound::LocalBoxFuture;
use base::trace::{self, TRACEPARENT};
use chat::run::listener::TurnListener;
use chat::stream::chunks::HEADERS;
use provider_api::begin::{StartedAnswer, find_shown_id};
use provider_api::calls::{ApiCall, ApiHeaders};

pub enum ObjectAnswer {
    /// The reservation counts the reply's memory until the reply is sent.
    Reply(Reply, Sent, Reservation),
    /// A body that is produced while it is sent.
    Stream(JsValue),
    Turn(StartedTurn),
    /// An answer in the API of a provider.
    Provider(ProviderAnswer),
    /// An answer of the Model Context Protocol.
    Mcp(mcp::McpReply),
    Nothing,
    Response(Result<web_sys::Response, JsValue>),
}

impl ObjectAnswer {
    /// The status in the request's line. A poll of a stream has no line: the stream's first request
    /// has one.
    fn logged_status(&self) -> Option<u16> {
        Some(match self {
            Self::Mcp(message) if message.answer.is_poll => return None,
            Self::Reply(..) | Self::Stream(_) | Self::Turn(_) | Self::Provider(_) => 200,
            Self::Mcp(message) => message.answer.status,
            Self::Nothing => 204,
            Self::Response(response) => response.as_ref().map_or(500, web_sys::Response::status),
        })
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

impl Object {
    /// Answers a request: understands it, serves it, and logs how it ended.
    pub(super) async fn answer(self: &Rc<Self>, incoming: &Incoming) -> http::ResponseResult {
        let head = &incoming.head;
        if let Some(answer) = cors::answer_preflight(&incoming.shared, &head.inner) {
            return answer;
        }
        if incoming.is_chat()
            && let Some(id) = head.find_header(LEASE_HEADER)
        {
            return self.connect_lease(head, &id);
        }
        let db = Sqlite::new(&self.storage);
        let note = RequestNote::begin(&self.log);
        let is_front = incoming.is_chat() && self.is_front(head);
        let handled = match self.understand(incoming, &db, &note) {
            // An MCP message may name its trace in its body.
            Ok(request)
                if request.trace.is_none() && !matches!(request.route, Route::Mcp { .. }) =>
            {
                self.serve(&request, incoming, &db).await
            }
            Ok(request) => {
                let began_at = Runtime.now_ms();
                let serving = self.serve(&request, incoming, &db);
                let served = trace::run_in(request.trace.clone(), serving).await;
                if let Some(trace) = incoming.trace() {
                    self.record_request(&trace, &request, began_at, served.as_ref().err());
                }
                served
            }
            Err(answer) => *answer,
        };
        note.set_trace(incoming.trace().as_deref());
        self.end_request(
            &note,
            handled.as_ref().map(ObjectAnswer::logged_status),
            &db,
        );
        let answer = match handled {
            Ok(ObjectAnswer::Reply(reply, body, reservation)) => {
                self.follow_answer(reply.grown, reply.changed, reply.indexing_continues);
                http::answer(200, &body, &db.statements, reservation, &[])
            }
            Ok(ObjectAnswer::Stream(body)) => {
                let headers = [("content-type", "application/x-ndjson")];
                http::stream(&body, &db.statements, &headers)
            }
            Ok(ObjectAnswer::Turn(started)) => self.answer_started(started, is_front, &db),
            Ok(ObjectAnswer::Provider(answer)) => {
                let answer: LocalBoxFuture<'_, _> =
                    Box::pin(self.answer_provider(&head.url, answer, &db));
                answer.await
            }
            Ok(ObjectAnswer::Mcp(message)) => {
                self.follow_answer(None, None, message.answer.indexing_continues);
                message.respond(&db.statements)
            }
            Ok(ObjectAnswer::Nothing) => http::nothing(&db.statements),
            Ok(ObjectAnswer::Response(response)) => response,
            Err(error) => http::refuse_at(&head.url, &error, Some(&db.statements)),
        }?;
        incoming.finish(answer)
    }

    fn answer_started(
        self: &Rc<Self>,
        mut started: StartedTurn,
        is_front: bool,
        db: &Sqlite<'_>,
    ) -> http::ResponseResult {
        if let Some(work) = started.work.take() {
            if is_front && self.may_lease(&work, db) {
                return self.begin_leased(work, db);
            }
            self.begin(work);
        }
        answer_turn(started.listener, db)
    }

    /// Logs how a request ended, and begins what waits for its end.
    pub(super) fn end_request(
        self: &Rc<Self>,
        note: &RequestNote,
        outcome: Result<Option<u16>, &Error>,
        db: &Sqlite<'_>,
    ) {
        let (name, cost) = (self.name.get(), Some(&db.statements));
        match outcome {
            Ok(Some(status)) => note.answered(name, status, cost),
            Ok(None) => {}
            Err(error) => note.refused(name, error, cost),
        }
        self.recover_once();
        self.join_later();
        self.export_later();
    }

    /// As [`Object::answer`], for a request whose answer may follow other messages. If one of them
    /// comes first, the response is a stream of events.
    pub(super) async fn answer_message(
        self: &Rc<Self>,
        incoming: &Rc<Incoming>,
        outbox: &Rc<Outbox>,
    ) -> http::ResponseResult {
        let (object, request) = (Rc::clone(self), Rc::clone(incoming));
        let work = async move { object.answer(&request).await };
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
        let answer = match mcp::into_stream(answering) {
            Ok(body) => http::stream(&body, &db.statements, &headers),
            Err(error) => http::refuse(&error, Some(&db.statements)),
        }?;
        incoming.finish(answer)
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
        let StartedAnswer {
            session_id,
            is_streamed,
            mut listener,
            work,
        } = match answer {
            ProviderAnswer::Whole(body) => return answer_whole(body, db, &[]),
            ProviderAnswer::Turn(started) => *started,
        };
        if let Some(work) = work {
            self.begin(work);
        }
        let session = find_shown_id(&session_id).map(|id| ("x-session-id", id));
        let session = session.as_slice();
        let failed = if is_streamed {
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

    /// Understands a request: what it asks of this agent, who asks, and in which trace. `Err`: its
    /// answer, which needs neither a caller nor a body.
    fn understand(
        &self,
        incoming: &Incoming,
        db: &Sqlite<'_>,
        note: &RequestNote,
    ) -> Result<Request, Box<Result<ObjectAnswer>>> {
        let refused = |error| Box::new(Err(error));
        let head = &incoming.head;
        let route = route::parse(&head.inner.method(), &head.url).map_err(refused)?;
        note.set_route(&route);
        match route.agent() {
            Some(agent) => self.name.check(agent).map_err(refused)?,
            None => return Err(Box::new(self.answer_for_all(&route))),
        }
        let entry = self.entry_point();
        match self.identify(&entry, &route, incoming, db) {
            Ok(caller) => {
                let request = Request::new(&entry, route, caller, |name| head.find_header(name));
                incoming.set_trace(request.trace.clone());
                Ok(request)
            }
            Err(error) => {
                let traceparent = head.find_header(TRACEPARENT);
                let trace = trace_of_refused(None, traceparent.as_deref(), &Runtime);
                incoming.set_trace(trace.map(Rc::new));
                Err(refused(error))
            }
        }
    }

    /// What the object answers instead of the Worker in front.
    fn answer_for_all(&self, route: &Route) -> Result<ObjectAnswer> {
        match route {
            Route::Health => Ok(ObjectAnswer::Response(health::answer())),
            Route::OAuthClient => describe_client(&self.outbound)
                .map(|client| ObjectAnswer::Response(http::answer_client(&client)))
                .ok_or_else(route::no_such_route),
            // Only the Worker in front lists agents.
            _ => Err(route::no_such_route()),
        }
    }

    /// Serves a request: reads its body, and runs what its route names.
    async fn serve(
        &self,
        request: &Request,
        incoming: &Incoming,
        db: &Sqlite<'_>,
    ) -> Result<ObjectAnswer> {
        let Request { route, caller, .. } = request;
        let head = &incoming.head;
        let admitted = request.admit().and_then(|admission| {
            check_encoding(head.find_header("content-encoding").as_deref()).map(|()| admission)
        });
        let admission = match admitted {
            Ok(admission) => admission,
            Err(error) => {
                http::discard(&head.inner).await;
                return Err(error);
            }
        };
        let api_headers = match route {
            Route::Provider { .. } => ApiHeaders::read(|name| head.find_header(name))?,
            _ => ApiHeaders::default(),
        };
        if let Route::Socket { session_id, .. } = route {
            self.open_tables(db)?;
            let blank = self.blank(db);
            let agent = Agent {
                db: self.readable(db, &blank),
                ..self.agent(db, request)
            };
            return self.open_socket(&agent, session_id.clone(), head);
        }
        // An import reads its body itself, piece by piece.
        let (body, pieces) = match route {
            Route::Import { .. } | Route::ImportAgent { .. } => (
                http::ReceivedBody::nothing()?,
                Some(match incoming.body.take() {
                    Some(bytes) => http::RequestBody::of(bytes),
                    None => http::RequestBody::new(&head.inner)?,
                }),
            ),
            _ => (
                http::read_body(&head.inner, incoming.body.take(), admission.max_body_bytes)
                    .await?,
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
            db.narrow();
        }
        let blank = self.blank(db);
        let agent = Agent {
            body: Some(&reservation),
            db: self.readable(db, &blank),
            ..self.agent(db, request)
        };
        // What an operation does not need is a function or a boxed future of its own. Inlined, it
        // would enlarge the future of every request, and the runtime would compile it for the first
        // one.
        let mut reply = match route {
            Route::Rpc { .. } => dispatch::run(&agent, admission.operation()?, bytes).await?,
            Route::Messages { session_id, .. } => get_messages(&agent, session_id.clone())?,
            Route::Export { .. } | Route::ExportAgent { .. } => {
                return self.send_file(&agent, route).map(ObjectAnswer::Stream);
            }
            Route::Import { .. } | Route::ImportAgent { .. } => {
                let taking: LocalBoxFuture<'_, _> =
                    Box::pin(self.take_file(&agent, db, route, pieces));
                taking.await?
            }
            Route::Chat { session_id, .. } => {
                return begin_chat(&agent, session_id, bytes).map(ObjectAnswer::Turn);
            }
            Route::Resume { session_id, .. } => {
                let started = resume_chat(&agent, session_id)?;
                return Ok(started.map_or(ObjectAnswer::Nothing, ObjectAnswer::Turn));
            }
            Route::Provider {
                session_id, call, ..
            } => {
                let address = session_id.as_deref();
                let answer: LocalBoxFuture<'_, _> =
                    Box::pin(provider::answer(&agent, call, address, &api_headers, bytes));
                return answer.await.map(ObjectAnswer::Provider);
            }
            Route::Mcp { session_id, .. } => {
                let answer: LocalBoxFuture<'_, _> =
                    Box::pin(self.answer_mcp(&agent, session_id.clone(), incoming, bytes, db));
                return answer.await.map(ObjectAnswer::Mcp);
            }
            Route::OAuthReturn { returned, .. } => {
                let answer: LocalBoxFuture<'_, _> = Box::pin(answer_return(&agent, returned));
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
        incoming: &Incoming,
        bytes: Vec<u8>,
        db: &Sqlite<'_>,
    ) -> Result<mcp::McpReply> {
        let mut trace = incoming.trace();
        let sampler = self.find_sampler();
        let named = trace_of_message(&bytes, trace.as_deref(), agent.caller, sampler, &Runtime);
        if let Some(named) = named {
            trace = Some(Rc::new(named));
            incoming.set_trace(trace.clone());
        }
        let (head, outbox) = (&incoming.head, incoming.outbox.as_deref());
        let answering = mcp::answer(agent, session_id, head, bytes, &self.clients, outbox);
        let answer = trace::run_in(trace, answering).await;
        // A tool may have erased something.
        self.clear_left(db).await;
        answer
    }
}
