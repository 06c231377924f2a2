//! Functions and fields of the runtime's values, by name.

use js_sys::{Array, Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use base::outbound::CallFailure;

pub fn method(target: &JsValue, name: &str, args: &[JsValue]) -> Result<JsValue, CallFailure> {
    raw_method(target, name, args).map_err(failed)
}

pub fn raw_method(target: &JsValue, name: &str, args: &[JsValue]) -> Result<JsValue, JsValue> {
    let function: Function = Reflect::get(target, &name.into())?.dyn_into()?;
    function.apply(target, &args.iter().collect::<Array>())
}

pub fn get(target: &JsValue, name: &str) -> JsValue {
    Reflect::get(target, &name.into()).unwrap_or(JsValue::UNDEFINED)
}

pub fn set(target: &Object, name: &str, value: &JsValue) -> Result<(), CallFailure> {
    Reflect::set(target, &name.into(), value)
        .map(drop)
        .map_err(failed)
}

pub fn object(fields: &[(&str, JsValue)]) -> Result<Object, CallFailure> {
    let object = Object::new();
    for (name, value) in fields {
        set(&object, name, value)?;
    }
    Ok(object)
}

pub fn describe(thrown: &JsValue) -> String {
    let text = |name: &str| get(thrown, name).as_string().unwrap_or_default();
    match thrown.as_string() {
        Some(thrown) => thrown,
        None => format!("{}: {}", text("name"), text("message")),
    }
}

pub fn failed(thrown: JsValue) -> CallFailure {
    CallFailure::Unreachable {
        cause: describe(&thrown),
    }
}

/// Cancels a stream, given the stream or its reader. The outcome is ignored.
pub fn cancel(stream: &JsValue) {
    if let Ok(outcome) = raw_method(stream, "cancel", &[]) {
        drop(JsFuture::from(Promise::resolve(&outcome)));
    }
}

pub fn description(stored: &JsValue) -> Option<String> {
    get(&get(stored, "customMetadata"), "description").as_string()
}
