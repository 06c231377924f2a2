//! Subscriptions to resources. The Worker in front of the object keeps the stream to a client open,
//! and polls the object at a bounded rate for changes. So the object can sleep while a stream is
//! open.
//!
//! The Worker sends the state of its stream with each poll: each resource with a mark, a short text
//! that changes with the content. For a client with a handshake, the object stores which resources
//! it subscribed to, until the stream has received them. Each mark is computed with the rights of
//! the caller who polls.

use serde_json::{Map, Value};

use super::clients::{ClientKey, MAX_RESOURCES, Subscribed, caller_text};
use super::exchange::Exchange;
use super::message::{Request, RpcError};
use super::offered::MAX_URI_BYTES;
use super::outcome::Outcome;
use super::resources;
use super::revision::Revision;
use super::scope::{RESOURCES, Scope};
use super::uri::Address;
use base::error::{Code, Error};
use base::json::{self, json};

/// The method by which the Worker in front polls. No client needs it.
pub const POLL: &str = "session-agent/poll";

/// The longest name of a stream.
const MAX_STREAM_BYTES: usize = 64;

/// The time limit of one poll. The remaining resources then count as unchanged.
const POLL_MS: i64 = 20_000;

/// The mark of a resource that does not exist.
const NOTHING: &str = "none";

/// The mark of a resource that could not be read yet.
const UNKNOWN: &str = "unknown";

/// Subscribes a client with a handshake to a resource, or unsubscribes it.
pub async fn change(
    scope: &Scope<'_>,
    exchange: &Exchange<'_>,
    request: &Request,
    begins: bool,
) -> Result<Outcome, RpcError> {
    scope.permit_one(RESOURCES)?;
    let uri = request.text("uri")?;
    if uri.len() > MAX_URI_BYTES {
        let message = format!("`uri` must have at most {MAX_URI_BYTES} bytes.");
        return Err(RpcError::params("uri", message));
    }
    let Some(session) = exchange.session() else {
        let message = "A subscription needs a session: send the header `mcp-session-id` that \
                       `initialize` returned.";
        return Err(RpcError::request(message));
    };
    let key = key_of(scope, session);
    if !begins {
        exchange.clients.unsubscribe(&key, uri);
        return Outcome::new(&json!({}));
    }
    let Some(mark) = resources::find_fingerprint(scope, uri).await? else {
        return Err(resources::not_found(exchange.revision, uri));
    };
    if exchange.clients.subscribe(&key, uri, mark) {
        return Outcome::new(&json!({}));
    }
    let message = format!("A session can subscribe to at most {MAX_RESOURCES} resources.");
    Err(RpcError::params("uri", message))
}

/// Whether a stream that has a state already asks again.
pub fn repeats(request: &Request) -> bool {
    let (_, known, _) = request.polled();
    request.method == POLL && known.is_object()
}

/// The current state of a stream, and what has changed since the state that the stream sent.
pub async fn poll(
    scope: &Scope<'_>,
    exchange: &Exchange<'_>,
    request: &Request,
) -> Result<Outcome, RpcError> {
    scope.permit_one(RESOURCES)?;
    let (stream, known, filter) = request.polled();
    let stream = stream.as_str().unwrap_or_default();
    if !(1..=MAX_STREAM_BYTES).contains(&stream.len()) {
        return Err(RpcError::params("stream", "`stream` must name the stream."));
    }
    let host = scope.agent.host;
    let caller = caller_text(scope.agent);
    if !exchange
        .clients
        .record_stream(&caller, stream, host.now_ms())
    {
        let message = "Too many streams of this agent are open. Close one, or try again later.";
        return Err(Error::new(Code::RateLimited, message).into());
    }
    let mut followed = read_known(known);
    match exchange.revision {
        Revision::Stateless => {
            for (address, mark) in read_filter(filter)? {
                followed.entry(address).or_insert(mark);
            }
        }
        Revision::Handshake => {
            if let Some(session) = exchange.session() {
                let key = key_of(scope, session);
                exchange.clients.join(&key, &mut followed);
            }
        }
    }
    while followed.len() > MAX_RESOURCES {
        followed.pop_last();
    }
    let started_ms = host.now_ms();
    let mut marks = Map::new();
    let mut changed = Vec::new();
    for (address, old) in followed {
        let is_late = host.now_ms() - started_ms >= POLL_MS;
        // If a backend is unavailable, or a class fails, the resource counts as unchanged.
        let mark = if is_late {
            None
        } else {
            resources::find_fingerprint(scope, &address)
                .await
                .ok()
                .map(|mark| mark.unwrap_or_else(|| NOTHING.to_owned()))
        };
        if let (Some(mark), Some(old)) = (&mark, &old)
            && mark != old
            && old != UNKNOWN
        {
            changed.push(address.clone());
        }
        let mark = mark.or(old).unwrap_or_else(|| UNKNOWN.to_owned());
        marks.insert(address, mark.into());
    }
    Outcome::new(&json!({"resources": marks, "changed": changed}))
}

/// Two callers never share a session.
fn key_of(scope: &Scope<'_>, session: &str) -> ClientKey {
    let of = scope.session_id().map_or("", |id| id.as_str());
    ClientKey {
        caller: caller_text(scope.agent),
        session: json::text(&json!([session, of])),
    }
}

/// The state that a stream sends. Invalid parts are ignored: it may come from a client.
fn read_known(known: &Value) -> Subscribed {
    let fields = known.as_object().into_iter().flatten();
    fields
        .filter(|(address, _)| address.len() <= MAX_URI_BYTES && is_address(address))
        .take(MAX_RESOURCES)
        .map(|(address, mark)| (address.clone(), mark.as_str().map(str::to_owned)))
        .collect()
}

/// The resources that a client of the newest revision names.
fn read_filter(filter: &Value) -> Result<Subscribed, RpcError> {
    let field = "notifications.resourceSubscriptions";
    let uris = match filter.get("resourceSubscriptions") {
        None | Some(Value::Null) => return Ok(Subscribed::new()),
        Some(Value::Array(uris)) => uris,
        Some(_) => {
            return Err(RpcError::params(
                field,
                format!("`{field}` must be a list."),
            ));
        }
    };
    if uris.len() > MAX_RESOURCES {
        let message = format!("A stream can follow at most {MAX_RESOURCES} resources.");
        return Err(RpcError::params(field, message));
    }
    let mut read = Subscribed::new();
    for address in uris {
        let Some(address) = address.as_str().filter(|text| text.len() <= MAX_URI_BYTES) else {
            let message =
                format!("`{field}` must be strings of at most {MAX_URI_BYTES} bytes each.");
            return Err(RpcError::params(field, message));
        };
        // An address that no resource can have is ignored: the answer leaves it out.
        if is_address(address) {
            read.insert(address.to_owned(), None);
        }
    }
    Ok(read)
}

fn is_address(text: &str) -> bool {
    text.contains(':') && Address::parse(text).is_ok()
}
