//! How many tokens a model accepts, its answer included, if its name is known. Providers add models
//! all the time, so an agent can set another number (`maxContextTokens`), and a provider's error
//! about the length reveals the real limit.

use super::choice::{ModelName, Provider};
use base::database::Database;
use base::error::Result;
use store::learned_windows::find_named_window;

/// The window of a model that is not in the table.
const DEFAULT_CONTEXT_TOKENS: i64 = 100_000;

/// Prefixes of models' names, and their windows. The longest prefix counts.
type WindowTable = &'static [(&'static str, i64)];

const OPENAI: WindowTable = &[
    ("chatgpt-4o", 128_000),
    ("gpt-3.5-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-1106", 128_000),
    ("gpt-4-0125", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4.5", 128_000),
    ("gpt-4o", 128_000),
    // The window has 400,000 tokens, of which the input may use this many.
    ("gpt-5", 272_000),
    ("gpt-5-chat", 128_000),
    ("gpt-oss", 128_000),
    ("o1", 200_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o3", 200_000),
    ("o4", 200_000),
];

const ANTHROPIC: WindowTable = &[
    ("claude", 200_000),
    ("claude-2.0", 100_000),
    ("claude-instant", 100_000),
];

const WORKERS_AI: WindowTable = &[
    ("@cf/deepseek-ai/deepseek-r1-distill-qwen-32b", 80_000),
    ("@cf/google/gemma-3-12b-it", 80_000),
    ("@cf/google/gemma-4-26b-a4b-it", 131_072),
    ("@cf/meta/llama-2-7b-chat", 4_096),
    ("@cf/meta/llama-3-8b-instruct", 7_968),
    ("@cf/meta/llama-3.1-8b-instruct", 7_968),
    ("@cf/meta/llama-3.1-8b-instruct-awq", 8_192),
    ("@cf/meta/llama-3.1-8b-instruct-fast", 128_000),
    ("@cf/meta/llama-3.1-8b-instruct-fp8", 32_000),
    ("@cf/meta/llama-3.1-70b-instruct", 24_000),
    ("@cf/meta/llama-3.2-11b-vision-instruct", 128_000),
    ("@cf/meta/llama-3.2-1b-instruct", 60_000),
    ("@cf/meta/llama-3.2-3b-instruct", 80_000),
    ("@cf/meta/llama-3.3-70b-instruct-fp8-fast", 24_000),
    ("@cf/meta/llama-4-scout-17b-16e-instruct", 131_000),
    ("@cf/mistral/mistral-7b-instruct-v0.1", 2_824),
    ("@cf/mistral/mistral-7b-instruct-v0.2", 3_072),
    ("@cf/mistralai/mistral-small-3.1-24b-instruct", 128_000),
    ("@cf/openai/gpt-oss", 128_000),
    ("@cf/qwen/qwen2.5-coder-32b-instruct", 32_768),
    ("@cf/qwen/qwen3-30b-a3b-fp8", 32_768),
    ("@cf/qwen/qwq-32b", 24_000),
    ("@cf/zai-org/glm-4.7-flash", 131_072),
    ("@cf/zai-org/glm-5.2", 256_000),
    ("@hf/nousresearch/hermes-2-pro-mistral-7b", 24_000),
];

/// The window of an agent's model: as configured, or as known by the model's name, and no larger
/// than its provider has reported.
pub fn load_window(
    db: &dyn Database,
    now_ms: i64,
    configured: Option<i64>,
    model: &ModelName,
) -> Result<i64> {
    let known = configured.or_else(|| find_context_window(model));
    let whole = known.unwrap_or(DEFAULT_CONTEXT_TOKENS);
    let named = find_named_window(db, now_ms, &model.to_string())?;
    Ok(named.map_or(whole, |named| named.min(whole)))
}

/// The window of a model, if its name is a known one.
fn find_context_window(model: &ModelName) -> Option<i64> {
    let (provider, name) = model.served()?;
    let table = match provider {
        Provider::OpenAi => OPENAI,
        Provider::Anthropic => ANTHROPIC,
        Provider::WorkersAi => WORKERS_AI,
        // The name is the maker's, whichever package calls the model.
        Provider::Own => OPENAI,
    };
    // Routers put the maker's name in front: `openai/gpt-4o`, `anthropic/claude-…`.
    let bare = name.rsplit('/').next().unwrap_or(name);
    let known = |name: &str, table: WindowTable| {
        let known = table.iter().filter(|(start, _)| name.starts_with(start));
        let longest = known.max_by_key(|(start, _)| start.len());
        longest.map(|(_, tokens)| *tokens)
    };
    match provider {
        Provider::OpenAi | Provider::Own => known(bare, table).or_else(|| known(bare, ANTHROPIC)),
        Provider::Anthropic | Provider::WorkersAi => known(name, table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_models_have_a_window() {
        for (name, window) in [
            ("openai:gpt-4o-mini", Some(128_000)),
            ("openai:gpt-4", Some(8_192)),
            ("openai:gpt-4-0613", Some(8_192)),
            ("openai:gpt-4-turbo-2024-04-09", Some(128_000)),
            ("openai:gpt-4.1-nano", Some(1_000_000)),
            ("openai:gpt-5-mini", Some(272_000)),
            ("openai:openai/gpt-4o", Some(128_000)),
            ("openai:anthropic/claude-sonnet-4.5", Some(200_000)),
            ("openai:llama3.2", None),
            ("openai:m", None),
            ("anthropic:claude-sonnet-4-5", Some(200_000)),
            ("workers-ai:@cf/meta/llama-3.1-8b-instruct", Some(7_968)),
            (
                "workers-ai:@cf/meta/llama-3.1-8b-instruct-fast",
                Some(128_000),
            ),
            ("workers-ai:@cf/openai/gpt-oss-120b", Some(128_000)),
            ("workers-ai:@cf/somebody/new", None),
            ("demo", None),
        ] {
            let model = ModelName::parse("model", name).unwrap();
            assert_eq!(find_context_window(&model), window, "{name}");
        }
    }
}
