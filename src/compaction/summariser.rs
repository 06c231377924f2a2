//! Summaries written by the agent's model.

use super::act::Summariser;
use crate::database::Database;
use crate::error::{Code, Error, Result};
use crate::outside::{Later, Outside};

pub struct ModelSummariser<'a> {
    pub db: &'a dyn Database,
    pub outside: &'a dyn Outside,
}

impl Summariser for ModelSummariser<'_> {
    fn summarise<'a>(&'a self, _prompt: String, _max_tokens: i64) -> Later<'a, Result<String>> {
        Box::pin(async {
            Err(Error::new(
                Code::ModelFailed,
                "No model can be called by this build.",
            ))
        })
    }
}
