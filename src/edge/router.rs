//! The Worker in front: finds the agent's object by name and forwards the
//! request untouched. A stranger is turned away here, before an object is
//! woken; the object asks again, since it can be reached directly.

use wasm_bindgen::JsValue;
use worker::{Context, Env, event, web_sys};

use super::{http, identify, policy, sharing, site};
use crate::access::Policy;
use crate::api::door::admit;
use crate::api::route;
use crate::base::error::Error;

#[event(start)]
fn start() {
    console_error_panic_hook::set_once();
}

#[event(fetch)]
async fn fetch(
    request: web_sys::Request,
    env: Env,
    _context: Context,
) -> worker::Result<web_sys::Response> {
    Ok(handle(request, &env).await?)
}

async fn handle(request: web_sys::Request, env: &Env) -> Result<web_sys::Response, JsValue> {
    let policy = policy(env);
    let shared = sharing::find(&policy, &request);
    if let Some(answer) = sharing::answer_preflight(&shared, &request) {
        return answer;
    }
    match answer(request, env, &policy).await? {
        // The object has marked it.
        Answered::ByObject(response) => Ok(response),
        Answered::Here(response) => sharing::mark(response, &shared),
    }
}

enum Answered {
    Here(web_sys::Response),
    ByObject(web_sys::Response),
}

async fn answer(
    request: web_sys::Request,
    env: &Env,
    policy: &Policy,
) -> Result<Answered, JsValue> {
    let route = match route::parse(&request.method(), &request.url()) {
        Ok(route) => route,
        Err(error) => return http::refuse(&error, None).map(Answered::Here),
    };
    if !site::is_public(&route) {
        let caller = match identify(policy, &route, &request) {
            Ok(caller) => caller,
            Err(error) => return http::refuse(&error, None).map(Answered::Here),
        };
        if let Err(error) = admit(&caller, &route) {
            http::discard(&request).await;
            return http::refuse(&error, None).map(Answered::Here);
        }
    }
    if let Some(response) = site::serve(&route) {
        return response.map(Answered::Here);
    }
    match forward(request, env, route.agent().unwrap_or_default()).await {
        Ok(response) => Ok(Answered::ByObject(response)),
        Err(error) => http::refuse(&Error::storage(error.to_string()), None).map(Answered::Here),
    }
}

async fn forward(
    request: web_sys::Request,
    env: &Env,
    agent: &str,
) -> worker::Result<web_sys::Response> {
    let stub = env.durable_object("SESSION_AGENT")?.get_by_name(agent)?;
    let response = stub.fetch_with_request(request.into()).await?;
    Ok(response.into())
}
