//! What is asked of a request before its body is read: whether there is such an
//! operation, whether its caller may ever run it, and how much it may send.

use super::chat::CHAT_RULE;
use super::operation::Entry;
use super::route::Route;
use super::{table, unknown_operation};
use crate::access::{Caller, Touches, permit_by_name};
use crate::budget::{Hold, MAX_ANSWER_BYTES};
use crate::chat::request::MAX_CHAT_BODY_BYTES;
use crate::error::{Error, Result};
use crate::log::slices::MAX_EVENT_BYTES;

/// What most operations may send: their fields are short, and lists of names.
pub const DEFAULT_BODY_BYTES: usize = 1 << 20;

/// What an operation may send that writes events: the largest there may be, and
/// room for what stands around it.
pub const EVENTS_BODY_BYTES: usize = MAX_EVENT_BYTES + DEFAULT_BODY_BYTES;

/// What an operation may send that takes a text of so many bytes. JSON may spell
/// a byte in six (`\u0001`); the rest is for the other fields.
pub const fn body_with_text(bytes: usize) -> usize {
    6 * bytes + (64 << 10)
}

/// How many bytes the body of this request may have. Refuses a caller whom no body
/// would let in; which session the request speaks of is asked once it is parsed.
pub fn admit(caller: &Caller, route: &Route) -> Result<usize> {
    match route {
        Route::Rpc { operation, .. } => {
            let entry = find_entry(operation)?;
            permit_by_name(caller, entry.rule)?;
            Ok(entry.max_body_bytes)
        }
        Route::Chat { .. } => {
            permit_by_name(caller, CHAT_RULE)?;
            Ok(MAX_CHAT_BODY_BYTES)
        }
        // They have none, or read it line by line.
        _ => Ok(0),
    }
}

/// Refuses a request whose answer may be long while others of that kind fill the
/// room: what is made for an answer that can't be sent stays behind as garbage.
pub fn check_room(route: &Route) -> Result<()> {
    let is_long = match route {
        Route::Rpc { operation, .. } => find_entry(operation)?.is_long,
        Route::Messages { .. } => true,
        _ => false,
    };
    match is_long {
        true => Hold::for_request(2 * MAX_ANSWER_BYTES).map(drop),
        false => Ok(()),
    }
}

/// Whether what this request did stands although its answer is withheld. Where it
/// changed nothing, asking again costs nothing.
pub fn may_be_repeated(route: &Route) -> bool {
    match route {
        Route::Rpc { operation, .. } => {
            find_entry(operation).is_ok_and(|entry| entry.rule.touches == Touches::Nothing)
        }
        Route::Messages { .. } => true,
        _ => false,
    }
}

pub fn find_entry(operation: &str) -> Result<&'static Entry> {
    table::OPERATIONS
        .iter()
        .find(|entry| entry.name == operation)
        .ok_or_else(|| unknown_operation(operation))
}

pub fn check_length(limit: usize, actual: usize) -> Result<()> {
    match actual > limit {
        true => Err(Error::payload_too_large("The body", limit, actual)),
        false => Ok(()),
    }
}
