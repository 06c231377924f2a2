//! Texts that code passes on without looking at them.
//!
//! The rule this file protects: bytes that no code has to look at do not travel through
//! Rust. A hot read is JSON text made by SQLite; [`SqlText`] carries the text from the
//! cursor to the response without turning it into a `String`.

use std::any::Any;
use std::fmt::Debug;
use std::rc::Rc;

/// A text that an engine made and keeps outside of Rust.
pub trait EngineText: Debug {
    /// Copies the text into Rust. Bytes that are not UTF-8 are replaced.
    fn copy(&self) -> String;

    /// As [`Self::copy`], without a look at whether the bytes are UTF-8.
    fn copy_bytes(&self) -> Vec<u8>;

    /// For the sender of the text, which knows the engine that made it.
    fn as_any(&self) -> &dyn Any;
}

#[derive(Clone, Debug)]
pub enum SqlText {
    /// Made by the engine. The text stays outside.
    Outside(Rc<dyn EngineText>),
    /// Made in Rust.
    Own(Rc<String>),
    /// Texts one after the other, of which the engine made some. Their sender joins them.
    Joined(Vec<SqlText>),
}

impl SqlText {
    /// A text of the engine's.
    pub fn outside(text: impl EngineText + 'static) -> Self {
        Self::Outside(Rc::new(text))
    }

    /// Copies the text into Rust. For text that Rust must look at; never on a hot path.
    pub fn copy(&self) -> String {
        match self {
            Self::Outside(text) => text.copy(),
            Self::Own(text) => text.as_str().to_owned(),
            Self::Joined(texts) => texts.iter().map(Self::copy).collect(),
        }
    }

    /// As [`Self::copy`], without a look at whether the bytes are UTF-8.
    pub fn copy_bytes(&self) -> Vec<u8> {
        match self {
            Self::Outside(text) => text.copy_bytes(),
            Self::Own(_) | Self::Joined(_) => self.copy().into_bytes(),
        }
    }

    /// As [`Self::copy`]. A text that was made in Rust is not copied.
    pub fn into_string(self) -> String {
        match self {
            Self::Own(text) => Rc::unwrap_or_clone(text),
            other => other.copy(),
        }
    }

    /// Texts one after the other.
    pub fn concat(texts: Vec<Self>) -> Self {
        let is_own = |text: &Self| matches!(text, Self::Own(_));
        if texts.iter().all(is_own) {
            let texts: Vec<String> = texts.into_iter().map(Self::into_string).collect();
            return texts.concat().into();
        }
        Self::Joined(texts)
    }

    /// The text between two short ones.
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
    fn texts_are_joined_in_their_order_and_the_engines_stay_outside() {
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
    fn texts_made_in_rust_become_one() {
        let joined = SqlText::concat(vec!["a".into(), "b".into()]).enclose("(", ")");
        assert!(matches!(&joined, SqlText::Own(text) if ***text == *"(ab)"));
    }
}
