//! The problems for which a reader rejects a text, and the fields that have them.

use std::fmt::{self, Display};

use serde::de::{self, Expected, Unexpected};

use super::checks::MAX_QUOTED_CHARS;

pub type ReadResult<T> = Result<T, ReadError>;

/// Why a text is invalid.
#[derive(Debug)]
pub struct ReadError(pub(super) Box<Refused>);

#[derive(Debug)]
pub struct Refused {
    /// The path to the field, as in `items[1].kind`. Empty: the whole text.
    pub path: String,
    pub problem: Problem,
}

#[derive(Debug)]
pub enum Problem {
    /// The text is not JSON. The number of bytes that were read.
    Syntax(usize),
    /// A value of another type, or out of bounds.
    Unexpected {
        expected: String,
    },
    UnknownVariant(&'static [&'static str]),
    UnknownField {
        name: String,
        known: &'static [&'static str],
    },
    MissingField(&'static str),
    FieldGivenTwice(&'static str),
    Other(String),
}

impl ReadError {
    #[inline(never)]
    fn new(problem: Problem) -> Self {
        Self(Box::new(Refused {
            path: String::new(),
            problem,
        }))
    }

    #[inline(never)]
    fn other(sentence: String) -> Self {
        Self::new(Problem::Other(sentence))
    }

    #[inline(never)]
    pub fn syntax(read: usize) -> Self {
        Self::new(Problem::Syntax(read))
    }

    pub fn is_syntax(&self) -> bool {
        matches!(self.0.problem, Problem::Syntax(_))
    }

    /// Adds the name of a field to the front of the path.
    #[inline(never)]
    pub fn put_field(&mut self, name: &str) {
        self.0.path = join(name, &self.0.path);
    }

    /// Adds the index of an item to the front of the path.
    #[inline(never)]
    pub fn at_index(mut self, index: usize) -> Self {
        self.0.path = join(&format!("[{index}]"), &self.0.path);
        self
    }
}

impl Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at `{}`", self.0.problem, self.0.path)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: Display>(message: T) -> Self {
        Self::other(message.to_string())
    }

    #[inline(never)]
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        Self::new(Problem::Unexpected { expected })
    }

    #[inline(never)]
    fn invalid_value(given: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(given, expected)
    }

    #[inline(never)]
    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::invalid_type(Unexpected::Seq, expected)
    }

    #[inline(never)]
    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Problem::UnknownVariant(expected))
    }

    #[inline(never)]
    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        let name = name.chars().take(MAX_QUOTED_CHARS).collect();
        Self::new(Problem::UnknownField { name, known })
    }

    #[inline(never)]
    fn missing_field(name: &'static str) -> Self {
        Self::new(Problem::MissingField(name))
    }

    #[inline(never)]
    fn duplicate_field(name: &'static str) -> Self {
        Self::new(Problem::FieldGivenTwice(name))
    }
}

pub fn join(path: &str, rest: &str) -> String {
    if path.is_empty() || rest.is_empty() || rest.starts_with('[') {
        format!("{path}{rest}")
    } else {
        format!("{path}.{rest}")
    }
}
