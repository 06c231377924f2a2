//! An outgoing call in progress, and the body of its answer.

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;
use worker::web_sys;

use super::promise::settle;
use super::reflect::{cancel, failed, get, method, raw_method};
use crate::edge::host::{Runtime, pause};
use base::host::Host as _;
use base::outbound::{ByteChunks, CallFailure, CallLimits, Clock, LocalBoxFuture, in_time};

/// A call in progress. Dropping it before its end aborts the call.
pub struct InFlightCall {
    controller: JsValue,
    is_over: bool,
}

impl InFlightCall {
    pub fn new() -> Result<Self, CallFailure> {
        let controller = web_sys::AbortController::new().map_err(failed)?;
        Ok(Self {
            controller: controller.into(),
            is_over: false,
        })
    }

    pub fn signal(&self) -> JsValue {
        get(&self.controller, "signal")
    }
}

impl Drop for InFlightCall {
    fn drop(&mut self) {
        if !self.is_over {
            // Nobody waits for the call any more, so a failure has no reader.
            let _ = raw_method(&self.controller, "abort", &[]);
        }
    }
}

/// A body that is in memory already.
pub struct BufferedBody(Option<Vec<u8>>);

impl BufferedBody {
    pub fn of(mut call: InFlightCall, bytes: Option<Vec<u8>>) -> Self {
        call.is_over = true;
        Self(bytes)
    }
}

impl ByteChunks for BufferedBody {
    fn next(&mut self) -> LocalBoxFuture<'_, Result<Option<Vec<u8>>, CallFailure>> {
        let bytes = self.0.take();
        Box::pin(async { Ok(bytes) })
    }
}

/// A body that is still arriving. Dropping it before its end cancels the stream.
pub struct StreamedBody {
    reader: JsValue,
    max_bytes: usize,
    clock: Clock,
    received: usize,
    call: InFlightCall,
}

impl StreamedBody {
    pub fn new(
        stream: &JsValue,
        limits: CallLimits,
        clock: Clock,
        call: InFlightCall,
    ) -> Result<Self, CallFailure> {
        Ok(Self {
            reader: method(stream, "getReader", &[])?,
            max_bytes: limits.max_bytes,
            clock,
            received: 0,
            call,
        })
    }
}

impl ByteChunks for StreamedBody {
    fn next(&mut self) -> LocalBoxFuture<'_, Result<Option<Vec<u8>>, CallFailure>> {
        Box::pin(async move {
            let read = async {
                let read = method(&self.reader, "read", &[])?;
                settle(read).await.map_err(failed)
            };
            let step = within(&self.clock, read).await?;
            if get(&step, "done").is_truthy() {
                self.call.is_over = true;
                return Ok(None);
            }
            let value = get(&step, "value");
            let bytes = match value.as_string() {
                Some(text) => text.into_bytes(),
                None => Uint8Array::new(&value).to_vec(),
            };
            self.received += bytes.len();
            if self.received > self.max_bytes {
                return Err(CallFailure::TooLarge {
                    max_bytes: self.max_bytes,
                });
            }
            Ok(Some(bytes))
        })
    }

    fn record_content(&mut self) {
        self.clock.record_content(Runtime.now_ms());
    }
}

impl Drop for StreamedBody {
    fn drop(&mut self) {
        if !self.call.is_over {
            cancel(&self.reader);
        }
    }
}

/// The outcome of the work, or a failure if the clock runs out first.
pub async fn within<T>(
    clock: &Clock,
    work: impl Future<Output = Result<T, CallFailure>>,
) -> Result<T, CallFailure> {
    let (ms, failure) = clock.next_wait(Runtime.now_ms());
    in_time(pause(ms), work).await.unwrap_or(Err(failure))
}
