//! Summaries written by the agent's model.

use super::act::{Summarised, Summariser};
use crate::base::action::Role;
use crate::base::database::Database;
use crate::base::error::Result;
use crate::base::ids::Id;
use crate::base::outbound::{LocalBoxFuture, Outbound};
use crate::models::call::{choose_model, complete};
use crate::models::message::ContextMessage;
use crate::models::{ModelRequest, TokenUsage};
use crate::store::config::load_config;

pub struct ModelSummariser<'a> {
    pub db: &'a dyn Database,
    pub outbound: &'a dyn Outbound,
}

impl Summariser for ModelSummariser<'_> {
    fn summarise<'a>(&'a self, prompt: String, max_tokens: i64) -> LocalBoxFuture<'a, Summarised> {
        Box::pin(async move {
            let mut usage = TokenUsage::default();
            let summary = self.ask(prompt, max_tokens, &mut usage).await;
            Summarised { summary, usage }
        })
    }
}

impl ModelSummariser<'_> {
    async fn ask(&self, prompt: String, max_tokens: i64, usage: &mut TokenUsage) -> Result<String> {
        let config = load_config(self.db, &self.outbound.deployed())?;
        let choice = choose_model(self.outbound, config.model.as_ref().map(Id::as_str))?;
        let messages = [ContextMessage::plain(Role::User, prompt)];
        let request = ModelRequest {
            system: &[],
            messages: &messages,
            tools: &[],
            max_output_tokens: Some(max_tokens),
            ..ModelRequest::default()
        };
        complete(self.outbound, &choice, &request, usage).await
    }
}
