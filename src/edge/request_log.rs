//! Writes one line per request to the Worker's log, and a data point to the data set
//! `METRICS` if it is bound. Neither can fail or delay a request.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use wasm_bindgen::prelude::*;
use worker::{Env, console_warn};

use super::env;
use super::host::Runtime;
use super::storage::Statements;
use api::request_line::{LineSampler, LoggedRequests, RequestLine, Sampled, name_of};
use api::route::Route;
use base::error::Error;
use base::host::Host as _;
use base::settings::Setting;
use base::trace::Trace;
use base::trace::header::render_hex;

#[wasm_bindgen(module = "/src/edge/glue.js")]
extern "C" {
    /// Neither throws nor blocks.
    fn report(line: Option<&str>, dataset: &JsValue, point: Option<&str>);
}

/// Where lines and points are written.
pub struct RequestLog {
    sampler: LineSampler,
    /// The data set; `undefined` if none is bound.
    dataset: JsValue,
}

impl RequestLog {
    /// The isolate's request log. The environment is read once, because an isolate has only
    /// one.
    pub fn of(env: &Env) -> Rc<Self> {
        thread_local! {
            static LOG: OnceCell<Rc<RequestLog>> = const { OnceCell::new() };
        }
        LOG.with(|log| Rc::clone(log.get_or_init(|| Rc::new(Self::read(env)))))
    }

    fn read(env: &Env) -> Self {
        let setting = env::find_text(env, Setting::RequestLog);
        let logged = LoggedRequests::parse(setting.as_deref());
        if logged.is_none() {
            console_warn!(
                "REQUEST_LOG is not `auto`, `all`, `failures`, `off` or a number from 0 to 1. \
                 Every request is logged."
            );
        }
        Self {
            sampler: LineSampler::new(logged.unwrap_or(LoggedRequests::All)),
            dataset: env::find(env, Setting::Metrics.name()).unwrap_or_default(),
        }
    }

    fn is_off(&self) -> bool {
        self.sampler.is_off() && self.dataset.is_undefined()
    }

    fn write(&self, line: &RequestLine<'_>, is_logged: bool) {
        let text = is_logged.then(|| line.to_json().ok()).flatten();
        let point = (!self.dataset.is_undefined()).then(|| line.to_point());
        report(text.as_deref(), &self.dataset, point.as_deref());
    }
}

/// The log entry of a request while it is handled.
pub struct RequestNote {
    log: Rc<RequestLog>,
    operation: Cell<&'static str>,
    /// The id of the request's trace, if it has one.
    trace_id: OnceCell<String>,
    /// `None`: the duration is not measured.
    began_at_ms: Option<i64>,
}

impl RequestNote {
    pub fn begin(log: &Rc<RequestLog>) -> Self {
        Self {
            log: Rc::clone(log),
            operation: Cell::new("unknown"),
            trace_id: OnceCell::new(),
            // Reading the clock costs another call into JavaScript.
            began_at_ms: (!log.is_off()).then(|| Runtime.now_ms()),
        }
    }

    /// For a request that is answered immediately: its duration is not reported.
    pub fn immediate(log: &Rc<RequestLog>) -> Self {
        Self {
            log: Rc::clone(log),
            operation: Cell::new("unknown"),
            trace_id: OnceCell::new(),
            began_at_ms: None,
        }
    }

    pub fn set_route(&self, route: &Route) {
        self.operation.set(name_of(route));
    }

    pub fn set_operation(&self, operation: &'static str) {
        self.operation.set(operation);
    }

    pub fn set_trace(&self, trace: Option<&Trace>) {
        if let Some(trace) = trace
            && !self.log.is_off()
        {
            self.trace_id.get_or_init(|| render_hex(&trace.id.0));
        }
    }

    /// Writes the line of an answer whose body starts now.
    pub fn answered(&self, agent: &str, status: u16, cost: Option<&Statements>) {
        self.end(agent, status, None, cost);
    }

    /// Writes the line of a refusal or a failure.
    pub fn refused(&self, agent: &str, error: &Error, cost: Option<&Statements>) {
        self.end(agent, error.code.status(), Some(error.code.name()), cost);
    }

    fn end(&self, agent: &str, status: u16, code: Option<&'static str>, cost: Option<&Statements>) {
        let log = &self.log;
        if log.is_off() {
            return;
        }
        let began_at_ms = self.began_at_ms.unwrap_or_else(|| Runtime.now_ms());
        let sampled = log.sampler.sample(status, began_at_ms, &Runtime);
        if sampled == Sampled::No && log.dataset.is_undefined() {
            return;
        }
        let rows = |rows: fn(&Statements) -> f64| cost.map_or(0, |cost| rows(cost) as i64);
        let line = RequestLine {
            operation: self.operation.get(),
            agent,
            duration_ms: self.began_at_ms.map_or(0, |at_ms| Runtime.now_ms() - at_ms),
            rows_read: rows(Statements::rows_read),
            rows_written: rows(Statements::rows_written),
            status,
            code,
            trace_id: self.trace_id.get().map(String::as_str),
            share: match sampled {
                Sampled::Share(share) => Some(share),
                Sampled::No | Sampled::Itself => None,
            },
        };
        log.write(&line, sampled != Sampled::No);
    }
}
