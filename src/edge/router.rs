//! The Worker in front: finds the agent's object by name and forwards the
//! request untouched. A stranger is turned away here, before an object is
//! woken; the object asks again, since it can be reached directly.

use serde_json::json;
use wasm_bindgen::JsValue;
use worker::{Context, Env, event, web_sys};

use super::host::Runtime;
use super::{http, policy};
use crate::access;
use crate::api::OPENAPI_JSON;
use crate::api::route::{self, Route};
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
    if let Route::Health = route {
        return http::respond(200, &health().into(), None, &[]);
    }
    if let Route::Console = route {
        return http::respond(
            200,
            &CONSOLE.to_owned().into(),
            None,
            &[("content-type", "text/html; charset=utf-8")],
        );
    }
    let authorization = http::find_header(&request, "authorization");
    let bearer = access::find_bearer(authorization.as_deref());
    if let Err(error) = access::identify(
        &policy(env),
        &Runtime,
        route.agent().unwrap_or_default(),
        bearer,
    ) {
        return http::refuse(&error, None);
    }
    match route.agent() {
        None => http::respond(200, &OPENAPI_JSON.to_owned().into(), None, &[]),
        Some(agent) => match forward(request, env, agent).await {
            Ok(response) => Ok(response),
            Err(error) => http::refuse(&Error::storage(error.to_string()), None),
        },
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

fn health() -> String {
    json!({
        "status": "ok",
        "name": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "revision": env!("SESSION_AGENT_REVISION"),
    })
    .to_string()
}

const CONSOLE: &str = include_str!("../console/index.html");
