//! Makes the calls that notify a service of a turn's end (`onTurnEnd`) and of a change of memory
//! (`onMemoryChange`). `store/callbacks.rs` stores their rows. A call is tried until the service
//! answers 2xx, at most `MAX_ATTEMPTS` times, and then stored as failed.
//!
//! Each call is signed as the Standard Webhooks specification requires, with a key that is derived
//! from the Worker's secret. The content of a call is read when the call is made, so a message or a
//! text that was deleted in the meantime is not sent.

mod memory_change;
mod message;
mod target;
mod turn_end;

use std::cell::RefCell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;

use self::message::CallbackMessage;
pub use self::target::{MEMORY_CHANGE, TURN_END, check_shapes, check_targets, no_target};
pub use self::turn_end::insert;
use access::Policy;
use base::error::{Error, Result};
use base::ids::Id;
use base::outbound::{CallFailure, CallLimits, CallPurpose, OutboundRequest, read_all};
use base::owner::work_for;
use memory::Memory;
use store::callbacks::{Callback, NewCallbacks, find_next_due};

/// The number of calls that run at the same time. Models and tools use the same connections.
const MAX_AT_ONCE: usize = 2;

/// The limits of a call. Only the status of the answer counts; its body is read so that the
/// service's connection is not closed early.
const LIMITS: CallLimits = CallLimits {
    wait_ms: 60_000,
    silence_ms: 10_000,
    no_content_ms: None,
    total_ms: 15_000,
    max_bytes: 64 << 10,
};

/// The headers of a call, by the Standard Webhooks specification.
const ID_HEADER: &str = "webhook-id";
const TIME_HEADER: &str = "webhook-timestamp";
const SIGNATURE_HEADER: &str = "webhook-signature";

/// The calls that run in this instance of the object.
#[derive(Default)]
pub struct CallbacksInFlight {
    calls: RefCell<Vec<(i64, String)>>,
    pub new: NewCallbacks,
}

impl CallbacksInFlight {
    /// Whether a call about this session is running.
    pub fn is_of(&self, session_id: &Id) -> bool {
        let calls = self.calls.borrow();
        calls.iter().any(|(_, id)| id == session_id.as_str())
    }

    fn numbers(&self) -> Vec<i64> {
        self.calls
            .borrow()
            .iter()
            .map(|(number, _)| *number)
            .collect()
    }

    fn begin(&self, call: &Callback) {
        let call = (call.number, call.session_id.clone());
        self.calls.borrow_mut().push(call);
    }

    fn end(&self, number: i64) {
        self.calls
            .borrow_mut()
            .retain(|(other, _)| *other != number);
    }
}

/// Makes the calls.
#[derive(Clone, Copy)]
pub struct CallbackSender<'a> {
    pub memory: Memory<'a>,
    pub policy: &'a Policy,
    pub in_flight: &'a CallbacksInFlight,
}

impl CallbackSender<'_> {
    /// Makes the calls that are due. Returns when the next call is due; `None`: no call is waiting.
    pub async fn call_due(self) -> Result<Option<i64>> {
        let (db, host) = (self.memory.db, self.memory.host);
        loop {
            let in_flight = self.in_flight.numbers();
            let free = MAX_AT_ONCE.saturating_sub(in_flight.len()) as i64;
            let calls = Callback::load_due(db, &in_flight, host.now_ms(), free)?;
            if calls.is_empty() {
                return find_next_due(db);
            }
            for call in &calls {
                self.in_flight.begin(call);
            }
            let made = calls
                .iter()
                .map(|call| work_for(&call.session_id, self.call(call)));
            let outcomes = join_all(made).await;
            for (call, outcome) in calls.iter().zip(outcomes) {
                self.in_flight.end(call.number);
                match outcome {
                    Ok(()) => call.forget(db)?,
                    Err(reason) => call.postpone(db, host.now_ms(), &reason)?,
                }
            }
        }
    }

    /// Makes one call. The error is the reason why the call failed.
    async fn call(self, call: &Callback) -> Result<(), String> {
        let request = self.request(call).map_err(Error::into_message)?;
        let failed = |failure: CallFailure| failure.reason();
        let mut answer = self.memory.outbound.send(request).await.map_err(failed)?;
        let status = answer.status;
        // Only the status counts: an answer that is cut off or too long is not a failure.
        let _ = read_all(answer.body.as_mut()).await;
        if (200..300).contains(&status) {
            Ok(())
        } else {
            Err(format!("it returned status {status}"))
        }
    }

    fn request(self, call: &Callback) -> Result<OutboundRequest> {
        let CallbackMessage {
            endpoint,
            delivery_id,
            body,
        } = if call.reports_turn() {
            turn_end::render(&self.memory, self.policy, call)?
        } else {
            memory_change::render(&self.memory, self.policy, call)?
        };
        let now_s = (self.memory.host.now_ms() / 1000).to_string();
        // A Worker without a secret has no key to sign with. While a secret is replaced, there are
        // two signatures, as Standard Webhooks specifies.
        let content = format!("{delivery_id}.{now_s}.{body}");
        let secrets = self.policy.secrets();
        let signatures: Vec<String> = secrets
            .map(|secret| format!("v1,{}", STANDARD.encode(secret.sign_callback(&content))))
            .collect();
        let mut headers = vec![
            (ID_HEADER.to_owned(), delivery_id),
            (TIME_HEADER.to_owned(), now_s),
        ];
        if !signatures.is_empty() {
            headers.push((SIGNATURE_HEADER.to_owned(), signatures.join(" ")));
        }
        Ok(OutboundRequest {
            purpose: CallPurpose::Tool,
            endpoint,
            headers,
            body,
            limits: LIMITS,
        })
    }
}
