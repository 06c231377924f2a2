//! What a reader refuses, and how a person is told.

use std::fmt::{self, Display};

use serde::de::{self, Expected, IgnoredAny, Unexpected};

use super::near::find_nearest;
use super::scan::MAX_QUOTED_CHARS;
use crate::base::error::Error;

pub type ReadResult<T> = Result<T, ReadError>;

/// Why a text is not what was expected.
#[derive(Debug)]
pub struct ReadError(Box<Refused>);

#[derive(Debug)]
struct Refused {
    /// The path to the field, as in `items[1].kind`. Empty: the whole text.
    path: String,
    problem: Problem,
}

#[derive(Debug)]
enum Problem {
    /// The text is no JSON. The number of bytes that were read.
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

    /// The same error, seen from the object that has the field.
    #[inline(never)]
    pub fn put_field(&mut self, name: &str) {
        self.0.path = join(name, &self.0.path);
    }

    /// The same error, seen from the array that has the item.
    #[inline(never)]
    pub fn at_index(mut self, index: usize) -> Self {
        self.0.path = join(&format!("[{index}]"), &self.0.path);
        self
    }

    /// The error for whoever sent the text: which field, and what the field must be. It
    /// never repeats a value.
    pub fn refusal(self, text: &str) -> Error {
        let Refused { path, problem } = *self.0;
        let must = |sentence: String| {
            let field = if path.is_empty() { "body" } else { &path };
            Error::invalid(field, format!("`{field}` {sentence}."))
        };
        match problem {
            Problem::Syntax(read) => syntax(text, read),
            Problem::Unexpected { expected } => must(format!("must be {}", plain(&expected))),
            Problem::UnknownVariant(known) => {
                must(format!("must be one of `{}`", known.join("`, `")))
            }
            Problem::UnknownField { name, known } => {
                let field = join(&path, &name);
                Error::invalid(&field, unknown_field(&field, &name, known))
            }
            Problem::MissingField(name) => {
                let field = join(&path, name);
                Error::invalid(&field, format!("`{field}` is missing."))
            }
            Problem::FieldGivenTwice(name) => {
                let field = join(&path, name);
                Error::invalid(&field, format!("`{field}` is given twice."))
            }
            Problem::Other(sentence) => match sentence.rsplit_once(", expected ") {
                Some((_, expected)) => must(format!("must be {}", plain(expected))),
                None => must(sentence),
            },
        }
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

/// `read`: the number of bytes that the reader took of the text, which is no JSON.
pub fn syntax(text: &str, read: usize) -> Error {
    let (line, column) = match serde_json::from_str::<IgnoredAny>(text) {
        Err(error) => (error.line(), error.column()),
        // The text is JSON with a value that nothing can hold: a number, say.
        Ok(_) => {
            let before = text.as_bytes().get(..read).unwrap_or_default();
            let line_start = before.iter().rposition(|byte| *byte == b'\n');
            let lines = before.iter().filter(|byte| **byte == b'\n').count();
            (lines + 1, read - line_start.map_or(0, |at| at + 1))
        }
    };
    Error::invalid(
        "body",
        format!("The body is not valid JSON: line {line}, column {column}."),
    )
}

fn unknown_field(field: &str, name: &str, known: &[&str]) -> String {
    match find_nearest(name, known.iter().copied()) {
        Some(candidate) => format!("`{field}` is not a field here. Did you mean `{candidate}`?"),
        None if known.is_empty() => format!("`{field}` is not a field here: there are no fields."),
        None => format!(
            "`{field}` is not a field here. The fields are: {}.",
            known.join(", ")
        ),
    }
}

fn join(path: &str, rest: &str) -> String {
    match path.is_empty() || rest.is_empty() || rest.starts_with('[') {
        true => format!("{path}{rest}"),
        false => format!("{path}.{rest}"),
    }
}

/// serde's name for a type, as a person would say it.
fn plain(expected: &str) -> &str {
    match expected {
        "a string" | "string" => "a string",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "a map" | "a JSON object" => "an object",
        "u8" | "u16" | "u32" | "u64" | "usize" => "an integer of 0 or more",
        "i32" | "i64" => "an integer",
        "f32" | "f64" => "a number",
        other if other.starts_with("struct ") => "an object",
        other => other,
    }
}
