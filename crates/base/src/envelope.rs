//! An error as a caller reads it.

use crate::error::Error;
use crate::json::{self, json};

impl Error {
    /// The JSON envelope of an error.
    pub fn body(&self) -> String {
        json::text(&json!({"error": {
            "code": self.code.name(),
            "message": self.message,
            "details": self.details(),
        }}))
    }
}
