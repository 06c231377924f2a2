//! The adapters, tested with recorded answers and with known quirks of providers.

mod answer;
mod call;
mod encoded;
mod quirks;
mod recorded;
mod responses;

use super::AnswerPart;
use super::call_ids::CallIds;
use super::choice::Provider;
use super::decode::Decoder;

/// The answer in these chunks, one line per part.
fn received(provider: Provider, chunks: &[&[u8]]) -> Vec<String> {
    let mut decoder = Decoder::new(provider, CallIds::default(), false);
    let mut parts = Vec::new();
    for chunk in chunks {
        parts.extend(decoder.push(chunk));
    }
    parts.extend(decoder.end());
    parts.iter().map(line).collect()
}

fn line(part: &AnswerPart) -> String {
    match part {
        AnswerPart::Text(text) => format!("text {text}"),
        AnswerPart::Reasoning(text) => format!("reasoning {text}"),
        AnswerPart::CallStart { index, id, name } => format!("start {index} {id} {name}"),
        AnswerPart::CallDelta { index, text } => format!("delta {index} {text}"),
        AnswerPart::Call {
            index,
            id,
            name,
            arguments,
        } => format!("call {index} {id} {name} {arguments}"),
        AnswerPart::ProviderData(data) => format!("kept {data}"),
        AnswerPart::Usage(usage) => {
            let cached = match usage.cached_input_tokens {
                0 => String::new(),
                cached => format!(", {cached} cached"),
            };
            format!(
                "usage {} {}{cached}",
                usage.input_tokens, usage.output_tokens
            )
        }
        AnswerPart::Event(event) => format!("event {event}"),
        AnswerPart::Finish(reason) => format!("finish {reason:?}"),
        AnswerPart::Failed(sentence) => format!("failed {sentence}"),
    }
}
