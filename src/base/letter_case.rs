//! Upper and lower case. Rust's code and tables of them take 18 KiB of the wasm, and
//! JavaScript has its own. Search alone needs Rust's lower case, letter by letter.

/// The text in upper case, as Unicode has it for all languages.
#[cfg(target_arch = "wasm32")]
pub fn to_upper(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_ascii_uppercase(),
        false => js_sys::JsString::from(text).to_upper_case().into(),
    }
}

/// The text in lower case, as Unicode has it for all languages.
#[cfg(target_arch = "wasm32")]
pub fn to_lower(text: &str) -> String {
    match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        false => js_sys::JsString::from(text).to_lower_case().into(),
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub fn to_upper(text: &str) -> String {
    text.to_uppercase()
}

#[cfg(not(target_arch = "wasm32"))]
pub fn to_lower(text: &str) -> String {
    text.to_lowercase()
}
