//! The values that the operator configured, by name. Not read with the worker crate's
//! getters, which throw an error with a stack for each missing name.

use js_sys::Reflect;
use wasm_bindgen::JsValue;

use base::settings::Setting;

/// The binding with this name; variables and secrets are bindings, too.
pub fn find(env: &JsValue, name: &str) -> Option<JsValue> {
    Reflect::get(env, &name.into()).ok()
}

/// The text of a variable or a secret.
pub fn find_text(env: &JsValue, setting: Setting) -> Option<String> {
    find(env, setting.name())?.as_string()
}
