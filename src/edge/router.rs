//! The Worker in front: finds the agent's object by name and forwards the request unchanged. It
//! rejects a caller without access before an object is woken. The object checks again, because it
//! can be called directly, too.
//!
//! A forwarded request needs no future here: the Worker returns the promise of the
//! object's answer as it is.

use std::rc::Rc;

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use worker::{Env, event, web_sys};

use super::front::{self, FrontTurn};
use super::host::Runtime;
use super::http::{HttpRequest, ResponseResult};
use super::outbound::Bindings;
use super::request_log::{RequestLog, RequestNote};
use super::rpc::{self, RpcCall};
use super::stub::{Answer, find_object};
use super::{cors, health, http, policy, tasks};
use access::{self, Caller, CorsPolicy, Policy, TokenScope};
use api::admission::admit;
use api::authorization::{accepts_issuer, check_return, describe_client};
use api::request::{EntryPoint, identify};
use api::route::{self, Route};
use api::tracing::trace_of_refused;
use base::budget::Reservation;
use base::error::{self, Code, Error};
use base::json;
use base::trace::{TRACEPARENT, Trace, run_in};
use directory::list::list_agents;

#[wasm_bindgen]
extern "C" {
    type Refuse;

    #[wasm_bindgen(method)]
    fn bind(this: &Refuse, receiver: &JsValue, is_on: bool, origin: Option<String>) -> Function;
}

thread_local! {
    /// Made once, and bound to the CORS policy of each request. A closure per request would have to be
    /// retained until the answer arrives.
    static REFUSE: Closure<dyn FnMut(bool, Option<String>, JsValue) -> ResponseResult> =
        Closure::new(|is_on, origin, thrown: JsValue| {
            let answer = http::refuse(&lost(&thrown), None)?;
            cors::mark(answer, &CorsPolicy { is_on, origin })
        });

    /// Passes the object's refusal on. Any other error means that the object did not answer.
    static REFUSE_CALL: Closure<dyn FnMut(JsValue) -> Result<JsValue, JsValue>> =
        Closure::new(|thrown: JsValue| {
            Err(if rpc::is_refusal(&thrown) || rpc::is_of_older_build(&thrown) { thrown } else { rpc::to_thrown(&lost(&thrown)) })
        });
}

#[event(start)]
fn start() {
    console_error_panic_hook::set_once();
}

/// Bound by hand: the worker crate's macro would wrap this function in a future.
///
/// `is_granted`: the shim has verified a token of the issuer that the Worker trusts, for this
/// agent's MCP address. The object verifies it again.
#[wasm_bindgen]
pub fn fetch(request: web_sys::Request, env: Env, context: JsValue, is_granted: bool) -> Promise {
    let policy = policy(&env);
    let shared = cors::find(&policy, &request);
    if let Some(answer) = cors::answer_preflight(&shared, &request) {
        return settled(answer);
    }
    match answer(request, &env, &policy, is_granted) {
        // The object marks its own answers. If it fails to answer, `REFUSE` does.
        RoutedAnswer::ByObject(answer) => REFUSE.with(|refuse| {
            let refuse: &Refuse = refuse.as_ref().unchecked_ref();
            answer.catch(&refuse.bind(&JsValue::UNDEFINED, shared.is_on, shared.origin))
        }),
        RoutedAnswer::Here(answer) => {
            settled(answer.and_then(|answer| cors::mark(answer, &shared)))
        }
        RoutedAnswer::Waiting(turn) => tasks::promise(async move {
            match turn.answer(&env, &policy, &context).await {
                Ok(answer) => Ok(answer.into()),
                Err(thrown) => {
                    let answer = http::refuse(&lost(&thrown), None)?;
                    cors::mark(answer, &shared).map(JsValue::from)
                }
            }
        }),
        RoutedAnswer::Listed(list) => tasks::promise(async move {
            let answer = list.answer(&env).await?;
            cors::mark(answer, &shared).map(JsValue::from)
        }),
        RoutedAnswer::Refused(head, error, trace) => tasks::promise(async move {
            http::discard(&head.inner).await;
            let refused = http::refuse_at(&head.url, &error, None);
            let answer = name_trace(refused, trace.as_ref())?;
            cors::mark(answer, &shared).map(JsValue::from)
        }),
    }
}

/// A call over Workers RPC. The texts are passed on as they are.
///
/// `is_request`: the object returns its refusal as data, which is passed on, too. This function
/// throws its own refusals either way: shim.mjs converts them to data.
#[wasm_bindgen]
pub fn call(
    agent: JsValue,
    operation: JsValue,
    json: JsValue,
    options: JsValue,
    env: Env,
    is_request: bool,
) -> Promise {
    // The object logs a call that it receives.
    let note = RequestNote::immediate(&RequestLog::of(&env));
    let reservation = match admit_call(&agent, &operation, &json, &options, &env, &note) {
        Ok(reservation) => reservation,
        Err(error) => {
            let agent = rpc::parse_agent(&agent).unwrap_or_default();
            note.refused(&agent, &error, None);
            return Promise::reject(&rpc::to_thrown(&error));
        }
    };
    let answer = find_object(&env, &agent)
        .and_then(|object| {
            if is_request {
                object.request(&operation, &json, &options)
            } else {
                object.call(&operation, &json, &options)
            }
        })
        .map(|answer| REFUSE_CALL.with(|refuse| answer.catch_call(refuse.as_ref())));
    match (answer, reservation) {
        (Err(thrown), _) => Promise::reject(&rpc::to_thrown(&lost(&thrown))),
        (Ok(answer), None) => answer,
        (Ok(answer), Some(reservation)) => tasks::promise(async move {
            let answer = JsFuture::from(answer).await;
            drop(reservation);
            answer
        }),
    }
}

/// Rejects a caller without access, and arguments of a wrong type, before an object is woken.
/// `Some`: the memory that the call uses here.
fn admit_call(
    agent: &JsValue,
    operation: &JsValue,
    json: &JsValue,
    options: &JsValue,
    env: &Env,
    note: &RequestNote,
) -> error::Result<Option<Reservation>> {
    let agent = rpc::parse_agent(agent);
    let call = RpcCall::parse(operation, json.clone(), options, note);
    let (agent, call) = (agent?, call?);
    let route = Route::operation(&agent, call.operation);
    let token = call.options.token.as_deref();
    let policy = policy(env);
    let caller = access::identify(&policy, &Runtime, Some(&agent), token);
    let admission = match &caller {
        Ok(caller) => admit(caller, &route),
        Err(error) => Err(error.clone()),
    };
    let reserved = admission
        .and_then(|admission| rpc::reserve_forward(call.json.as_ref(), admission.max_body_bytes));
    reserved.inspect_err(|_| {
        let traceparent = call.options.traceparent.as_deref();
        note.set_trace(trace_of_refused(caller.as_ref().ok(), traceparent, &Runtime).as_ref());
    })
}

/// Adds the trace to an answer.
fn name_trace(answer: ResponseResult, trace: Option<&Trace>) -> ResponseResult {
    let answer = answer?;
    if let Some(trace) = trace {
        http::name_trace(&answer, trace)?;
    }
    Ok(answer)
}

enum RoutedAnswer {
    Here(ResponseResult),
    /// Refused, once the rest of its body is discarded.
    Refused(HttpRequest, Error, Option<Trace>),
    ByObject(Answer),
    /// A turn whose models this Worker waits for.
    Waiting(FrontTurn),
    /// A page of the directory's list.
    Listed(AgentList),
}

/// A request to the directory.
struct AgentList {
    prefix: String,
    limit: usize,
    cursor: String,
    note: RequestNote,
    trace: Option<Rc<Trace>>,
}

impl AgentList {
    async fn answer(self, env: &Env) -> ResponseResult {
        let outbound = Bindings::new(env);
        let listing = list_agents(&outbound, &self.prefix, &self.cursor, self.limit);
        let page = run_in(self.trace.clone(), listing).await;
        let answer = match page.and_then(|page| json::encode(&page)) {
            Ok(page) => {
                self.note.answered("", 200, None);
                http::respond(200, &page.as_str().into(), None, &[])
            }
            Err(error) => {
                self.note.refused("", &error, None);
                http::refuse(&error, None)
            }
        };
        name_trace(answer, self.trace.as_deref())
    }
}

fn answer(request: web_sys::Request, env: &Env, policy: &Policy, is_granted: bool) -> RoutedAnswer {
    let head = HttpRequest::new(request);
    // The object logs a request that it receives.
    let note = RequestNote::immediate(&RequestLog::of(env));
    // Most requests are forwarded to an object, which reads the header itself. Only objects send
    // spans.
    let begin_trace = |caller: Option<&Caller>| {
        trace_of_refused(caller, head.find_header(TRACEPARENT).as_deref(), &Runtime)
    };
    let refused = |caller: Option<&Caller>, agent: Option<&str>, error: &Error| {
        let trace = begin_trace(caller);
        note.set_trace(trace.as_ref());
        note.refused(agent.unwrap_or_default(), error, None);
        RoutedAnswer::Here(name_trace(
            http::refuse_at(&head.url, error, None),
            trace.as_ref(),
        ))
    };
    let route = match route::parse(&head.inner.method(), &head.url) {
        Ok(route) => route,
        Err(error) => return refused(None, None, &error),
    };
    note.set_route(&route);
    match &route {
        Route::Health => {
            note.answered("", 200, None);
            return RoutedAnswer::Here(health::answer());
        }
        Route::OAuthClient => {
            return match describe_client(&Bindings::new(env)) {
                Some(description) => {
                    note.answered("", 200, None);
                    RoutedAnswer::Here(http::answer_client(&description))
                }
                None => refused(None, None, &route::no_such_route()),
            };
        }
        Route::OAuthReturn { agent, returned } => {
            if let Err(error) = check_return(&Bindings::new(env), agent, returned) {
                return refused(None, None, &error);
            }
        }
        _ => {}
    }
    let entry = EntryPoint {
        policy,
        host: &Runtime,
        sampler: None,
    };
    let caller = match identify(&entry, &route, &head) {
        Ok(caller) => caller,
        Err(error)
            if is_granted
                && error.code == Code::Unauthorized
                && accepts_issuer(&Bindings::new(env), &route) =>
        {
            Caller::Scoped(TokenScope::default())
        }
        Err(error) => return refused(None, route.agent(), &error),
    };
    if let Route::Agents {
        prefix,
        limit,
        cursor,
    } = route
    {
        return match access::permit_directory(&caller) {
            Ok(()) => {
                let trace = begin_trace(Some(&caller)).map(Rc::new);
                note.set_trace(trace.as_deref());
                RoutedAnswer::Listed(AgentList {
                    prefix,
                    limit,
                    cursor,
                    note,
                    trace,
                })
            }
            Err(error) => refused(Some(&caller), None, &error),
        };
    }
    let agent = route.agent().unwrap_or_default();
    if let Err(error) = admit(&caller, &route) {
        let trace = begin_trace(Some(&caller));
        note.set_trace(trace.as_ref());
        note.refused(agent, &error, None);
        return RoutedAnswer::Refused(head, error, trace);
    }
    let object = find_object(env, &JsValue::from(agent));
    if matches!(route, Route::Chat { .. })
        && let Some(signature) = front::sign(env, policy, agent)
        && let Ok(object) = object
    {
        return RoutedAnswer::Waiting(FrontTurn {
            request: head.inner,
            object,
            agent: agent.to_owned(),
            signature,
        });
    }
    match object.and_then(|object| object.fetch(&head.inner)) {
        Ok(answer) => RoutedAnswer::ByObject(answer),
        Err(error) => refused(Some(&caller), Some(agent), &lost(&error)),
    }
}

fn lost(thrown: &JsValue) -> Error {
    Error::storage(format!("the object did not respond: {thrown:?}"))
}

fn settled(answer: ResponseResult) -> Promise {
    match answer {
        Ok(answer) => Promise::resolve(&JsValue::from(answer)),
        Err(thrown) => Promise::reject(&thrown),
    }
}
