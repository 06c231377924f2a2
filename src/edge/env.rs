//! The values that the operator configured, by name. The worker crate's getters throw an
//! error with a stack for each name that is missing.

use js_sys::Reflect;
use wasm_bindgen::JsValue;

use base::settings::Setting;

/// The binding of this name, a variable or a secret included.
pub fn find(env: &JsValue, name: &str) -> Option<JsValue> {
    Reflect::get(env, &name.into()).ok()
}

/// The text of a variable or a secret.
pub fn find_text(env: &JsValue, setting: Setting) -> Option<String> {
    find(env, setting.name())?.as_string()
}
