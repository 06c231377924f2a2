//! Routes that every agent shares: liveness, the API document and the console. The
//! Worker and every object serve them alike.

use serde_json::json;
use wasm_bindgen::JsValue;
use worker::web_sys;

use super::http;
use crate::api::OPENAPI_JSON;
use crate::api::route::Route;

const CONSOLE: &str = include_str!("../../console/index.html");

/// Whether the route needs no token. A health check has no token, and the console has
/// none before its user enters one.
pub fn is_public(route: &Route) -> bool {
    matches!(route, Route::Health | Route::Console)
}

/// Serves a shared route; `None`: the route belongs to an agent.
pub fn serve(route: &Route) -> Option<Result<web_sys::Response, JsValue>> {
    let html = [("content-type", "text/html; charset=utf-8")];
    match route {
        Route::Health => Some(http::respond(200, &health().into(), None, &[])),
        Route::OpenApi => Some(http::respond(
            200,
            &OPENAPI_JSON.to_owned().into(),
            None,
            &[],
        )),
        Route::Console => Some(http::respond(200, &CONSOLE.to_owned().into(), None, &html)),
        Route::Rpc { .. }
        | Route::Messages { .. }
        | Route::Export { .. }
        | Route::Import { .. }
        | Route::Chat { .. }
        | Route::Resume { .. }
        | Route::Socket { .. } => None,
    }
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
