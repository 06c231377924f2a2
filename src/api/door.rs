//! What is asked of a request before its body is read: whether there is such an
//! operation, whether its caller may ever run it, and how much it may send.

use super::route::Route;
use super::table::find_entry;
use super::turns::CHAT_RULE;
use crate::access::{Caller, Effect, permit_by_name};
use crate::base::budget::{MAX_ANSWER_BYTES, Reservation};
use crate::base::error::Result;
use crate::chat::request::MAX_CHAT_BODY_BYTES;

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
        true => Reservation::for_request(2 * MAX_ANSWER_BYTES).map(drop),
        false => Ok(()),
    }
}

/// Whether what this request did stands although its answer is withheld. Where it
/// changed nothing, asking again costs nothing.
pub fn may_be_repeated(route: &Route) -> bool {
    match route {
        Route::Rpc { operation, .. } => {
            find_entry(operation).is_ok_and(|entry| entry.rule.effect == Effect::Nothing)
        }
        Route::Messages { .. } => true,
        _ => false,
    }
}
