//! Calls the embedding model, within the limits of the agent and of the principal who causes the
//! call. Like any call, a request is counted before it is sent. If a limit is used up, the search
//! uses only words.

use base::error::{Code, Error, ErrorKind, Result};
use base::tokens;
use conversation::session::meter::{CallSpending, Meter};
use memory::Memory;
use models::embedding::{EmbeddingModel, embed};
use store::config::load_config;

pub struct Embedder<'a> {
    pub memory: &'a Memory<'a>,
    pub model: EmbeddingModel,
}

impl Embedder<'_> {
    /// One vector per text, in order.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let memory = self.memory;
        let config = load_config(memory.db, &memory.deployed.config)?;
        let meter = Meter {
            db: memory.db,
            host: memory.host,
            config: &config,
            token: memory.payer,
            budget: None,
        };
        let sent = texts.iter().map(|text| tokens::estimate(text)).sum();
        let reserved = meter.reserve(&self.model.name(), sent)?;
        let answer = embed(memory.outbound, &self.model, texts).await;
        // A provider that rejected the request read nothing of it.
        if let (Some(reserved), Err(error)) = (&reserved, &answer)
            && is_unread(error)
        {
            let nothing = CallSpending {
                input_tokens: 0,
                cached_input_tokens: 0,
                output_tokens: 0,
            };
            meter.settle(reserved, &nothing)?;
        }
        answer
    }
}

fn is_unread(error: &Error) -> bool {
    error.code != Code::ModelFailed || error.kind == Some(ErrorKind::RefusedByModel)
}
