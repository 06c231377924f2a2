//! Cleans up promises and streams of the runtime that nobody awaits any more.

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use worker::web_sys;

use super::reflect::{cancel, get};
use crate::edge::tasks;

/// Awaits a promise. If this future is dropped, a stream that arrives later is canceled.
pub async fn settle(outcome: JsValue) -> Result<JsValue, JsValue> {
    let mut awaited = PendingPromise {
        promise: Promise::resolve(&outcome),
        is_settled: false,
    };
    let outcome = JsFuture::from(awaited.promise.clone()).await;
    awaited.is_settled = true;
    outcome
}

struct PendingPromise {
    promise: Promise,
    is_settled: bool,
}

impl Drop for PendingPromise {
    fn drop(&mut self) {
        if !self.is_settled {
            let promise = self.promise.clone();
            tasks::spawn(async move {
                if let Ok(late) = JsFuture::from(promise).await {
                    cancel_stream(&late);
                }
            });
        }
    }
}

/// Cancels an answer that is a stream, or that has a stream as its body.
pub fn cancel_stream(answer: &JsValue) {
    let body = get(answer, "body");
    for stream in [answer, &body] {
        if stream.is_instance_of::<web_sys::ReadableStream>() {
            cancel(stream);
        }
    }
}
