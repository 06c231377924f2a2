//! Texts that code passes on without inspecting them.
//!
//! Invariant: bytes that no code inspects don't pass through Rust. The answer of a hot read
//! is JSON text built by SQLite; [`SqlText`] carries the text from the cursor to the
//! response without converting it into a `String`.

use std::any::Any;
use std::fmt::Debug;
use std::rc::Rc;

/// A text that an engine built and stores outside of Rust.
pub trait EngineText: Debug {
    /// Copies the text into Rust. Bytes that are not UTF-8 are replaced.
    fn copy(&self) -> String;

    /// Like [`Self::copy`], without checking whether the bytes are UTF-8.
    fn copy_bytes(&self) -> Vec<u8>;

    /// For the sender of the text, which downcasts it to its engine's type.
    fn as_any(&self) -> &dyn Any;
}

#[derive(Clone, Debug)]
pub enum SqlText {
    /// Built by the engine, and stored outside of Rust.
    Outside(Rc<dyn EngineText>),
    /// Built in Rust.
    Own(Rc<String>),
    /// Several texts in order, some of them built by the engine. The sender joins them.
    Joined(Vec<SqlText>),
}

impl SqlText {
    /// A text of the engine.
    pub fn outside(text: impl EngineText + 'static) -> Self {
        Self::Outside(Rc::new(text))
    }

    /// Copies the text into Rust. For text that Rust must inspect; never on a hot path.
    pub fn copy(&self) -> String {
        match self {
            Self::Outside(text) => text.copy(),
            Self::Own(text) => text.as_str().to_owned(),
            Self::Joined(texts) => texts.iter().map(Self::copy).collect(),
        }
    }

    /// Like [`Self::copy`], without checking whether the bytes are UTF-8.
    pub fn copy_bytes(&self) -> Vec<u8> {
        match self {
            Self::Outside(text) => text.copy_bytes(),
            Self::Own(_) | Self::Joined(_) => self.copy().into_bytes(),
        }
    }

    /// Like [`Self::copy`], but a text that was built in Rust is not copied.
    pub fn into_string(self) -> String {
        match self {
            Self::Own(text) => Rc::unwrap_or_clone(text),
            other => other.copy(),
        }
    }

    /// Concatenates texts.
    pub fn concat(texts: Vec<Self>) -> Self {
        let is_own = |text: &Self| matches!(text, Self::Own(_));
        if texts.iter().all(is_own) {
            let texts: Vec<String> = texts.into_iter().map(Self::into_string).collect();
            return texts.concat().into();
        }
        Self::Joined(texts)
    }

    /// Adds a short text before and after this one.
    pub fn enclose(self, head: &str, tail: &str) -> Self {
        Self::concat(vec![head.into(), self, tail.into()])
    }
}

impl Default for SqlText {
    fn default() -> Self {
        String::new().into()
    }
}

impl From<&str> for SqlText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for SqlText {
    fn from(text: String) -> Self {
        Self::Own(Rc::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::NativeText;

    #[test]
    fn parts_are_joined_in_order_without_copying_engine_text() {
        let outside = || SqlText::outside(NativeText("b".to_owned()));
        let joined = SqlText::concat(vec!["a".into(), outside(), "c".into()]);
        assert!(matches!(&joined, SqlText::Joined(texts) if texts.len() == 3));
        let enclosed = joined.enclose("[", "]");
        assert_eq!(enclosed.copy(), "[abc]");
        assert_eq!(enclosed.copy_bytes(), b"[abc]");
        assert_eq!(enclosed.into_string(), "[abc]");
        assert_eq!(outside().copy_bytes(), b"b");
    }

    #[test]
    fn rust_texts_are_joined_into_one() {
        let joined = SqlText::concat(vec!["a".into(), "b".into()]).enclose("(", ")");
        assert!(matches!(&joined, SqlText::Own(text) if ***text == *"(ab)"));
    }
}
