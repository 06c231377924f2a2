//! Reads the settings deployed for every agent: defaults of the configuration, blocks, tools. Each
//! part is a type of the crate that uses it. `api/defaults.rs` reads all parts.

use crate::schema::JsonSchema;
use serde::Serialize;

use super::error::{BODY, Error, Result};
use super::json;

use crate::json::RawValue;

/// A part of the deployed defaults that the Worker ignores.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DeployedConfigProblem {
    /// The variable or the file that contains it.
    pub source: String,
    /// The field, such as `maxSteps` or `blocks[1].kind`. Empty: the whole.
    pub field: String,
    pub message: String,
}

/// Reads one field of the deployed defaults, and records the errors in it.
pub struct PartReader<'a> {
    /// The variable or the file that contains the field.
    pub source: &'a str,
    pub field: &'a str,
    pub problems: &'a mut Vec<DeployedConfigProblem>,
}

impl PartReader<'_> {
    /// Records an error. It may name a field inside of `at`.
    pub fn note(&mut self, at: &str, error: Error) {
        let field = match error.field.as_deref() {
            None | Some(BODY) => at.to_owned(),
            Some(inner) if at.is_empty() => inner.to_owned(),
            Some(inner) => format!("{at}.{inner}"),
        };
        let whole = if at.is_empty() { self.source } else { at };
        self.problems.push(DeployedConfigProblem {
            source: self.source.to_owned(),
            field,
            message: error.message.replace("The body", &format!("`{whole}`")),
        });
    }

    /// Reads the items of a list. An invalid item is recorded and left out.
    pub fn items<T>(
        &mut self,
        list: &RawValue,
        most: i64,
        mut read: impl FnMut(&RawValue) -> Result<T>,
    ) -> Vec<T> {
        let field = self.field;
        let Ok(items) = json::decode::<Vec<&RawValue>>(list.get()) else {
            let message = format!("`{field}` must be an array.");
            self.note(field, Error::invalid(BODY, message));
            return Vec::new();
        };
        let mut accepted = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let at = format!("{field}[{index}]");
            if accepted.len() as i64 >= most {
                let message =
                    format!("`{field}` can have at most {most} items; the rest are ignored.");
                self.note(&at, Error::invalid(BODY, message));
                break;
            }
            match read(item) {
                Ok(item) => accepted.push(item),
                Err(error) => self.note(&at, error),
            }
        }
        accepted
    }
}
