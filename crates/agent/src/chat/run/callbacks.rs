//! Calls that tell a service of a turn's end (`onTurnEnd`). A call is written in the
//! turn's last transaction, so that it survives the object. It is tried until the service
//! answers 2xx, at most `MAX_ATTEMPTS` times, and then kept as failed.
//!
//! Each call is signed as the Standard Webhooks specification says, with a key that is
//! derived from the Worker's secret. The message is read when the call is made, so a
//! message that was deleted meanwhile is not told.

use std::cell::{Cell, RefCell};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use serde::Serialize;

use crate::access::Policy;
use crate::base::columns::{FromRow, find_value, load};
use crate::base::database::{Database, Row, atomically};
use crate::base::error::{Error, Result};
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::base::json::{self, RawValue};
use crate::base::outbound::{
    CallFailure, CallLimits, CallPurpose, Endpoint, Outbound, OutboundRequest, read_all,
};
use crate::base::owner::work_for;
use crate::chat::address::tool_address::check_url;
use crate::chat::request::delivery::Delivery;
use crate::chat::turn::Turn;
use crate::chat::turn::report::{TurnFinish, TurnReport};
use crate::log::sessions::session_exists;
use crate::memory::Memory;
use crate::messages::read::find_message_around;
use crate::store::config::{DeployedConfig, load_config};
use crate::store::spending::TurnUsage;
use crate::store::turn_end::TurnEndCallback;

/// The number of times that a call is tried.
pub const MAX_ATTEMPTS: usize = 5;

/// The pauses before the second try and those after it: about 13 minutes in all.
const PAUSES_MS: [i64; MAX_ATTEMPTS - 1] = [5_000, 30_000, 120_000, 600_000];

/// The number of calls that are under way at once. Models and tools use the same
/// connections.
const MAX_AT_ONCE: usize = 2;

/// The number of failed calls that an agent keeps. Older ones are deleted.
pub const MAX_FAILED: i64 = 64;

/// The number of calls that may wait for another try. While more are waiting, a call that
/// fails is not tried again.
const MAX_PENDING: i64 = 512;

/// The limits of a call. Of the answer only the status counts; its body is read so that
/// the service is not cut off.
const LIMITS: CallLimits = CallLimits {
    wait_ms: 60_000,
    silence_ms: 10_000,
    mute_ms: None,
    total_ms: 15_000,
    max_bytes: 64 << 10,
};

/// The headers of a call, by the Standard Webhooks specification.
const ID_HEADER: &str = "webhook-id";
const TIME_HEADER: &str = "webhook-timestamp";
const SIGNATURE_HEADER: &str = "webhook-signature";

/// The calls that are under way in this instance of the object.
#[derive(Default)]
pub struct CallbacksUnderWay {
    calls: RefCell<Vec<(i64, String)>>,
    /// Whether a turn wrote a call that nobody has looked for yet.
    is_new: Cell<bool>,
}

impl CallbacksUnderWay {
    /// Notes that a turn wrote a call.
    pub fn note_new(&self) {
        self.is_new.set(true);
    }

    /// Whether a turn wrote a call since the last look.
    pub fn take_new(&self) -> bool {
        self.is_new.replace(false)
    }

    /// Whether a service is being told of a turn of this session.
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
        let call = (call.number, call.session_id.as_str().to_owned());
        self.calls.borrow_mut().push(call);
    }

    fn end(&self, number: i64) {
        self.calls
            .borrow_mut()
            .retain(|(other, _)| *other != number);
    }
}

/// A call to make.
struct Callback {
    number: i64,
    id: String,
    session_id: Id,
    message_id: String,
    report: TurnReport,
    attempts: i64,
}

impl Callback {
    const COLUMNS: &str = "number, id, session_id, message_id, report, attempts";
}

impl FromRow<'_> for Callback {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            number: row.integer(0)?,
            id: row.text(1)?.to_owned(),
            session_id: Id::parse(row.text(2)?.to_owned()).map_err(Error::storage)?,
            message_id: row.text(3)?.to_owned(),
            // A report that can't be read is told without its numbers.
            report: json::decode(row.text(4)?).unwrap_or_default(),
            attempts: row.integer(5)?,
        })
    }
}

/// A call that was given up, as `getStats` shows it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailedCallback {
    /// The delivery's id, which every try had. Who has no secret is shown its beginning
    /// alone, which no request can use.
    id: String,
    session_id: Id,
    attempts: i64,
    failed_at: i64,
    /// Why the last try failed.
    reason: String,
}

impl FailedCallback {
    const COLUMNS: &str = "id, session_id, attempts, failed_at, coalesce(reason, '')";
}

impl FailedCallback {
    /// Shows the whole id, by which the agent knows the delivery again.
    pub fn show_id(&mut self, policy: &Policy, agent_name: &str) {
        self.id = Delivery::of(policy, agent_name, &self.session_id).seal(&self.id);
    }
}

impl FromRow<'_> for FailedCallback {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            id: row.text(0)?.to_owned(),
            session_id: Id::parse(row.text(1)?.to_owned()).map_err(Error::storage)?,
            attempts: row.integer(2)?,
            failed_at: row.integer(3)?,
            reason: row.text(4)?.to_owned(),
        })
    }
}

/// Writes the call for a turn's end, if the agent's configuration names somebody to call;
/// `false`: nobody is called. `message_id`: the message with the turn's last words. Part
/// of the turn's last transaction.
pub fn insert(
    memory: &Memory<'_>,
    turn: &Turn,
    message_id: &str,
    report: &TurnReport,
) -> Result<bool> {
    if turn.calls_nobody_back {
        return Ok(false);
    }
    let (db, host) = (memory.db, memory.host);
    let config = load_config(db, &memory.deployed.config)?;
    if config.on_turn_end.is_none() {
        return Ok(false);
    }
    let report = json::encode(report)?;
    db.run(
        "INSERT INTO cf_agents_callbacks (id, session_id, message_id, report, due_at)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        &[
            Id::mint_delivery(host).as_str().into(),
            turn.session_id.as_str().into(),
            message_id.into(),
            report.into(),
            host.now_ms().into(),
        ],
    )?;
    Ok(true)
}

/// Makes the calls.
#[derive(Clone, Copy)]
pub struct CallbackSender<'a> {
    pub agent_name: &'a str,
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub outbound: &'a dyn Outbound,
    pub deployed: &'a DeployedConfig,
    pub policy: &'a Policy,
    pub under_way: &'a CallbacksUnderWay,
}

impl CallbackSender<'_> {
    /// Makes the calls that are due. Returns when the next call is due; `None`: no call
    /// waits.
    pub async fn call_due(self) -> Result<Option<i64>> {
        loop {
            let calls = self.load_due()?;
            if calls.is_empty() {
                return self.find_next_due();
            }
            for call in &calls {
                self.under_way.begin(call);
            }
            let made = calls
                .iter()
                .map(|call| work_for(call.session_id.as_str(), self.call(call)));
            let outcomes = join_all(made).await;
            for (call, outcome) in calls.iter().zip(outcomes) {
                self.under_way.end(call.number);
                match outcome {
                    Ok(()) => self.forget(call)?,
                    Err(reason) => self.put_off(call, &reason)?,
                }
            }
        }
    }

    fn load_due(self) -> Result<Vec<Callback>> {
        let under_way = self.under_way.numbers();
        let free = MAX_AT_ONCE.saturating_sub(under_way.len()) as i64;
        let sql = format!(
            "SELECT {}
               FROM cf_agents_callbacks
              WHERE failed_at IS NULL
                AND due_at <= ?1
                AND number NOT IN (SELECT value FROM json_each(?2))
              ORDER BY due_at, number
              LIMIT ?3",
            Callback::COLUMNS
        );
        let under_way = json::encode(&under_way)?;
        let params = [self.host.now_ms().into(), under_way.into(), free.into()];
        load(self.db, &sql, &params)
    }

    /// When the next call is due.
    pub fn find_next_due(self) -> Result<Option<i64>> {
        let sql = "SELECT min(due_at) FROM cf_agents_callbacks WHERE failed_at IS NULL";
        find_value::<Option<i64>>(self.db, sql, &[]).map(Option::flatten)
    }

    /// Makes one call. An error says why the call failed.
    async fn call(self, call: &Callback) -> Result<(), String> {
        let request = self.request(call).map_err(Error::into_message)?;
        let failed = |failure: CallFailure| failure.reason();
        let mut answer = self.outbound.send(request).await.map_err(failed)?;
        let status = answer.status;
        // Only the status counts: an answer that breaks off or is too long does no harm.
        let _ = read_all(answer.body.as_mut()).await;
        match (200..300).contains(&status) {
            true => Ok(()),
            false => Err(format!("it answered with status {status}")),
        }
    }

    fn request(self, call: &Callback) -> Result<OutboundRequest> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Body<'a> {
            delivery_id: &'a str,
            agent: &'a str,
            session_id: &'a str,
            message: Option<Box<RawValue>>,
            usage: TurnUsage,
            finish_reason: TurnFinish,
            steps: usize,
        }
        let config = load_config(self.db, self.deployed)?;
        let place = place_of(self.outbound, config.on_turn_end.as_ref())?;
        let delivery_id =
            Delivery::of(self.policy, self.agent_name, &call.session_id).seal(&call.id);
        let message = self.find_message(call)?.map(json::raw);
        let body = Body {
            delivery_id: &delivery_id,
            agent: self.agent_name,
            session_id: call.session_id.as_str(),
            message: message.transpose()?,
            usage: call.report.spent.usage(),
            finish_reason: call.report.finish_reason,
            steps: call.report.steps,
        };
        let body = json::encode(&body)?;
        let now_s = (self.host.now_ms() / 1000).to_string();
        let mut headers = vec![
            (ID_HEADER.to_owned(), delivery_id.clone()),
            (TIME_HEADER.to_owned(), now_s.clone()),
        ];
        // A Worker without a secret has nothing to sign with. While a secret is replaced,
        // there are two signatures, as Standard Webhooks says.
        let content = format!("{delivery_id}.{now_s}.{body}");
        let secrets = self.policy.secrets();
        let signatures: Vec<String> = secrets
            .map(|secret| format!("v1,{}", STANDARD.encode(secret.sign_callback(&content))))
            .collect();
        if !signatures.is_empty() {
            headers.push((SIGNATURE_HEADER.to_owned(), signatures.join(" ")));
        }
        Ok(OutboundRequest {
            purpose: CallPurpose::Tool,
            place,
            headers,
            body,
            limits: LIMITS,
        })
    }

    /// The answer as it is now; `None`: the turn said nothing, or its answer is deleted or
    /// too long to be told.
    fn find_message(self, call: &Callback) -> Result<Option<String>> {
        if !session_exists(self.db, &call.session_id)? {
            return Ok(None);
        }
        let id = Id::parse(call.message_id.clone()).map_err(Error::storage)?;
        let found = find_message_around(self.db, &call.session_id, &id);
        Ok(found.ok().flatten().map(|message| message.json))
    }

    fn forget(self, call: &Callback) -> Result<()> {
        let sql = "DELETE FROM cf_agents_callbacks WHERE number = ?1";
        self.db.run(sql, &[call.number.into()])
    }

    /// Notes a try that failed, and plans the next one.
    fn put_off(self, call: &Callback, reason: &str) -> Result<()> {
        let attempts = call.attempts + 1;
        let now_ms = self.host.now_ms();
        let pause_ms = usize::try_from(call.attempts)
            .ok()
            .and_then(|index| PAUSES_MS.get(index).copied());
        atomically(self.db, || {
            let sql = "SELECT count(*) FROM cf_agents_callbacks WHERE failed_at IS NULL";
            let pending: i64 = find_value(self.db, sql, &[])?.unwrap_or(0);
            let is_given_up = pause_ms.is_none() || pending > MAX_PENDING;
            self.db.run(
                "UPDATE cf_agents_callbacks
                    SET attempts = ?2,
                        due_at = ?3,
                        reason = ?4,
                        failed_at = ?5
                  WHERE number = ?1",
                &[
                    call.number.into(),
                    attempts.into(),
                    (now_ms + pause_ms.unwrap_or(0)).into(),
                    reason.into(),
                    is_given_up.then_some(now_ms).into(),
                ],
            )?;
            if is_given_up {
                self.db.run(
                    "DELETE FROM cf_agents_callbacks
                      WHERE failed_at IS NOT NULL
                        AND number NOT IN (SELECT number
                                             FROM cf_agents_callbacks
                                            WHERE failed_at IS NOT NULL
                                            ORDER BY failed_at DESC, number DESC
                                            LIMIT ?1)",
                    &[MAX_FAILED.into()],
                )?;
            }
            Ok(())
        })
    }
}

/// The address of the calls in the configuration. The operator's list of origins may have
/// become shorter since then.
fn place_of(outbound: &dyn Outbound, callback: Option<&TurnEndCallback>) -> Result<Endpoint> {
    let callback = callback.ok_or_else(nobody)?;
    match (&callback.service, &callback.url) {
        (Some(binding), None) => {
            if !outbound.is_bound(binding.as_str()) {
                return Err(CallFailure::not_configured(binding.as_str()));
            }
            Ok(Endpoint::Service {
                binding: binding.as_str().to_owned(),
                path: String::new(),
            })
        }
        (None, Some(url)) => {
            check_url(outbound, url)?;
            Ok(Endpoint::Url(url.clone()))
        }
        _ => Err(nobody()),
    }
}

/// Checks that one place is named.
pub fn check_shape(callback: &TurnEndCallback) -> Result<()> {
    match callback.service.is_some() == callback.url.is_some() {
        true => Err(nobody()),
        false => Ok(()),
    }
}

fn nobody() -> Error {
    Error::invalid(
        "onTurnEnd",
        "`onTurnEnd` is either a `service` binding or a `url`: give one of them.",
    )
}

/// Checks that turns may call this service back.
pub fn check_callback(outbound: &dyn Outbound, callback: &TurnEndCallback) -> Result<()> {
    let named = |error: Error| {
        let field = match error.details.get("field").and_then(|field| field.as_str()) {
            Some("url") => "onTurnEnd.url",
            _ => "onTurnEnd",
        };
        error.with("field", field)
    };
    place_of(outbound, Some(callback)).map(drop).map_err(named)
}

/// The calls that were given up, newest first, and how many wait for a try.
pub fn load_failed(db: &dyn Database) -> Result<(Vec<FailedCallback>, i64)> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_callbacks
          WHERE failed_at IS NOT NULL
          ORDER BY failed_at DESC, number DESC
          LIMIT ?1",
        FailedCallback::COLUMNS
    );
    let failed = load(db, &sql, &[MAX_FAILED.into()])?;
    let sql = "SELECT count(*)
                 FROM (SELECT 1
                         FROM cf_agents_callbacks
                        WHERE failed_at IS NULL
                        LIMIT ?1)";
    let waiting = find_value(db, sql, &[(2 * MAX_PENDING).into()])?;
    Ok((failed, waiting.unwrap_or(0)))
}
