//! Bodies that are produced while the client reads them. No piece is made before the
//! client asks for it, and a cancelled stream drops its source. The worker crate's
//! streams run in the queue that `tasks` avoids.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{JsString, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use super::tasks;
use crate::api::listener::TurnListener;
use crate::base::budget::Reservation;
use crate::base::error::{Error, Result};

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
    // The stream makes no piece ahead of its reader.
    Reflect::set(&strategy, &"highWaterMark".into(), &0.into()).map_err(refused)?;
    Ok(PulledStream::new(&source, &strategy).into())
}

/// UTF-16 units of a long text per piece, or bytes.
const PIECE_UNITS: u32 = 64 << 10;

/// A long text, encoded piece by piece.
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

/// As [`of_text`], for a text in wasm memory, which never becomes a JavaScript string.
pub fn of_bytes(text: Rc<String>, reservation: Reservation) -> Result<JsValue> {
    let mut at = 0;
    of_pieces(reservation, move || {
        let end = text.len().min(at + PIECE_UNITS as usize);
        let piece = text.as_bytes().get(at..end).unwrap_or_default();
        at = end;
        (!piece.is_empty()).then(|| Uint8Array::from(piece))
    })
}

/// As [`of_text`], for a text that is bytes already.
pub fn of_array(bytes: Uint8Array, reservation: Reservation) -> Result<JsValue> {
    let mut at = 0;
    of_pieces(reservation, move || {
        let piece = bytes.slice(at, at + PIECE_UNITS);
        at += piece.length();
        (piece.length() > 0).then_some(piece)
    })
}

/// The pieces of a text. Its reservation ends when the text is sent or the stream is
/// cancelled.
fn of_pieces(
    reservation: Reservation,
    next: impl FnMut() -> Option<Uint8Array> + 'static,
) -> Result<JsValue> {
    let next: Box<dyn FnMut() -> Option<Uint8Array>> = Box::new(next);
    let held = Rc::new(RefCell::new(Some((next, reservation))));
    let kept = Rc::clone(&held);
    let pull = move |controller: Controller| -> Result<(), JsValue> {
        let taken = held.borrow_mut().take();
        let Some((mut next, reservation)) = taken else {
            return Ok(());
        };
        let Some(piece) = next() else {
            return controller.close();
        };
        controller.enqueue(&piece)?;
        held.replace(Some((next, reservation)));
        Ok(())
    };
    let pull = Closure::<dyn FnMut(Controller) -> Result<(), JsValue>>::new(pull);
    let cancel = Closure::<dyn FnMut()>::new(move || drop(kept.take()));
    pulled(&pull.into_js_value(), Some(&cancel.into_js_value()))
}

/// The bytes of the piece that starts at `at`, and where the piece ends. A piece never
/// splits a surrogate pair.
pub fn encode_piece(encoder: &TextEncoder, text: &JsString, at: u32) -> (Uint8Array, u32) {
    let end = at.saturating_add(PIECE_UNITS).min(text.length());
    let last = text.char_code_at(end - 1);
    let is_first_half = (0xD800..0xDC00).contains(&(last as u32));
    let end = if is_first_half { end + 1 } else { end };
    (encoder.encode(&text.slice(at, end)), end)
}

/// A turn's answer as server-sent events.
pub fn of_events(listener: TurnListener) -> Result<JsValue> {
    let held = Rc::new(RefCell::new(Some(listener)));
    let kept = Rc::clone(&held);
    let pull = move |controller: Controller| -> Promise {
        let held = Rc::clone(&held);
        tasks::promise(async move {
            let taken = held.borrow_mut().take();
            let Some(mut listener) = taken else {
                return Ok(JsValue::UNDEFINED);
            };
            match listener.next().await {
                Some(events) => {
                    controller.enqueue(&Uint8Array::from(events.as_bytes()))?;
                    held.replace(Some(listener));
                }
                None => controller.close()?,
            }
            Ok(JsValue::UNDEFINED)
        })
    };
    let pull = Closure::<dyn FnMut(Controller) -> Promise>::new(pull);
    let cancel = Closure::<dyn FnMut()>::new(move || drop(kept.take()));
    pulled(&pull.into_js_value(), Some(&cancel.into_js_value()))
}
