//! JavaScript strings that are passed through without copying them into Rust.

use std::any::Any;
use std::rc::Rc;

use js_sys::{JsString, Uint8Array};
use wasm_bindgen::prelude::*;

use base::database::{EngineText, SqlText};

#[wasm_bindgen]
extern "C" {
    type TextEncoder;

    #[wasm_bindgen(constructor)]
    fn new() -> TextEncoder;

    #[wasm_bindgen(method)]
    fn encode(this: &TextEncoder, text: &JsString) -> Uint8Array;
}

#[wasm_bindgen(module = "/src/edge/glue.js")]
extern "C" {
    #[wasm_bindgen(js_name = encodeInto)]
    fn encode_into(text: &JsString, bytes: &mut [u8]) -> i32;
}

thread_local! {
    static ENCODER: TextEncoder = TextEncoder::new();
}

/// A string made in Rust that is longer than this is sent in pieces, so that it is not in
/// memory once more.
const LONG_BYTES: usize = 256 << 10;

/// A page is made as a BLOB: its bytes are sent as they are. A string would be decoded and
/// encoded again, which takes as long as the page itself where not all of it is ASCII.
#[derive(Debug)]
pub enum JsText {
    String(JsString),
    /// UTF-8.
    Bytes(Uint8Array),
}

impl EngineText for JsText {
    fn copy(&self) -> String {
        match self {
            Self::String(text) => copy(text).unwrap_or_default(),
            Self::Bytes(bytes) => from_utf8(bytes.to_vec()),
        }
    }

    fn copy_bytes(&self) -> Vec<u8> {
        match self {
            Self::String(_) => self.copy().into_bytes(),
            Self::Bytes(bytes) => bytes.to_vec(),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The part of a text that is sent.
pub enum Sent {
    String(JsString),
    Bytes(Uint8Array),
    Long(Rc<String>),
}

impl Sent {
    /// Takes the text, so that parts which are joined are not in memory together with the whole.
    pub fn of(text: SqlText) -> Self {
        match text {
            SqlText::Own(text) if text.len() <= LONG_BYTES => {
                Self::String(JsString::from(text.as_str()))
            }
            SqlText::Own(text) => Self::Long(text),
            SqlText::Outside(text) => match text.as_any().downcast_ref() {
                Some(JsText::String(text)) => Self::String(text.clone()),
                Some(JsText::Bytes(bytes)) => Self::Bytes(bytes.clone()),
                None => Self::of(text.copy().into()),
            },
            SqlText::Joined(texts) => {
                let parts: Option<Vec<Uint8Array>> = texts.iter().map(find_bytes).collect();
                match parts {
                    Some(parts) => Self::Bytes(join(&parts)),
                    None => Self::of(SqlText::Joined(texts).into_string().into()),
                }
            }
        }
    }
}

/// The text's bytes outside of Rust. `None`: a long text, which was made in Rust.
fn find_bytes(text: &SqlText) -> Option<Uint8Array> {
    match text {
        SqlText::Own(text) if text.len() > LONG_BYTES => None,
        SqlText::Own(text) => Some(text.as_bytes().into()),
        SqlText::Outside(outside) => match outside.as_any().downcast_ref() {
            Some(JsText::Bytes(bytes)) => Some(bytes.clone()),
            _ => Some(outside.copy_bytes().as_slice().into()),
        },
        SqlText::Joined(texts) => {
            let parts: Option<Vec<Uint8Array>> = texts.iter().map(find_bytes).collect();
            parts.map(|parts| join(&parts))
        }
    }
}

fn join(parts: &[Uint8Array]) -> Uint8Array {
    let joined = Uint8Array::new_with_length(parts.iter().map(|part| part.length()).sum());
    let mut at = 0;
    for part in parts {
        joined.set(part, at);
        at += part.length();
    }
    joined
}

/// The engine's bytes as text. Bytes that are not UTF-8 are replaced, as in a string that
/// the engine makes.
fn from_utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Encoding is faster than a copy unit by unit. Most texts have little that is not ASCII
/// and are encoded straight into this memory.
pub fn copy(text: &JsString) -> Option<String> {
    let units = text.length() as usize;
    let mut bytes = vec![0; units + units / 8];
    match usize::try_from(encode_into(text, &mut bytes)) {
        Ok(length) => bytes.truncate(length),
        Err(_) => bytes = ENCODER.with(|encoder| encoder.encode(text)).to_vec(),
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_utf8_from_the_engine_is_replaced() {
        assert_eq!(from_utf8("é\u{0}😀".as_bytes().to_vec()), "é\u{0}😀");
        assert_eq!(from_utf8(vec![b'a', 0xFF, b'b']), "a\u{FFFD}b");
        assert_eq!(from_utf8(vec![b'a', 0xF0, 0x9F]), "a\u{FFFD}");
    }

    #[test]
    fn a_text_beyond_the_limit_is_not_copied() {
        let text = Rc::new("x".repeat(LONG_BYTES + 1));
        let Sent::Long(sent) = Sent::of(SqlText::Own(Rc::clone(&text))) else {
            panic!("the text became a string of JavaScript");
        };
        assert!(Rc::ptr_eq(&text, &sent));
        assert!(find_bytes(&SqlText::Own(text)).is_none());
    }

    #[test]
    fn a_join_with_a_long_part_becomes_one_rust_text() {
        let joined = || {
            SqlText::Joined(vec![
                "[".to_owned().into(),
                "x".repeat(LONG_BYTES + 1).into(),
            ])
        };
        // The first part would be a JavaScript value, so only the long one is tested here.
        let SqlText::Joined(mut parts) = joined() else {
            unreachable!()
        };
        assert!(find_bytes(&parts.remove(1)).is_none());
        assert_eq!(joined().into_string().len(), LONG_BYTES + 2);
    }
}
