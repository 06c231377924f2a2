//! Splits a JSON text into tokens, for code that inspects a text without parsing it into a
//! type. If the text is truncated or isn't JSON, the tokens before the fault are still
//! returned.

use super::scan::count_unescaped;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonPiece<'a> {
    /// The start of an object or an array.
    Open,
    Close,
    Colon,
    Comma,
    /// The text between the quotes, and its offset. A name is a string before a colon.
    String {
        inside: &'a str,
        start: usize,
    },
    /// A number, `true`, `false` or `null`, as written.
    Scalar(&'a str),
}

/// The tokens of a text, from its start.
pub fn pieces(text: &str) -> Pieces<'_> {
    Pieces { text, at: 0 }
}

pub struct Pieces<'a> {
    text: &'a str,
    at: usize,
}

impl Pieces<'_> {
    /// The end offset of the last token.
    pub fn offset(&self) -> usize {
        self.at.min(self.text.len())
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = JsonPiece<'a>;

    fn next(&mut self) -> Option<JsonPiece<'a>> {
        let bytes = self.text.as_bytes();
        let start = loop {
            match bytes.get(self.at)? {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                _ => break self.at,
            }
        };
        self.at += 1;
        Some(match bytes.get(start)? {
            b'{' | b'[' => JsonPiece::Open,
            b'}' | b']' => JsonPiece::Close,
            b':' => JsonPiece::Colon,
            b',' => JsonPiece::Comma,
            b'"' => {
                let end = find_quote(bytes, self.at);
                let inside = self.text.get(self.at..end)?;
                let start = std::mem::replace(&mut self.at, end + 1);
                JsonPiece::String { inside, start }
            }
            _ => {
                let rest = bytes.get(self.at..).unwrap_or_default();
                let end = rest.iter().position(|byte| ends_scalar(*byte));
                self.at += end.unwrap_or(rest.len());
                JsonPiece::Scalar(self.text.get(start..self.at)?)
            }
        })
    }
}

fn ends_scalar(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\n' | b'\t' | b'\r' | b'"' | b'{' | b'}' | b'[' | b']' | b':' | b','
    )
}

/// The offset of the quote that ends a string, or of the end of the text.
fn find_quote(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        at += count_unescaped(bytes.get(at..).unwrap_or_default());
        match bytes.get(at) {
            None => return bytes.len(),
            Some(b'"') => return at,
            Some(b'\\') => at += 2,
            // A control character, which is invalid in a JSON string.
            Some(_) => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_emitted_in_pieces() {
        let read: Vec<JsonPiece<'_>> = pieces(r#" {"a\"}": [1.5,true , "é"]}"#).collect();
        assert_eq!(
            read,
            [
                JsonPiece::Open,
                JsonPiece::String {
                    inside: r#"a\"}"#,
                    start: 3
                },
                JsonPiece::Colon,
                JsonPiece::Open,
                JsonPiece::Scalar("1.5"),
                JsonPiece::Comma,
                JsonPiece::Scalar("true"),
                JsonPiece::Comma,
                JsonPiece::String {
                    inside: "é",
                    start: 23
                },
                JsonPiece::Close,
                JsonPiece::Close,
            ]
        );
    }

    #[test]
    fn a_truncated_text_is_emitted_up_to_the_cut() {
        for (text, last) in [
            (
                r#"["ab"#,
                JsonPiece::String {
                    inside: "ab",
                    start: 2,
                },
            ),
            (
                r#"["ab\"#,
                JsonPiece::String {
                    inside: r"ab\",
                    start: 2,
                },
            ),
            (
                r#"[""#,
                JsonPiece::String {
                    inside: "",
                    start: 2,
                },
            ),
            ("[tru", JsonPiece::Scalar("tru")),
            ("é:é", JsonPiece::Scalar("é")),
        ] {
            assert_eq!(pieces(text).last(), Some(last), "{text}");
        }
    }
}
