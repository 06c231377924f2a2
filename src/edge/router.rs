//! The Worker in front: finds the agent's object by name and forwards the request
//! unchanged. It refuses a caller without access before an object is woken. The
//! object checks again, because it can be called directly, too.
//!
//! A forwarded request needs no future here: the Worker returns the promise of the
//! object's answer as it is.

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use worker::{Env, event, web_sys};

use super::http::ResponseResult;
use super::{cors, http, identify, policy, site, tasks};
use crate::access::{CorsPolicy, Policy};
use crate::api::door::admit;
use crate::api::route;
use crate::base::error::Error;
use crate::base::settings::Setting;

#[wasm_bindgen]
extern "C" {
    type Namespace;

    #[wasm_bindgen(method, catch, js_name = getByName)]
    fn get_by_name(this: &Namespace, name: &str) -> Result<Stub, JsValue>;

    type Stub;

    #[wasm_bindgen(method, catch)]
    fn fetch(this: &Stub, request: &web_sys::Request) -> Result<Answer, JsValue>;

    /// The promise of an answer.
    type Answer;

    #[wasm_bindgen(method)]
    fn catch(this: &Answer, refuse: &Refuse) -> Promise;

    type Refuse;

    #[wasm_bindgen(method)]
    fn bind(this: &Refuse, receiver: &JsValue, is_on: bool, origin: Option<String>) -> Refuse;
}

thread_local! {
    /// Made once, and bound to the CORS policy of each request. A closure per request
    /// would have to be kept until the answer arrives.
    static REFUSE: Closure<dyn FnMut(bool, Option<String>, JsValue) -> ResponseResult> =
        Closure::new(|is_on, origin, thrown: JsValue| {
            let answer = http::refuse(&lost(&thrown), None)?;
            cors::mark(answer, &CorsPolicy { is_on, origin })
        });
}

#[event(start)]
fn start() {
    console_error_panic_hook::set_once();
}

/// Bound by hand: the worker crate's macro would wrap this function in a future.
#[wasm_bindgen]
pub fn fetch(request: web_sys::Request, env: Env, _context: JsValue) -> Promise {
    let policy = policy(&env);
    let shared = cors::find(&policy, &request);
    if let Some(answer) = cors::answer_preflight(&shared, &request) {
        return settled(answer);
    }
    match answer(request, &env, &policy) {
        // The object marks its own answers. If it fails to answer, `REFUSE` does.
        RoutedAnswer::ByObject(answer) => REFUSE.with(|refuse| {
            let refuse: &Refuse = refuse.as_ref().unchecked_ref();
            answer.catch(&refuse.bind(&JsValue::UNDEFINED, shared.is_on, shared.origin))
        }),
        RoutedAnswer::Here(answer) => {
            settled(answer.and_then(|answer| cors::mark(answer, &shared)))
        }
        RoutedAnswer::Refused(request, error) => tasks::promise(async move {
            http::discard(&request).await;
            let answer = http::refuse(&error, None)?;
            cors::mark(answer, &shared).map(JsValue::from)
        }),
    }
}

enum RoutedAnswer {
    Here(ResponseResult),
    /// Refused, once the rest of its body is discarded.
    Refused(web_sys::Request, Error),
    ByObject(Answer),
}

fn answer(request: web_sys::Request, env: &Env, policy: &Policy) -> RoutedAnswer {
    let refused = |error: &Error| RoutedAnswer::Here(http::refuse(error, None));
    let route = match route::parse(&request.method(), &request.url()) {
        Ok(route) => route,
        Err(error) => return refused(&error),
    };
    if !site::is_public(&route) {
        let caller = match identify(policy, &route, &request) {
            Ok(caller) => caller,
            Err(error) => return refused(&error),
        };
        if let Err(error) = admit(&caller, &route) {
            return RoutedAnswer::Refused(request, error);
        }
    }
    if let Some(response) = site::serve(&route) {
        return RoutedAnswer::Here(response);
    }
    match forward(&request, env, route.agent().unwrap_or_default()) {
        Ok(answer) => RoutedAnswer::ByObject(answer),
        Err(error) => refused(&lost(&error)),
    }
}

fn forward(request: &web_sys::Request, env: &Env, agent: &str) -> Result<Answer, JsValue> {
    let agents = js_sys::Reflect::get(env, &Setting::SessionAgent.name().into())?;
    agents
        .unchecked_into::<Namespace>()
        .get_by_name(agent)?
        .fetch(request)
}

fn lost(thrown: &JsValue) -> Error {
    Error::storage(format!("the object gave no answer: {thrown:?}"))
}

fn settled(answer: ResponseResult) -> Promise {
    match answer {
        Ok(answer) => Promise::resolve(&JsValue::from(answer)),
        Err(thrown) => Promise::reject(&thrown),
    }
}
