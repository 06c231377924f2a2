//! An error as a caller reads it.

use crate::base::error::Error;
use crate::base::json::{self, json};

impl Error {
    /// The JSON envelope of §4.
    pub fn body(&self) -> String {
        json::text(&json!({"error": {
            "code": self.code.name(),
            "message": self.message,
            "details": self.details,
        }}))
    }
}
