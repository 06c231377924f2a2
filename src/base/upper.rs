//! Upper case. Rust's table of it takes 12 KiB of the wasm, and JavaScript has its own.

/// The text in upper case, as Unicode has it for all languages.
#[cfg(target_arch = "wasm32")]
pub fn to_upper(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_ascii_uppercase(),
        false => js_sys::JsString::from(text).to_upper_case().into(),
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub fn to_upper(text: &str) -> String {
    text.to_uppercase()
}
