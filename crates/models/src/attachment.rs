//! Decides how a file is sent to a model: as an image, if providers accept its type; as the
//! text of a text file; as a PDF, if the model reads PDFs; otherwise as a label with the
//! file's name.
//!
//! Independent of any provider, and fetches nothing: the URL of an `https:` image is passed
//! on, and the provider decides whether to fetch it.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::file::{File, MAX_INLINED_BYTES, PDF};

/// The image types that every provider with vision accepts.
const IMAGE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The longest URL that a label repeats, in characters.
const MAX_SHOWN_URL_CHARS: usize = 2_000;

/// The longest PDF that is sent to a model, in base64. Longer ones are only named.
const MAX_PDF_BYTES: usize = 4 << 20;

/// How a provider's model accepts PDFs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PdfSupport {
    Nothing,
    /// Only as bytes.
    Bytes,
    /// As bytes, or as a URL to fetch.
    BytesOrAddress,
}

#[derive(Debug, PartialEq)]
pub enum RenderedAttachment<'a> {
    Image {
        media_type: &'static str,
        source: FileSource<'a>,
    },
    Pdf {
        /// The file's name, on one line.
        name: String,
        source: FileSource<'a>,
    },
    Text(String),
}

#[derive(Debug, PartialEq)]
pub enum FileSource<'a> {
    Base64(&'a str),
    Url(&'a str),
}

pub fn show(file: &File, pdfs: PdfSupport) -> RenderedAttachment<'_> {
    let kind = file.kind();
    if let Some(source) = pdf_source(file, &kind, pdfs) {
        let name = file.filename.as_deref().map(clean);
        return RenderedAttachment::Pdf {
            name: name.unwrap_or_else(|| "document.pdf".to_owned()),
            source,
        };
    }
    let image_type = IMAGE_TYPES.iter().find(|known| **known == kind);
    match (DataUrl::parse(&file.url), image_type) {
        (Some(data), Some(media_type)) if data.is_file_data() => RenderedAttachment::Image {
            media_type,
            source: FileSource::Base64(data.payload),
        },
        (None, Some(media_type)) => RenderedAttachment::Image {
            media_type,
            source: FileSource::Url(&file.url),
        },
        (Some(data), None) if file.is_text() => {
            let (text, is_cut) = data.text();
            let note = if is_cut { "\n[… cut here]" } else { "" };
            let label = label(file);
            RenderedAttachment::Text(format!("{label}\n{text}{note}\n[End of the attachment]"))
        }
        _ => RenderedAttachment::Text(label(file)),
    }
}

/// `None`: the file is not a PDF, or it can't be sent to the model.
fn pdf_source<'a>(file: &'a File, kind: &str, pdfs: PdfSupport) -> Option<FileSource<'a>> {
    if kind != PDF || pdfs == PdfSupport::Nothing {
        return None;
    }
    match DataUrl::parse(&file.url) {
        Some(data) => (data.is_file_data() && data.payload.len() <= MAX_PDF_BYTES)
            .then_some(FileSource::Base64(data.payload)),
        None => (pdfs == PdfSupport::BytesOrAddress).then_some(FileSource::Url(&file.url)),
    }
}

/// The name is untrusted: it must stay on its line and in its brackets.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '[' => '(',
            ']' => ')',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}

/// `[Attachment: report.pdf, application/pdf]`
pub fn label(file: &File) -> String {
    let mut words = Vec::new();
    words.extend(file.filename.as_deref().map(clean));
    words.push(clean(&file.kind()));
    let is_address = DataUrl::parse(&file.url).is_none();
    if is_address && file.url.chars().take(MAX_SHOWN_URL_CHARS + 1).count() <= MAX_SHOWN_URL_CHARS {
        words.push(clean(&file.url));
    }
    format!("[Attachment: {}]", words.join(", "))
}

struct DataUrl<'a> {
    is_base64: bool,
    payload: &'a str,
}

impl<'a> DataUrl<'a> {
    fn parse(url: &'a str) -> Option<Self> {
        let scheme = url.get(..5)?;
        if !scheme.eq_ignore_ascii_case("data:") {
            return None;
        }
        let (head, payload) = url.get(5..)?.split_once(',').unwrap_or_default();
        let mut parameters = head.split(';').map(str::trim);
        Some(Self {
            is_base64: parameters.any(|name| name.eq_ignore_ascii_case("base64")),
            payload,
        })
    }

    /// Whether the payload can be passed on unchanged.
    fn is_file_data(&self) -> bool {
        let is_digit =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        self.is_base64 && !self.payload.is_empty() && self.payload.bytes().all(is_digit)
    }

    /// The text up to the limit, and whether it was truncated.
    fn text(&self) -> (String, bool) {
        let mut bytes = if self.is_base64 {
            self.decode_base64()
        } else {
            self.decode_percent()
        };
        let is_cut = bytes.len() > MAX_INLINED_BYTES;
        bytes.truncate(MAX_INLINED_BYTES);
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if is_cut {
            // Drops the incomplete character at the cut.
            text.truncate(text.trim_end_matches('\u{fffd}').len());
        }
        (text, is_cut)
    }

    fn decode_base64(&self) -> Vec<u8> {
        let lenient = GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true);
        // Decodes one group more than the limit, to detect whether there is more.
        let longest = (MAX_INLINED_BYTES / 3 + 1) * 4;
        let payload = self.payload.get(..longest).unwrap_or(self.payload);
        GeneralPurpose::new(&STANDARD, lenient)
            .decode(payload)
            .unwrap_or_default()
    }

    fn decode_percent(&self) -> Vec<u8> {
        let mut bytes = self.payload.bytes();
        let mut decoded = Vec::new();
        while let Some(byte) = bytes.next() {
            if decoded.len() > MAX_INLINED_BYTES {
                break;
            }
            decoded.push(read_escape(&mut bytes, byte).unwrap_or(byte));
        }
        decoded
    }
}

/// Decodes an escape such as `%41`. If this is not an escape, consumes nothing more.
fn read_escape(bytes: &mut std::str::Bytes<'_>, first: u8) -> Option<u8> {
    if first != b'%' {
        return None;
    }
    let mut ahead = bytes.clone();
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
    let value = digit(ahead.next())? * 16 + digit(ahead.next())?;
    *bytes = ahead;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(media_type: &str, url: &str) -> File {
        File {
            media_type: media_type.to_owned(),
            url: url.to_owned(),
            filename: Some("a]\nb".to_owned()),
        }
    }

    fn shown_text(file: &File) -> String {
        match show(file, PdfSupport::Nothing) {
            RenderedAttachment::Text(text) => text,
            shown => panic!("{shown:?}"),
        }
    }

    #[test]
    fn an_image_is_sent_as_data_or_url() {
        assert_eq!(
            show(
                &file("image/PNG; q=1", "data:image/png;base64,iVBORw=="),
                PdfSupport::Nothing
            ),
            RenderedAttachment::Image {
                media_type: "image/png",
                source: FileSource::Base64("iVBORw==")
            }
        );
        assert_eq!(
            show(
                &file("image/webp", "https://example.com/a.webp"),
                PdfSupport::Nothing
            ),
            RenderedAttachment::Image {
                media_type: "image/webp",
                source: FileSource::Url("https://example.com/a.webp")
            }
        );
    }

    #[test]
    fn an_unsupported_file_is_named_in_brackets() {
        for (media_type, url) in [
            ("application/pdf", "data:application/pdf;base64,AAAA"),
            ("image/png", "data:image/png;base64,not base64"),
            ("image/png", "data:image/png,raw"),
            ("image/png", "data:"),
        ] {
            let text = shown_text(&file(media_type, url));
            assert_eq!(text, format!("[Attachment: a) b, {media_type}]"));
        }
        assert_eq!(
            shown_text(&file("application/pdf", "https://example.com/x.pdf")),
            "[Attachment: a) b, application/pdf, https://example.com/x.pdf]"
        );
    }

    #[test]
    fn a_pdf_within_the_limit_is_sent_to_models_that_read_it() {
        let data = |bytes: usize| format!("data:application/pdf;base64,{}", "A".repeat(bytes));
        let address = "https://example.com/x.pdf";
        for (url, pdfs, is_shown) in [
            (data(4), PdfSupport::Nothing, false),
            (data(4), PdfSupport::Bytes, true),
            (data(MAX_PDF_BYTES), PdfSupport::Bytes, true),
            (data(MAX_PDF_BYTES + 4), PdfSupport::Bytes, false),
            (data(4), PdfSupport::BytesOrAddress, true),
            (
                "data:application/pdf,raw".to_owned(),
                PdfSupport::Bytes,
                false,
            ),
            (address.to_owned(), PdfSupport::Bytes, false),
            (address.to_owned(), PdfSupport::BytesOrAddress, true),
        ] {
            let file = file("application/pdf", &url);
            let shown = show(&file, pdfs);
            let is_pdf = matches!(&shown, RenderedAttachment::Pdf { name, .. } if name == "a) b");
            assert_eq!(is_pdf, is_shown, "{} {pdfs:?}", url.len());
            assert_eq!(matches!(shown, RenderedAttachment::Text(_)), !is_shown);
        }
        let image = file("image/png", "data:image/png;base64,AAAA");
        assert!(matches!(
            show(&image, PdfSupport::Bytes),
            RenderedAttachment::Image { .. }
        ));
    }

    #[test]
    fn a_text_file_is_decoded_from_any_encoding() {
        for url in [
            "data:text/plain;base64,aMOpbGxv",
            "data:text/plain;charset=utf-8;base64,aMOpbGxv",
            "data:text/plain,h%C3%A9llo",
            "data:,h\u{e9}llo",
        ] {
            assert_eq!(
                shown_text(&file("text/plain", url)),
                "[Attachment: a) b, text/plain]\nh\u{e9}llo\n[End of the attachment]"
            );
        }
        assert!(shown_text(&file("application/json", "data:,100%25 %zz%4")).contains("100% %zz%4"));
        assert!(shown_text(&file("image/svg+xml", "data:,<svg/>")).contains("<svg/>"));
    }

    #[test]
    fn a_long_text_is_truncated_between_characters() {
        for (url, is_cut) in [
            (format!("data:,{}", "x".repeat(MAX_INLINED_BYTES)), false),
            (format!("data:,{}", "x".repeat(MAX_INLINED_BYTES + 1)), true),
            (
                format!("data:,x{}", "é".repeat(MAX_INLINED_BYTES / 2)),
                true,
            ),
            (
                format!("data:;base64,{}", "QUJD".repeat(MAX_INLINED_BYTES / 3)),
                false,
            ),
            (
                format!("data:;base64,{}", "QUJD".repeat(MAX_INLINED_BYTES / 3 + 9)),
                true,
            ),
        ] {
            let text = shown_text(&file("text/plain", &url));
            assert_eq!(text.contains("[… cut here]"), is_cut);
            assert!(text.len() < MAX_INLINED_BYTES + 100);
            assert!(!text.contains('\u{fffd}'));
        }
    }
}
