//! A file in a user's message: its URL and its type. Providers accept different files; the
//! code that encodes a request decides in which form a file is sent.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use base::error::{Error, Result};
use base::part::{PartKind, field, kind};

/// The most files of one message that are sent to a model; a message may contain more.
pub const MAX_FILES: usize = 20;

/// The most characters of a media type, and of a file's name.
const MAX_NAME_CHARS: usize = 200;

/// The approximate token cost of an average image.
const IMAGE_TOKENS: i64 = 1000;

/// The estimated cost of a PDF: every page as text and as an image, about 2,000 tokens
/// together. A page takes about 100,000 bytes in base64, and a PDF counts for at most ten
/// pages. Models that don't read PDFs receive only the name. Errors of the estimate are
/// corrected after a refusal because of length.
const PDF_BYTES_PER_TOKEN: i64 = 50;
const MAX_PDF_TOKENS: i64 = 20_000;

/// The most bytes of a text file that are sent to a model: about ten pages. A multiple of
/// three, so that a cut in base64 falls between groups.
pub const MAX_INLINED_BYTES: usize = 30_000;

/// The media type of a PDF.
pub const PDF: &str = "application/pdf";

/// Media types of texts that don't begin with `text/`.
const TEXT_TYPES: &[&str] = &[
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
    "application/sql",
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct File {
    pub media_type: String,
    /// A `data:` or an `https:` URL.
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
}

impl File {
    /// Parses a `file` part of a stored message. `None` if the file can't be sent to any
    /// model.
    fn from_part(part: &Value) -> Option<Self> {
        let text = |name: &str| part.get(name).and_then(Value::as_str).map(str::to_owned);
        if part.get(field::KIND)?.as_str().map(PartKind::parse) != Some(PartKind::File) {
            return None;
        }
        let file = Self {
            media_type: text(field::MEDIA_TYPE)?,
            url: text(field::URL)?,
            filename: text(field::FILENAME),
        };
        file.problem().is_none().then_some(file)
    }

    /// Renders a `file` part of a message.
    pub fn to_part(&self) -> Value {
        let mut part = json!({
            field::KIND: kind::FILE,
            field::MEDIA_TYPE: self.media_type,
            field::URL: self.url,
        });
        if let (Some(filename), Some(part)) = (&self.filename, part.as_object_mut()) {
            part.insert(field::FILENAME.to_owned(), json!(filename));
        }
        part
    }

    /// The media type without its parameters, in lower case.
    pub fn kind(&self) -> String {
        let head = self.media_type.split(';').next().unwrap_or_default();
        head.trim().to_lowercase()
    }

    /// Whether the file is text, which can be sent to a model as words.
    pub fn is_text(&self) -> bool {
        let kind = self.kind();
        kind.starts_with("text/")
            || kind.ends_with("+json")
            || kind.ends_with("+xml")
            || TEXT_TYPES.contains(&kind.as_str())
    }

    /// The approximate number of tokens that the file costs.
    pub fn tokens(&self) -> i64 {
        if self.is_text() {
            // Four bytes per token, as in Latin text.
            self.url.len().min(MAX_INLINED_BYTES) as i64 / 4
        } else if self.kind() == PDF {
            // The length of a file at an `https:` URL is unknown.
            let by_length = self.url.len() as i64 / PDF_BYTES_PER_TOKEN;
            by_length.clamp(IMAGE_TOKENS, MAX_PDF_TOKENS)
        } else {
            IMAGE_TOKENS
        }
    }

    /// The invalid field, and the end of a sentence that starts with its name.
    fn problem(&self) -> Option<(&'static str, &'static str)> {
        let is_short = |text: &str| text.chars().take(MAX_NAME_CHARS + 1).count() <= MAX_NAME_CHARS;
        if self.media_type.is_empty() || !is_short(&self.media_type) {
            return Some(("mediaType", "must have 1 to 200 characters"));
        }
        if !self.filename.as_deref().is_none_or(is_short) {
            return Some(("filename", "must have at most 200 characters"));
        }
        let begins = |scheme: &str| {
            let head = self.url.get(..scheme.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(scheme))
        };
        if begins("data:") || begins("https:") {
            return None;
        }
        Some(("url", "must be a `data:` or an `https:` URL"))
    }
}

/// The files of a message's parts, in order.
pub fn files_of_parts(parts: &[Value]) -> Vec<File> {
    parts
        .iter()
        .filter_map(File::from_part)
        .take(MAX_FILES)
        .collect()
}

/// Checks a caller's files against the limits.
pub fn check_files(field: &str, files: &[File]) -> Result<()> {
    let field = format!("{field}.files");
    for (index, file) in files.iter().enumerate() {
        if let Some((name, how)) = file.problem() {
            let field = format!("{field}[{index}].{name}");
            return Err(Error::invalid(&field, format!("`{field}` {how}.")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_a_model_accepts_are_allowed() {
        let long = "x".repeat(201);
        let parts = [
            json!({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AA==", "filename": "a.png"}),
            json!({"type": "file", "mediaType": "image/png", "url": "HTTPS://example.com/a.png"}),
            json!({"type": "file", "mediaType": "image/png", "url": "http://example.com/a.png"}),
            json!({"type": "file", "mediaType": "image/png", "url": "file:///etc/passwd"}),
            json!({"type": "file", "mediaType": "", "url": "data:,"}),
            json!({"type": "file", "mediaType": long, "url": "data:,"}),
            json!({"type": "file", "url": "data:,"}),
            json!({"type": "text", "mediaType": "a/b", "url": "data:,"}),
        ];
        let names: Vec<_> = files_of_parts(&parts)
            .into_iter()
            .map(|file| (file.url, file.filename))
            .collect();
        assert_eq!(
            names,
            [
                (
                    "data:image/png;base64,AA==".to_owned(),
                    Some("a.png".to_owned())
                ),
                ("HTTPS://example.com/a.png".to_owned(), None)
            ]
        );
    }

    #[test]
    fn a_pdf_is_estimated_by_its_length() {
        let tokens = |kind: &str, url: String| {
            let file = File {
                media_type: kind.to_owned(),
                url,
                filename: None,
            };
            file.tokens()
        };
        let data = |kind: &str, bytes: usize| format!("data:{kind};base64,{}", "A".repeat(bytes));
        for (bytes, estimate) in [(100, 1_000), (499_972, 10_000), (4 << 20, 20_000)] {
            assert_eq!(tokens(PDF, data(PDF, bytes)), estimate, "{bytes}");
        }
        assert_eq!(tokens("Application/PDF; a=b", data(PDF, 499_972)), 10_000);
        assert_eq!(tokens(PDF, "https://example.com/a.pdf".to_owned()), 1_000);
        assert_eq!(tokens("image/png", data("image/png", 499_972)), 1_000);
    }

    #[test]
    fn a_message_sends_a_bounded_number_of_files() {
        let part = json!({"type": "file", "mediaType": "a/b", "url": "data:,"});
        assert_eq!(files_of_parts(&vec![part; MAX_FILES + 1]).len(), MAX_FILES);
    }
}
