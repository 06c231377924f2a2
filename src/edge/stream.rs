//! Bodies that are produced while the client reads them. No chunk is produced before the client
//! requests it, and a canceled stream drops its source. The worker crate's streams are not used,
//! because they run in the queue that `tasks` avoids.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use js_sys::{JsString, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use super::host::pause;
use super::tasks;
use base::budget::Reservation;
use base::error::{Error, Result};
use base::outbound::in_time;
use chat::run::listener::EventSource;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = ReadableStream)]
    type PulledStream;

    #[wasm_bindgen(constructor, js_class = "ReadableStream")]
    fn new(source: &JsValue, strategy: &JsValue) -> PulledStream;

    pub type TextEncoder;

    #[wasm_bindgen(constructor)]
    pub fn new() -> TextEncoder;

    #[wasm_bindgen(method)]
    fn encode(this: &TextEncoder, text: &JsString) -> Uint8Array;

    pub type Controller;

    #[wasm_bindgen(method, catch)]
    pub fn enqueue(this: &Controller, chunk: &Uint8Array) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch)]
    pub fn close(this: &Controller) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch)]
    fn error(this: &Controller, reason: &str) -> Result<(), JsValue>;
}

/// A stream whose source has these two functions.
pub fn pulled(pull: &JsValue, cancel: Option<&JsValue>) -> Result<JsValue> {
    let refused = |_| Error::storage("an object that takes no field");
    let source = Object::new();
    Reflect::set(&source, &"pull".into(), pull).map_err(refused)?;
    if let Some(cancel) = cancel {
        Reflect::set(&source, &"cancel".into(), cancel).map_err(refused)?;
    }
    let strategy = Object::new();
    // The stream produces no chunk ahead of its reader.
    Reflect::set(&strategy, &"highWaterMark".into(), &0.into()).map_err(refused)?;
    Ok(PulledStream::new(&source, &strategy).into())
}

/// The size of a chunk: UTF-16 units of a long text, or bytes.
const PIECE_UNITS: u32 = 64 << 10;

/// Streams a long text, encoding it chunk by chunk.
pub fn of_text(text: JsString, reservation: Reservation) -> Result<JsValue> {
    let encoder = TextEncoder::new();
    let mut at = 0;
    of_pieces(reservation, move || {
        if at >= text.length() {
            return None;
        }
        let (piece, end) = encode_piece(&encoder, &text, at);
        at = end;
        Some(piece)
    })
}

/// Like [`of_text`], for a text in wasm memory, which never becomes a JavaScript string.
pub fn of_bytes(text: Rc<String>, reservation: Reservation) -> Result<JsValue> {
    let mut at = 0;
    of_pieces(reservation, move || {
        let end = text.len().min(at + PIECE_UNITS as usize);
        let piece = text.as_bytes().get(at..end).unwrap_or_default();
        at = end;
        (!piece.is_empty()).then(|| Uint8Array::from(piece))
    })
}

/// Like [`of_text`], for a text that is already bytes.
pub fn of_array(bytes: Uint8Array, reservation: Reservation) -> Result<JsValue> {
    let mut at = 0;
    of_pieces(reservation, move || {
        let piece = bytes.slice(at, at + PIECE_UNITS);
        at += piece.length();
        (piece.length() > 0).then_some(piece)
    })
}

/// Streams the chunks of a text. Its reservation ends when the text was sent, when the stream is
/// canceled, or when its reader stalls.
fn of_pieces(
    reservation: Reservation,
    next: impl FnMut() -> Option<Uint8Array> + 'static,
) -> Result<JsValue> {
    watched((next, reservation), |(mut next, reservation)| {
        let piece = next();
        std::future::ready(piece.map(|piece| (piece, (next, reservation))))
    })
}

/// The interval between checks of a reader. A reader that took no chunk between three
/// checks has stalled: its buffered chunks are dropped within 24 s.
const CHECK_MS: i64 = 8_000;
const MAX_SILENT_CHECKS: u32 = 2;

/// The minimum bytes per second of a reader, after its first half-minute. A page of 4 MiB
/// may take five minutes.
const MIN_BYTES_PER_SECOND: usize = 16 << 10;
const GRACE_S: usize = 30;

/// The error of an aborted stream, for a reader that still reads.
const NOT_READ: &str = "The answer was not read in time.";

/// A source whose chunks are sent while they are read.
struct WatchedSource<S> {
    /// `None`: a chunk is being produced, or none is left.
    source: RefCell<Option<S>>,
    controller: RefCell<Option<Controller>>,
    is_making: Cell<bool>,
    is_over: Cell<bool>,
    pulls: Cell<u64>,
    sent: Cell<usize>,
    /// The minimum bytes per second of the reader, after the grace period.
    min_bytes_per_second: usize,
    /// Wakes the task that checks the reader.
    waker: RefCell<Option<Waker>>,
}

impl<S> WatchedSource<S> {
    /// Drops the source, and wakes the task that checks the reader, which then ends.
    fn end(&self) {
        self.is_over.set(true);
        self.source.take();
        self.controller.take();
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    async fn ends(&self) {
        poll_fn(|context| {
            if self.is_over.get() {
                return Poll::Ready(());
            }
            self.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    /// Checks the reader periodically, and drops the source if it has stalled.
    async fn watch(&self) {
        let mut checks = 0;
        let mut silent = 0;
        let mut pulls = 0;
        while in_time(pause(CHECK_MS), self.ends()).await.is_none() {
            checks += 1;
            let is_silent = !self.is_making.get() && self.pulls.get() == pulls;
            silent = if is_silent { silent + 1 } else { 0 };
            pulls = self.pulls.get();
            let lived_s = checks * CHECK_MS as usize / 1000;
            let due = lived_s.saturating_sub(GRACE_S) * self.min_bytes_per_second;
            if silent >= MAX_SILENT_CHECKS || self.sent.get() < due && !self.is_making.get() {
                if let Some(controller) = self.controller.take() {
                    // A stream that was canceled in the meantime accepts no error.
                    let _ = controller.error(NOT_READ);
                }
                self.end();
            }
        }
    }
}

/// A stream of the chunks that `next` produces from a source, one per request of the reader. The
/// source is dropped at its end, when the stream is canceled, or when the reader stalls.
pub fn watched<S: 'static, F>(source: S, next: impl Fn(S) -> F + 'static) -> Result<JsValue>
where
    F: Future<Output = Option<(Uint8Array, S)>> + 'static,
{
    watched_at(MIN_BYTES_PER_SECOND, source, next)
}

/// Like [`watched`], with another minimum of bytes per second. 0: none, because the source
/// itself may be slow.
pub fn watched_at<S: 'static, F>(
    min_bytes_per_second: usize,
    source: S,
    next: impl Fn(S) -> F + 'static,
) -> Result<JsValue>
where
    F: Future<Output = Option<(Uint8Array, S)>> + 'static,
{
    let source_state = Rc::new(WatchedSource {
        source: RefCell::new(Some(source)),
        controller: RefCell::default(),
        is_making: Cell::new(false),
        is_over: Cell::new(false),
        pulls: Cell::new(0),
        sent: Cell::new(0),
        min_bytes_per_second,
        waker: RefCell::default(),
    });
    let (cancelled, watched) = (Rc::clone(&source_state), Rc::clone(&source_state));
    tasks::spawn(async move { watched.watch().await });
    let next = Rc::new(next);
    let pull = move |controller: Controller| -> Promise {
        let (source_state, next) = (Rc::clone(&source_state), Rc::clone(&next));
        tasks::promise(async move {
            let claimed = source_state.source.take();
            let Some(source) = claimed else {
                controller.error(NOT_READ)?;
                return Ok(JsValue::UNDEFINED);
            };
            source_state.pulls.set(source_state.pulls.get() + 1);
            source_state.is_making.set(true);
            let made = next(source).await;
            source_state.is_making.set(false);
            let Some((piece, source)) = made else {
                source_state.end();
                controller.close()?;
                return Ok(JsValue::UNDEFINED);
            };
            if source_state.is_over.get() {
                return Ok(JsValue::UNDEFINED);
            }
            source_state
                .sent
                .set(source_state.sent.get() + piece.length() as usize);
            controller.enqueue(&piece)?;
            source_state.source.replace(Some(source));
            source_state.controller.replace(Some(controller));
            Ok(JsValue::UNDEFINED)
        })
    };
    let pull = Closure::<dyn FnMut(Controller) -> Promise>::new(pull);
    let cancel = Closure::<dyn FnMut()>::new(move || cancelled.end());
    pulled(&pull.into_js_value(), Some(&cancel.into_js_value()))
}

/// The bytes of the chunk that starts at `at`, and its end. A chunk never splits a
/// surrogate pair.
pub fn encode_piece(encoder: &TextEncoder, text: &JsString, at: u32) -> (Uint8Array, u32) {
    let end = at.saturating_add(PIECE_UNITS).min(text.length());
    let last = text.char_code_at(end - 1);
    let is_first_half = (0xD800..0xDC00).contains(&(last as u32));
    let end = if is_first_half { end + 1 } else { end };
    (encoder.encode(&text.slice(at, end)), end)
}

/// Streams a turn's answer as server-sent events.
pub fn of_events(listener: impl EventSource + 'static) -> Result<JsValue> {
    let shared = Rc::new(RefCell::new(Some(listener)));
    let cancelled = Rc::clone(&shared);
    let pull = move |controller: Controller| -> Promise {
        let shared = Rc::clone(&shared);
        tasks::promise(async move {
            let claimed = shared.borrow_mut().take();
            let Some(mut listener) = claimed else {
                return Ok(JsValue::UNDEFINED);
            };
            match listener.next_events().await {
                Some(events) => {
                    controller.enqueue(&Uint8Array::from(events.as_bytes()))?;
                    shared.replace(Some(listener));
                }
                None => controller.close()?,
            }
            Ok(JsValue::UNDEFINED)
        })
    };
    let pull = Closure::<dyn FnMut(Controller) -> Promise>::new(pull);
    let cancel = Closure::<dyn FnMut()>::new(move || drop(cancelled.take()));
    pulled(&pull.into_js_value(), Some(&cancel.into_js_value()))
}
