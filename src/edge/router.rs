//! The Worker in front: finds the agent's object by name and forwards the
//! request untouched. A stranger is turned away here, before an object is
//! woken; the object asks again, since it can be reached directly.

use wasm_bindgen::JsValue;
use worker::{Context, Env, event, web_sys};

use super::{http, identify, policy, site};
use crate::api::{admit, route};
use crate::error::Error;

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
    let route = match route::parse(&request.method(), &request.url()) {
        Ok(route) => route,
        Err(error) => return http::refuse(&error, None),
    };
    if !site::is_public(&route) {
        let caller = match identify(&policy(env), &route, &request) {
            Ok(caller) => caller,
            Err(error) => return http::refuse(&error, None),
        };
        if let Err(error) = admit(&caller, &route) {
            http::discard(&request).await;
            return http::refuse(&error, None);
        }
    }
    if let Some(response) = site::serve(&route) {
        return response;
    }
    match forward(request, env, route.agent().unwrap_or_default()).await {
        Ok(response) => Ok(response),
        Err(error) => http::refuse(&Error::storage(error.to_string()), None),
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
