//! The end of a stream that lacks a part of its turn.

use super::chunks::{Chunk, SSE_DONE, sse};

/// Why a client receives an incomplete stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamProblem {
    /// The client read nothing for too long after the end of the turn.
    TooSlow,
    /// The turn continues elsewhere.
    Interrupted,
}

impl StreamProblem {
    pub fn sentence(self) -> &'static str {
        match self {
            Self::TooSlow => {
                "This answer was not read in time. Load the complete answer from the session's history."
            }
            Self::Interrupted => {
                "The connection to the answer was lost. The turn continues: resume it to follow it."
            }
        }
    }

    /// The last events of the stream.
    pub fn render(self) -> String {
        let error = Chunk::Error {
            error_text: self.sentence().to_owned(),
        };
        format!("{}{SSE_DONE}", sse(&error.json()))
    }
}
