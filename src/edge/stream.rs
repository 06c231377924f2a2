//! A body that is written as it is read: nothing is made before somebody wants
//! it, and what a reader leaves behind is let go.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::api::chat::Listening;
use crate::error::{Error, Result};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = ReadableStream)]
    type PulledStream;

    #[wasm_bindgen(constructor, js_class = "ReadableStream")]
    fn new(source: &JsValue, strategy: &JsValue) -> PulledStream;

    pub type Controller;

    #[wasm_bindgen(method, catch)]
    pub fn enqueue(this: &Controller, chunk: &Uint8Array) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch)]
    pub fn close(this: &Controller) -> Result<(), JsValue>;
}

/// A stream whose source has these functions.
pub fn pulled(pull: &JsValue, cancel: Option<&JsValue>) -> Result<JsValue> {
    let refused = |_| Error::storage("an object that takes no field");
    let source = Object::new();
    Reflect::set(&source, &"pull".into(), pull).map_err(refused)?;
    if let Some(cancel) = cancel {
        Reflect::set(&source, &"cancel".into(), cancel).map_err(refused)?;
    }
    let strategy = Object::new();
    // Not a piece ahead of its reader.
    Reflect::set(&strategy, &"highWaterMark".into(), &0.into()).map_err(refused)?;
    Ok(PulledStream::new(&source, &strategy).into())
}

/// A turn's answer as server-sent events.
pub fn of_events(listening: Listening) -> Result<JsValue> {
    let held = Rc::new(RefCell::new(Some(listening)));
    let kept = Rc::clone(&held);
    let pull = move |controller: Controller| -> Promise {
        let held = Rc::clone(&held);
        future_to_promise(async move {
            let taken = held.borrow_mut().take();
            let Some(mut listening) = taken else {
                return Ok(JsValue::UNDEFINED);
            };
            match listening.next().await {
                Some(events) => {
                    controller.enqueue(&Uint8Array::from(events.as_bytes()))?;
                    held.replace(Some(listening));
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
