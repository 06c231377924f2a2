//! Functions and fields of the runtime's values, by name.

use js_sys::{Array, Function, Object, Reflect};
use wasm_bindgen::prelude::*;

use session_agent_core::base::outbound::CallFailure;

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
