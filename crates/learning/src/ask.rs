//! Calls the learning model: within the budgets of the agent and of learning, and counted
//! like any other call.

use super::capacity::{RequestCapacity, named_model};
use base::action::Role;
use base::database::atomically;
use base::error::{Code, Error, ErrorKind, Result};
use base::ids::Id;
use base::tokens;
use conversation::session::meter::Meter;
use conversation::session::usage_days::{DAY_MS, DayUsage, count_for_agent};
use memory::Memory;
use models::ModelRequest;
use models::call::{CompletedCall, choose_model, complete};
use models::length::LengthRefusal;
use models::message::ContextMessage;
use models::metered::{CallOutcome, EndedCall, settle};
use store::config::Config;
use store::learn_settings::LearnSettings;
use store::learned_windows::store_named_window;
use store::limits::{AtMost, Limits, PrincipalLimits};

/// The principal under which the tokens of learning are counted. Minted tokens have other
/// names.
const PRINCIPAL: &str = "learning";

/// A received answer.
pub struct LearnedAnswer {
    pub text: String,
    pub model: String,
}

/// Sends the request. Its tokens count for the agent, and for the caller who wrote the
/// messages, whatever is done with the answer.
pub async fn ask(
    memory: &Memory<'_>,
    config: &Config,
    settings: &LearnSettings,
    prompt: String,
    capacity: &RequestCapacity,
) -> Result<LearnedAnswer> {
    let outbound = memory.outbound;
    let choice = choose_model(outbound, named_model(config, settings).map(Id::as_str))?;
    let chosen = choice.name.to_string();
    let sent = tokens::estimate(&prompt);
    let messages = [ContextMessage::of_text(Role::User, prompt)];
    let request = ModelRequest {
        messages: &messages,
        max_output_tokens: Some(capacity.answer_tokens),
        ..ModelRequest::default()
    };
    let budget = PrincipalLimits {
        holder: PRINCIPAL.to_owned(),
        most: Limits {
            tokens_per_day: Some(AtMost(settings.max_tokens_per_day.0)),
            ..Limits::default()
        },
    };
    let meter = Meter {
        db: memory.db,
        host: memory.host,
        config,
        token: memory.payer,
        budget: Some(&budget),
    };
    let reserved = meter.reserve(&chosen, sent).map_err(name_budget)?;
    let mut call = CompletedCall::default();
    let answer = complete(outbound, &choice, &request, &mut call).await;
    let model = call.model.unwrap_or(chosen);
    let ended = EndedCall {
        usage: call.usage,
        received_tokens: answer.as_deref().map_or(0, tokens::estimate),
        outcome: match &answer {
            Ok(_) => CallOutcome::Whole,
            Err(error) => CallOutcome::Failed(error),
        },
    };
    let spent = ended.spent(sent);
    settle(&meter, reserved.as_ref(), spent)?;
    let refusal = answer.as_ref().err().and_then(LengthRefusal::of);
    if let Some(window) = refusal.and_then(|refusal| refusal.window) {
        let now_ms = memory.host.now_ms();
        atomically(memory.db, || {
            store_named_window(memory.db, now_ms, &model, window)
        })?;
    }
    count_for_agent(
        memory.db,
        &[DayUsage {
            day: memory.host.now_ms().div_euclid(DAY_MS),
            model: Some(model.clone()),
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cached_input_tokens: spent.cached_input_tokens,
            cost: config
                .prices
                .as_ref()
                .map_or(0.0, |prices| spent.cost(prices, &model)),
            ..DayUsage::default()
        }],
    )?;
    Ok(LearnedAnswer {
        text: answer?,
        model,
    })
}

/// Replaces the error of an exceeded budget by one that names the learning budget.
fn name_budget(error: Error) -> Error {
    if error.kind != Some(ErrorKind::BudgetLimited) {
        return error;
    }
    let retry_after = error.retry_after_s.unwrap_or_default();
    Error::new(
        Code::RateLimited,
        format!(
            "Learning has used its tokens for today (`learn.maxTokensPerDay`). It resumes in \
             {retry_after} s."
        ),
    )
    .with_retry_after(retry_after)
    .with_field("learn.maxTokensPerDay")
}
