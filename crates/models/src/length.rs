//! Recognizes that a provider refused a request because it is too long for the model, and
//! reads the numbers in the refusal. Each provider uses different wording;
//! `models/recorded/too_long/` contains examples.

use base::error::{Error, ErrorKind};

/// How many bytes of a failure are searched for the phrases.
const MAX_READ_BYTES: usize = 4_000;

/// How many bytes before and after a phrase are searched for numbers.
const MAX_NUMBERS_BYTES: usize = 400;

/// Smaller numbers are not token counts of a request.
const MIN_TOKENS: i64 = 16;

/// The phrases of a refusal because of length, in lower case.
const PHRASES: &[&str] = &[
    "context_length_exceeded",
    "context length exceeded",
    "context size has been exceeded",
    "estimated number of input and maximum output tokens",
    "exceed context limit",
    "exceed_context_size",
    "exceeds the available context size",
    "exceeds the context window",
    "exceeds the model's context",
    "input is too long",
    "input token count",
    "input tokens exceed",
    "inputs` tokens + `max_new_tokens",
    "maximum context length",
    "model_context_window_exceeded",
    "prompt is too long",
    "prompt too long",
    "request_too_large",
    "requested token count exceeds",
    "requested tokens (",
    "too large for model with",
    "too many input tokens",
];

/// The phrases that precede a limit.
const BEFORE_LIMIT: &[&str] = &[
    "maximum context length is",
    "maximum context length of",
    "context window of",
    "limit of",
    "limit (",
    "allowed (",
    "too large for model with",
    ">",
    "<=",
];

/// A refusal because of length, in tokens as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LengthRefusal {
    /// The tokens of the request.
    pub sent: Option<i64>,
    /// The most tokens that a request may have, excluding the requested answer.
    pub most: Option<i64>,
    /// The model's whole window, as the provider reports it.
    pub window: Option<i64>,
}

impl LengthRefusal {
    /// Parses a provider's answer: JSON or text.
    pub fn find(text: &str) -> Option<Self> {
        let end = text.floor_char_boundary(MAX_READ_BYTES);
        let text = text.get(..end)?.to_ascii_lowercase();
        let mut found: Vec<usize> = PHRASES
            .iter()
            .filter_map(|words| text.find(words))
            .collect();
        found.sort_unstable();
        found.first()?;
        // llama.cpp returns the numbers in separate fields.
        let field = |name: &str| {
            let after = text.split_once(name)?.1.trim_start_matches([':', ' ']);
            read_number(after).map(|(number, _)| number)
        };
        let window = field("\"n_ctx\"");
        let named = Self {
            sent: field("\"n_prompt_tokens\""),
            most: window,
            window,
        };
        if named != Self::default() {
            return Some(named);
        }
        // The phrase may be in a short code, and the numbers in another string.
        let mut read = found.iter().filter_map(|start| Self::read(&text, *start));
        Some(
            read.find(|found| *found != Self::default())
                .unwrap_or_default(),
        )
    }

    /// Reads the numbers around the phrase at this offset. Their sentence is a JSON string,
    /// or plain text.
    fn read(text: &str, start: usize) -> Option<Self> {
        let (before, after) = text.split_at_checked(start)?;
        let after = after.get(..after.floor_char_boundary(MAX_NUMBERS_BYTES))?;
        let before =
            before.get(before.ceil_char_boundary(start.saturating_sub(MAX_NUMBERS_BYTES))..)?;
        let head = before.rsplit('"').next().unwrap_or_default();
        let tail = after.split('"').next().unwrap_or_default();
        Some(Self::from_numbers(&numbers_of(&format!("{head}{tail}"))))
    }

    fn from_numbers(numbers: &[NumberInText<'_>]) -> Self {
        let of = |wanted: NumberMeaning| {
            let mut found = numbers
                .iter()
                .filter(move |number| number.means() == wanted);
            found.next().map(|number| number.value)
        };
        let others = numbers
            .iter()
            .filter(|number| number.means() == NumberMeaning::Other);
        let most = of(NumberMeaning::Limit);
        let answer = of(NumberMeaning::Answer).unwrap_or(0);
        Self {
            sent: of(NumberMeaning::Input).or(others.map(|number| number.value).max()),
            most: most.map(|most| if answer < most { most - answer } else { most }),
            window: most,
        }
    }

    /// Adds the refusal to the error that the caller gets.
    pub fn mark(self, error: Error) -> Error {
        let error = error.with("refused", "length");
        let error = match self.sent {
            Some(sent) => error.with("sentTokens", sent),
            None => error,
        };
        let error = match self.most {
            Some(most) => error.with("maxTokens", most),
            None => error,
        };
        let error = match self.window {
            Some(window) => error.with("windowTokens", window),
            None => error,
        };
        let Self { sent, most, window } = self;
        error.of_kind(ErrorKind::RefusedForLength { sent, most, window })
    }

    /// The refusal in an error, if it is one.
    pub fn of(error: &Error) -> Option<Self> {
        match error.kind {
            Some(ErrorKind::RefusedForLength { sent, most, window }) => {
                Some(Self { sent, most, window })
            }
            _ => None,
        }
    }
}

/// A number, and the words around it.
struct NumberInText<'a> {
    value: i64,
    before: &'a str,
    after: &'a str,
}

#[derive(Clone, Copy, PartialEq)]
enum NumberMeaning {
    Limit,
    /// Tokens of the requested answer.
    Answer,
    Input,
    Other,
}

impl NumberInText<'_> {
    fn means(&self) -> NumberMeaning {
        let before = self.before.trim_end();
        let after = self.after.split(['.', ',', ';', ':', '(', ')', '>']).next();
        let after = after.unwrap_or_default();
        let mentions = |words: &[&str]| words.iter().any(|word| after.contains(word));
        if BEFORE_LIMIT.iter().any(|words| before.ends_with(words))
            || after.trim_start().starts_with("maximum")
        {
            NumberMeaning::Limit
        } else if before.ends_with('+') || mentions(&["completion", "output", "max_new_tokens"]) {
            NumberMeaning::Answer
        } else if mentions(&["input", "messages", "prompt"]) {
            NumberMeaning::Input
        } else {
            NumberMeaning::Other
        }
    }
}

fn numbers_of(sentence: &str) -> Vec<NumberInText<'_>> {
    let mut numbers: Vec<NumberInText<'_>> = Vec::new();
    let mut rest = sentence;
    while let Some(index) = rest.find(|c: char| c.is_ascii_digit()) {
        let (words, tail) = rest.split_at_checked(index).unwrap_or((rest, ""));
        if let Some(last) = numbers.last_mut() {
            last.after = words;
        }
        let Some((value, length)) = read_number(tail) else {
            break;
        };
        rest = tail.get(length..).unwrap_or_default();
        numbers.push(NumberInText {
            value,
            before: words,
            after: rest,
        });
    }
    numbers.retain(|number| number.value >= MIN_TOKENS);
    numbers
}

/// The number at the start of a text, and its length. It may have thousands separators.
fn read_number(text: &str) -> Option<(i64, usize)> {
    let is_part = |(index, c): (usize, char)| {
        let next = text.as_bytes().get(index + 1);
        c.is_ascii_digit() || (c == ',' && next.is_some_and(u8::is_ascii_digit))
    };
    let length = text
        .char_indices()
        .take_while(|part| is_part(*part))
        .count();
    let digits: String = text.get(..length)?.chars().filter(|c| *c != ',').collect();
    Some((digits.parse().ok()?, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! recorded {
        ($name:literal) => {
            include_str!(concat!("recorded/too_long/", $name))
        };
    }

    #[test]
    fn each_providers_length_error_is_recognized() {
        for (text, sent, most) in [
            (recorded!("openai.json"), Some(150_123), Some(128_000)),
            (recorded!("openai_gpt5.json"), Some(289_650), Some(272_000)),
            (recorded!("openai_without_numbers.json"), None, None),
            (recorded!("anthropic.json"), Some(207_791), Some(200_000)),
            (
                recorded!("anthropic_with_answer.json"),
                Some(199_759),
                Some(191_808),
            ),
            (recorded!("anthropic_bytes.json"), None, None),
            (recorded!("workers_ai.txt"), Some(9_500), Some(7_968)),
            (
                recorded!("workers_ai_vllm.txt"),
                Some(125_073),
                Some(115_072),
            ),
            (
                recorded!("workers_ai_total.json"),
                Some(31_216),
                Some(30_338),
            ),
            (recorded!("llama_cpp.json"), Some(14_429), Some(8_192)),
            (recorded!("llama_cpp_python.json"), Some(4_516), Some(2_048)),
            (recorded!("vllm.json"), Some(112_946), Some(6_384)),
            (recorded!("openrouter.json"), Some(42_832), Some(32_768)),
            (recorded!("gemini.json"), Some(314_175), Some(131_072)),
            (recorded!("mistral.json"), Some(65_673), Some(32_768)),
            (recorded!("tgi.json"), Some(2_286), Some(1_948)),
        ] {
            let found = LengthRefusal::find(text).unwrap();
            assert_eq!((found.sent, found.most), (sent, most), "{text}");
            assert_eq!(found.window.is_some(), most.is_some(), "{text}");
        }
    }

    #[test]
    fn the_window_includes_the_tokens_of_the_answer() {
        for (text, window) in [
            (recorded!("anthropic_with_answer.json"), 200_000),
            (recorded!("workers_ai_vllm.txt"), 131_072),
            (recorded!("workers_ai_total.json"), 256_000),
            (recorded!("llama_cpp.json"), 8_192),
            (recorded!("vllm.json"), 16_384),
            (recorded!("tgi.json"), 2_048),
        ] {
            let found = LengthRefusal::find(text).unwrap();
            assert_eq!(found.window, Some(window), "{text}");
        }
    }

    #[test]
    fn the_sizes_are_found_wherever_the_code_appears() {
        let sentence = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
        for text in [
            format!(r#"{{"code":"context_length_exceeded","message":"{sentence}"}}"#),
            format!(r#"{{"message":"{sentence}","code":"context_length_exceeded"}}"#),
        ] {
            let found = LengthRefusal::find(&text).unwrap();
            assert_eq!(
                (found.sent, found.most),
                (Some(9_000), Some(8_192)),
                "{text}"
            );
        }
    }

    #[test]
    fn other_errors_are_not_length_errors() {
        for text in [
            "",
            r#"{"error":{"message":"Rate limit reached for gpt-4o: Limit 30000, Requested 40000","code":"rate_limit_exceeded"}}"#,
            r#"{"error":{"message":"The prompt contains what is not allowed","code":"content_filter"}}"#,
            r#"{"error":{"message":"max_tokens is too large: 262144","code":null}}"#,
            "AiError: 5007: No such model @cf/x or task",
        ] {
            assert_eq!(LengthRefusal::find(text), None, "{text}");
        }
    }

    #[test]
    fn absurd_sizes_are_ignored() {
        for number in ["99999999999999999999999", "0", "1,2,3", ","] {
            let text = format!("prompt is too long: {number} tokens > {number} maximum");
            let found = LengthRefusal::find(&text).unwrap();
            assert!(found.sent.is_none_or(|sent| sent >= MIN_TOKENS), "{text}");
        }
        let long = format!(
            "{}prompt is too long: 20 > 10{}",
            "é".repeat(3_900),
            "9".repeat(5_000)
        );
        LengthRefusal::find(&long);
        LengthRefusal::find(&format!("{}prompt is too long", "語".repeat(1_200)));
    }

    #[test]
    fn an_error_carries_its_length_refusal() {
        let error = || Error::new(base::error::Code::ModelFailed, "x");
        for refusal in [
            LengthRefusal::default(),
            LengthRefusal {
                sent: Some(5_000),
                most: Some(4_000),
                window: Some(4_500),
            },
        ] {
            assert_eq!(LengthRefusal::of(&refusal.mark(error())), Some(refusal));
        }
        assert_eq!(LengthRefusal::of(&error()), None);
    }
}
