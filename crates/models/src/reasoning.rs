//! The parameters that a model accepts. Models that reason reject a temperature, and use another
//! name for the limit of their answer; models that don't reason reject a reasoning effort. A model
//! is identified only by its name.

use store::model_settings::ReasoningEffort;

/// The family name: `openai/gpt-5` of a gateway is `gpt-5`.
fn family(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

fn begins_with_any(model: &str, beginnings: &[&str]) -> bool {
    let family = family(model);
    beginnings
        .iter()
        .any(|beginning| family.starts_with(beginning))
}

/// Whether this is a model of OpenAI's that reasons.
pub fn is_openai_reasoning(model: &str) -> bool {
    begins_with_any(model, &["o1", "o3", "o4", "gpt-5"]) && !begins_with_any(model, &["gpt-5-chat"])
}

/// Whether this is a model of OpenAI's that does not reason. For other servers' models this is
/// unknown.
pub fn is_openai_plain(model: &str) -> bool {
    begins_with_any(model, &["gpt-3", "gpt-4", "gpt-5-chat", "chatgpt-"])
}

/// Whether this is a model of OpenAI's that reads PDFs.
pub fn reads_pdfs(model: &str) -> bool {
    is_openai_reasoning(model)
        || begins_with_any(model, &["gpt-4o", "gpt-4.1", "gpt-5", "chatgpt-4o"])
}

/// How reasoning is configured for a model of Anthropic's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// The model does not think.
    Never,
    /// It thinks up to a number of tokens.
    Budget,
    /// The model itself decides how much it thinks, given an effort.
    Adaptive,
}

/// Models with unknown names are newer than this list.
pub fn anthropic_thinking(model: &str) -> Thinking {
    const NEVER: &[&str] = &[
        "claude-2",
        "claude-instant",
        "claude-3-5",
        "claude-3-opus",
        "claude-3-sonnet",
        "claude-3-haiku",
    ];
    if begins_with_any(model, NEVER) {
        return Thinking::Never;
    }
    if is_before_adaptive(model) {
        Thinking::Budget
    } else {
        Thinking::Adaptive
    }
}

/// Whether the model takes a temperature at all.
pub fn anthropic_takes_temperature(model: &str) -> bool {
    anthropic_thinking(model) != Thinking::Adaptive
        || begins_with_any(model, &["claude-opus-4-6", "claude-sonnet-4-6"])
}

fn is_before_adaptive(model: &str) -> bool {
    const LINES: &[&str] = &["claude-opus-4", "claude-sonnet-4", "claude-haiku-4"];
    let family = family(model);
    if family.starts_with("claude-3-7") {
        return true;
    }
    LINES.iter().any(|line| {
        family.strip_prefix(line).is_some_and(|rest| {
            // `-20250514` is a date, and the date of version 4.0.
            let minor = rest
                .strip_prefix('-')
                .and_then(|rest| rest.split('-').next());
            match minor.map(str::parse::<i64>) {
                None => true,
                Some(Ok(minor)) => minor <= 5 || minor > 1_000,
                Some(Err(_)) => rest.starts_with('@'),
            }
        })
    })
}

/// The tokens that a model with a budget may think.
pub fn thinking_budget(effort: ReasoningEffort) -> Option<i64> {
    match effort {
        ReasoningEffort::None => None,
        ReasoningEffort::Minimal => Some(1_024),
        ReasoningEffort::Low => Some(2_048),
        ReasoningEffort::Medium => Some(8_192),
        ReasoningEffort::High => Some(16_384),
    }
}

/// The effort for providers that have three levels. `None`: not to reason.
pub fn three_levels(effort: ReasoningEffort) -> Option<&'static str> {
    match effort {
        ReasoningEffort::None => None,
        ReasoningEffort::Minimal | ReasoningEffort::Low => Some("low"),
        ReasoningEffort::Medium => Some("medium"),
        ReasoningEffort::High => Some("high"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_selects_its_reasoning_mode() {
        for (model, expected) in [
            ("claude-3-5-haiku-latest", Thinking::Never),
            ("claude-3-opus-20240229", Thinking::Never),
            ("claude-3-7-sonnet-latest", Thinking::Budget),
            ("claude-sonnet-4-20250514", Thinking::Budget),
            ("claude-sonnet-4", Thinking::Budget),
            ("claude-opus-4-1-20250805", Thinking::Budget),
            ("claude-sonnet-4-5", Thinking::Budget),
            ("anthropic/claude-haiku-4-5-20251001", Thinking::Budget),
            ("claude-opus-4-6", Thinking::Adaptive),
            ("claude-sonnet-4-6", Thinking::Adaptive),
            ("claude-opus-5", Thinking::Adaptive),
        ] {
            assert_eq!(anthropic_thinking(model), expected, "{model}");
        }
        assert!(anthropic_takes_temperature("claude-sonnet-4-5"));
        assert!(anthropic_takes_temperature("claude-sonnet-4-6"));
        assert!(!anthropic_takes_temperature("claude-opus-4-7"));
    }

    #[test]
    fn openai_models_are_recognized_behind_a_gateway() {
        for (model, reasons, plain, pdfs) in [
            ("gpt-5", true, false, true),
            ("openai/gpt-5-mini", true, false, true),
            ("o3-mini", true, false, true),
            ("gpt-5-chat-latest", false, true, true),
            ("gpt-4o-mini", false, true, true),
            ("gpt-4.1", false, true, true),
            ("gpt-4-turbo", false, true, false),
            ("llama-3", false, false, false),
        ] {
            assert_eq!(is_openai_reasoning(model), reasons, "{model}");
            assert_eq!(is_openai_plain(model), plain, "{model}");
            assert_eq!(reads_pdfs(model), pdfs, "{model}");
        }
    }
}
