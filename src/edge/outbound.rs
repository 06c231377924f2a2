//! Implements the [`Outbound`] trait with the Worker's bindings. They are looked up by name
//! at run time, because the operator configures which services and buckets exist.
//!
//! Their functions are also called by name. The worker crate's bucket panics if a field is
//! missing, and its Workers AI accepts no signal. One import per function would make the
//! module larger.
//!
//! Cancellation: a fetch (to a URL, a service or another agent) and a call of Workers AI take an
//! abort signal, which closes the connection at any stage. The bucket accepts no signal: it may
//! still carry out the request, and a late answer is canceled unread.

mod archive;
mod bodies;
mod promise;
mod reflect;

use std::cell::OnceCell;
use std::rc::Rc;

use js_sys::{Array, JSON, Object, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use worker::{Env, console_warn, web_sys};

use self::bodies::{BufferedBody, InFlightCall, StreamedBody, within};
use self::promise::{cancel_stream, settle};
pub use self::reflect::describe;
use self::reflect::{description, failed, get, method, object, raw_method, set};
use super::env;
use super::host::{Runtime, pause};
use api::defaults;
use base::host::Host as _;
use base::leased_calls::{run_ai_leased, send_leased};
use base::outbound::Archive;
use base::outbound::{
    BucketObject, ByteChunks, CallFailure, CallLimits, CallPurpose, ClassNotice, Clock, Endpoint,
    LINE, ListedObject, LocalBoxFuture, OWN_CLASS, ObjectListing, Outbound, OutboundRequest,
    OutboundResponse, PendingCall, PutCondition, RequestForm, WriteLocks, in_time, may_start,
};
use base::owner::Owner;
use base::settings::Setting;
use base::slots::{Slot, Slots};
use base::tokens::TokenCounter;
use base::trace::calls::record_call;
use base::trace::export::make_queue;
use base::trace::span::SpanQueue;
use base::trace::{self, Trace};
use chat::run::deployed::Deployed;

const BUCKET: &str = Setting::SkillsBucket.name();
const AGENTS: &str = Setting::SessionAgent.name();
const AI: &str = Setting::Ai.name();
const DIRECTORY: &str = Setting::Directory.name();

#[wasm_bindgen(raw_module = "./agent-defaults.js")]
extern "C" {
    /// The text of `agent-defaults.json`, which the build placed next to the module.
    #[wasm_bindgen(js_name = agentDefaults)]
    fn agent_defaults() -> Option<String>;
}

/// Calls a function of a runtime value, and awaits its promise.
pub async fn call(
    target: &JsValue,
    function: &str,
    argument: &JsValue,
) -> Result<JsValue, JsValue> {
    let promised = raw_method(target, function, std::slice::from_ref(argument))?;
    JsFuture::from(js_sys::Promise::resolve(&promised)).await
}

pub struct Bindings {
    env: JsValue,
    /// Slots for this object's calls: those that wait for their response head, and those
    /// that wait to be sent.
    line: Slots<PendingCall>,
    writers: WriteLocks,
    /// The deployed settings. If a class that extends this one adds tools and blocks, each
    /// object has its own; otherwise they are parsed once per isolate.
    deployed: OnceCell<Rc<Deployed>>,
    /// The spans that wait to be sent. Created on first use.
    spans: OnceCell<Option<SpanQueue>>,
}

impl Bindings {
    pub fn new(env: &Env) -> Self {
        Self {
            env: env.clone().into(),
            line: Slots::new(may_start, LINE),
            writers: WriteLocks::default(),
            deployed: OnceCell::new(),
            spans: OnceCell::new(),
        }
    }

    pub fn deployed(&self) -> &Deployed {
        thread_local! {
            static OF_ISOLATE: OnceCell<Rc<Deployed>> = const { OnceCell::new() };
        }
        self.deployed.get_or_init(|| {
            if self.is_bound(OWN_CLASS) {
                self.read_deployed(" and the class")
            } else {
                OF_ISOLATE.with(|deployed| {
                    let read = || self.read_deployed("");
                    Rc::clone(deployed.get_or_init(read))
                })
            }
        })
    }

    /// Reads the deployed settings. Invalid parts are omitted and logged, for the author of
    /// a class.
    fn read_deployed(&self, further: &str) -> Rc<Deployed> {
        let deployed = defaults::read(self, agent_defaults().as_deref());
        for problem in &deployed.memory.config.problems {
            let (source, field, why) = (&problem.source, &problem.field, &problem.message);
            console_warn!("session-agent: {source}{further}: {field}: {why}");
        }
        Rc::new(deployed)
    }

    /// The token counter of a class that extends this one, if it has one.
    pub fn token_counter(&self) -> Option<TokenCounter> {
        let class = self.binding(OWN_CLASS).ok()?;
        let count = get(&class, "count").dyn_into::<js_sys::Function>().ok()?;
        Some(Rc::new(move |text: &str| {
            let count = count.call1(&JsValue::UNDEFINED, &text.into()).ok()?;
            // The class returns a whole number, or nothing.
            count.as_f64().map(|count| count as i64)
        }))
    }

    fn binding(&self, name: &str) -> Result<JsValue, CallFailure> {
        let missing = || CallFailure::NotConfigured {
            binding: name.to_owned(),
        };
        let binding = env::find(&self.env, name);
        binding.filter(JsValue::is_object).ok_or_else(missing)
    }

    /// Waits until a call with a body of this length may be sent. The slot is released when
    /// the response head arrives; the clock runs until the call ends.
    async fn leave(
        &self,
        purpose: CallPurpose,
        bytes: usize,
        limits: CallLimits,
    ) -> Result<(Slot<'_, PendingCall>, Clock), CallFailure> {
        let call = PendingCall {
            purpose,
            owner: Owner::current(),
        };
        match in_time(pause(limits.wait_ms), self.line.acquire(call, bytes)).await {
            Some(Ok(slot)) => Ok((slot, Clock::start(limits, Runtime.now_ms()))),
            Some(Err(_)) | None => Err(CallFailure::Overloaded),
        }
    }

    async fn fetch(
        &self,
        call: &OutboundRequest,
        form: RequestForm,
        traced: Option<&Trace>,
        signal: JsValue,
    ) -> Result<JsValue, CallFailure> {
        let (target, url) = match &call.endpoint {
            Endpoint::Url(url) => (js_sys::global().into(), url.clone()),
            Endpoint::Service { binding, path } => {
                (self.binding(binding)?, format!("https://{binding}/{path}"))
            }
            Endpoint::Agent { name, operation } => {
                let agents = self.binding(AGENTS)?;
                let agent = method(&agents, "getByName", &[name.into()])?;
                let name = js_sys::encode_uri_component(name);
                let url = format!("https://agent/agents/session-agent/{name}/rpc/{operation}");
                (agent, url)
            }
            Endpoint::Directory { part } => {
                let parts = self.binding(DIRECTORY)?;
                let object = method(&parts, "getByName", &[part.into()])?;
                let part = js_sys::encode_uri_component(part);
                (object, format!("https://directory/{part}"))
            }
        };
        let (http_method, content_type) = match form {
            RequestForm::Json => ("POST", Some("application/json")),
            RequestForm::Form => ("POST", Some("application/x-www-form-urlencoded")),
            RequestForm::Get => ("GET", None),
        };
        let headers = Object::new();
        if let Some(content_type) = content_type {
            set(&headers, "content-type", &content_type.into())?;
        }
        for (name, value) in trace::headers_of(traced) {
            set(&headers, name, &value.into())?;
        }
        for (name, value) in &call.headers {
            set(&headers, name, &value.into())?;
        }
        let init = object(&[
            ("method", http_method.into()),
            ("headers", headers.into()),
            // An allowed URL must not redirect to one that isn't allowed.
            ("redirect", "manual".into()),
            ("signal", signal),
        ])?;
        // A GET has no body, not even an empty one.
        if form != RequestForm::Get {
            set(&init, "body", &call.body.as_str().into())?;
        }
        let response = method(&target, "fetch", &[url.into(), init.into()])?;
        settle(response).await.map_err(failed)
    }

    async fn bucket(
        &self,
        name: &str,
        args: &[JsValue],
        limits: CallLimits,
    ) -> Result<JsValue, CallFailure> {
        let bucket = self.binding(BUCKET)?;
        let carried = args.iter().filter_map(JsValue::as_string);
        let bytes = carried.map(|text| text.len()).sum();
        let (_slot, clock) = self.leave(CallPurpose::Memory, bytes, limits).await?;
        let call = async { settle(method(&bucket, name, args)?).await.map_err(failed) };
        within(&clock, call).await
    }
}

impl Outbound for Bindings {
    fn writers(&self) -> &WriteLocks {
        &self.writers
    }

    fn find_setting(&self, setting: Setting) -> Option<String> {
        env::find_text(&self.env, setting).filter(|value| !value.is_empty())
    }

    fn find_secret(&self, name: &str) -> Option<String> {
        let secret = env::find(&self.env, name)?.as_string();
        secret.filter(|value| !value.is_empty())
    }

    fn is_bound(&self, binding: &str) -> bool {
        self.binding(binding).is_ok()
    }

    fn spans(&self) -> Option<&SpanQueue> {
        self.spans.get_or_init(|| make_queue(self)).as_ref()
    }

    fn archive(&self) -> Option<&dyn Archive> {
        self.is_bound(Setting::BackupBucket.name()).then_some(self)
    }

    fn notify_class(&self, kind: ClassNotice, render: &dyn Fn() -> String) {
        if let Ok(class) = self.binding(OWN_CLASS) {
            // The class only queues the notice, and acts on it after this code has ended.
            let _ = method(&class, "notice", &[kind.name().into(), render().into()]);
        }
    }

    fn send_as<'a>(
        &'a self,
        form: RequestForm,
        call: OutboundRequest,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>> {
        Box::pin(async move {
            let leased: LocalBoxFuture<'_, _> =
                Box::pin(send_leased(form, &call, self.spans(), &Runtime));
            if let Some(answer) = leased.await {
                return answer;
            }
            let (slot, clock) = match call.endpoint {
                Endpoint::Agent { .. } | Endpoint::Directory { .. } => {
                    (None, Clock::start(call.limits, Runtime.now_ms()))
                }
                Endpoint::Url(_) | Endpoint::Service { .. } => {
                    let bytes = call.body.len();
                    let (slot, clock) = self.leave(call.purpose, bytes, call.limits).await?;
                    (Some(slot), clock)
                }
            };
            let in_flight = InFlightCall::new()?;
            let traced = trace::begin_call(&Runtime);
            let left_at = Runtime.now_ms();
            let fetching = self.fetch(&call, form, traced.as_ref(), in_flight.signal());
            let fetched = within(&clock, fetching).await;
            drop(slot);
            if traced.is_some() {
                let status =
                    |answer: &JsValue| answer.unchecked_ref::<web_sys::Response>().status();
                let times = (left_at, Runtime.now_ms());
                let outcome = fetched.as_ref().map(status);
                record_call(
                    self.spans(),
                    traced.as_ref(),
                    &call.endpoint,
                    times,
                    outcome,
                );
            }
            let response: web_sys::Response = fetched?.unchecked_into();
            let header = |name: &str| response.headers().get(name).ok().flatten();
            let content_type = header("content-type").unwrap_or_default().to_lowercase();
            let bare = content_type.split(';').next().unwrap_or_default().trim();
            Ok(OutboundResponse {
                status: response.status(),
                content_type: bare.to_owned(),
                retry_after: header("retry-after").and_then(|seconds| seconds.parse().ok()),
                session: header("mcp-session-id"),
                challenge: header("www-authenticate"),
                body: match response.body() {
                    Some(stream) => {
                        let limits = call.limits;
                        Box::new(StreamedBody::new(&stream.into(), limits, clock, in_flight)?)
                    }
                    None => Box::new(BufferedBody::of(in_flight, None)),
                },
            })
        })
    }

    fn run_ai<'a>(
        &'a self,
        model: &'a str,
        input: String,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>> {
        Box::pin(async move {
            let leased: LocalBoxFuture<'_, _> =
                Box::pin(run_ai_leased(model, &input, limits, &Runtime));
            if let Some(answer) = leased.await {
                return answer;
            }
            let ai = self.binding(AI)?;
            let (slot, clock) = self.leave(CallPurpose::Model, input.len(), limits).await?;
            let input = JSON::parse(&input).map_err(failed)?;
            let in_flight = InFlightCall::new()?;
            let options = object(&[("signal", in_flight.signal())])?;
            let traced = trace::headers_of(trace::begin_call(&Runtime).as_ref());
            if !traced.is_empty() {
                let headers = Object::new();
                for (name, value) in traced {
                    set(&headers, name, &value.into())?;
                }
                set(&options, "extraHeaders", &headers.into())?;
            }
            let run = async {
                // An error of Workers AI is an answer: its text decides how the call
                // continues.
                let outcome = match raw_method(&ai, "run", &[model.into(), input, options.into()]) {
                    Ok(outcome) => settle(outcome).await,
                    Err(thrown) => Err(thrown),
                };
                Ok(outcome)
            };
            let answer = |status, content_type: &str, body: Box<dyn ByteChunks>| OutboundResponse {
                status,
                content_type: content_type.to_owned(),
                retry_after: None,
                session: None,
                challenge: None,
                body,
            };
            let ran = within(&clock, run).await;
            drop(slot);
            match ran? {
                Ok(outcome) if outcome.is_instance_of::<web_sys::ReadableStream>() => {
                    let body = StreamedBody::new(&outcome, limits, clock, in_flight)?;
                    Ok(answer(200, "text/event-stream", Box::new(body)))
                }
                Ok(outcome) => {
                    let json = JSON::stringify(&outcome).map_err(failed)?;
                    // Each UTF-16 unit takes at least one byte.
                    if json.length() as usize > limits.max_bytes {
                        return Err(CallFailure::TooLarge {
                            max_bytes: limits.max_bytes,
                        });
                    }
                    let body = BufferedBody::of(in_flight, Some(String::from(json).into_bytes()));
                    Ok(answer(200, "application/json", Box::new(body)))
                }
                Err(thrown) => {
                    let cause = describe(&thrown);
                    if cause.contains("run remotely") {
                        return Err(CallFailure::RemoteOnly {
                            binding: AI.to_owned(),
                        });
                    }
                    let body = BufferedBody::of(in_flight, Some(cause.into_bytes()));
                    Ok(answer(500, "text/plain", Box::new(body)))
                }
            }
        })
    }

    fn get_object<'a>(
        &'a self,
        key: &'a str,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<Option<BucketObject>, CallFailure>> {
        Box::pin(async move {
            let stored = self.bucket("get", &[key.into()], limits).await?;
            if stored.is_null() || stored.is_undefined() {
                return Ok(None);
            }
            let bytes = get(&stored, "size").as_f64().unwrap_or_default();
            if bytes > limits.max_bytes as f64 {
                cancel_stream(&stored);
                return Err(CallFailure::TooLarge {
                    max_bytes: limits.max_bytes,
                });
            }
            let clock = Clock::start(limits, Runtime.now_ms());
            let read = async {
                let read = method(&stored, "arrayBuffer", &[])?;
                settle(read).await.map_err(failed)
            };
            let buffer = within(&clock, read).await?;
            Ok(Some(BucketObject {
                bytes: Uint8Array::new(&buffer).to_vec(),
                etag: get(&stored, "etag").as_string().unwrap_or_default(),
                description: description(&stored),
            }))
        })
    }

    fn put_object<'a>(
        &'a self,
        key: &'a str,
        content: String,
        description: Option<&'a str>,
        expected: PutCondition<'a>,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<bool, CallFailure>> {
        Box::pin(async move {
            let options = Object::new();
            if let Some(description) = description {
                let metadata = object(&[("description", description.into())])?;
                set(&options, "customMetadata", &metadata.into())?;
            }
            let condition = match expected {
                PutCondition::Anything => None,
                PutCondition::Nothing => Some(("etagDoesNotMatch", "*")),
                PutCondition::Etag(etag) => Some(("etagMatches", etag)),
            };
            if let Some((name, etag)) = condition {
                let condition = object(&[(name, etag.into())])?;
                set(&options, "onlyIf", &condition.into())?;
            }
            let args = [key.into(), content.into(), options.into()];
            // `put` returns the object, or `null` if the condition didn't hold.
            Ok(!self.bucket("put", &args, limits).await?.is_null())
        })
    }

    fn delete_object<'a>(
        &'a self,
        key: &'a str,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<(), CallFailure>> {
        Box::pin(async move { self.bucket("delete", &[key.into()], limits).await.map(drop) })
    }

    fn list_objects<'a>(
        &'a self,
        prefix: &'a str,
        cursor: Option<&'a str>,
        limit: u32,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<ObjectListing, CallFailure>> {
        Box::pin(async move {
            let options = object(&[
                ("prefix", prefix.into()),
                ("limit", limit.into()),
                ("include", Array::of1(&"customMetadata".into()).into()),
            ])?;
            if let Some(cursor) = cursor {
                set(&options, "cursor", &cursor.into())?;
            }
            let listing = self.bucket("list", &[options.into()], limits).await?;
            let objects = Array::from(&get(&listing, "objects"));
            Ok(ObjectListing {
                objects: objects
                    .iter()
                    .map(|listed| ListedObject {
                        key: get(&listed, "key").as_string().unwrap_or_default(),
                        bytes: get(&listed, "size").as_f64().unwrap_or_default() as i64,
                        description: description(&listed),
                    })
                    .collect(),
                cursor: get(&listing, "cursor").as_string(),
            })
        })
    }

    fn sleep<'a>(&'a self, ms: i64) -> LocalBoxFuture<'a, ()> {
        Box::pin(pause(ms))
    }
}
