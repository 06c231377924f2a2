//! The digest of a path, computed from what a client of a provider's API sees: its
//! messages, without tools that run here and without system prompts. Two histories with the
//! same text have the same digest, however they are split into blocks.
//!
//! A digest only locates a position in the log. The model always receives the log's own
//! messages.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use base::action::Role;

/// Bytes of a digest: enough that collisions can't be constructed.
const DIGEST_BYTES: usize = 24;

/// One message of a history.
pub enum PathMessage<'a> {
    User {
        text: &'a str,
        /// The message's content other than its text.
        others: &'a [String],
    },
    Assistant {
        text: &'a str,
        /// The ids and names of its calls.
        calls: &'a [(&'a str, &'a str)],
    },
    Result {
        call_id: &'a str,
        text: &'a str,
    },
}

/// The digest of a path. The default is that of a path without messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathDigest(String);

impl PathDigest {
    pub fn from_text(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digest of the path extended by this message.
    #[must_use]
    pub fn then(&self, item: &PathMessage<'_>) -> Self {
        let mut hash = Sha256::new();
        let mut add = |piece: &str| {
            // Each piece is prefixed with its length, so that different lists of pieces
            // never produce the same bytes.
            hash.update((piece.len() as u64).to_le_bytes());
            hash.update(piece);
        };
        add(&self.0);
        match item {
            PathMessage::User { text, others } => {
                add(Role::User.name());
                add(&squeezed(text));
                others.iter().for_each(|other| add(other));
            }
            PathMessage::Assistant { text, calls } => {
                add(Role::Assistant.name());
                add(&squeezed(text));
                for (id, name) in *calls {
                    add(id);
                    add(name);
                }
            }
            PathMessage::Result { call_id, text } => {
                add(Role::Tool.name());
                add(call_id);
                add(&squeezed(text));
            }
        }
        Self(digest_text(&hash.finalize()))
    }
}

/// The digest of some bytes, encoded like a path digest.
pub fn digest_of(pieces: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update((piece.len() as u64).to_le_bytes());
        hash.update(piece);
    }
    digest_text(&hash.finalize())
}

fn digest_text(hash: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(hash.get(..DIGEST_BYTES).unwrap_or_default())
}

/// A text without differences that clients introduce: white space at its ends and at line
/// ends, and empty lines. Leading white space of lines is kept.
fn squeezed(text: &str) -> String {
    let lines = text.lines().map(str::trim_end);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> String {
        let item = PathMessage::User { text, others: &[] };
        PathDigest::default().then(&item).0
    }

    #[test]
    fn whitespace_changes_do_not_change_the_digest() {
        for same in ["a\n  b", " a \n\n  b\n", "a\r\n  b "] {
            assert_eq!(user(same), user("a\n  b"), "{same:?}");
        }
        for other in ["a\nb", "a b", "a\n  B", ""] {
            assert_ne!(user(other), user("a\n  b"), "{other:?}");
        }
    }

    #[test]
    fn role_and_preceding_messages_change_the_digest() {
        let root = PathDigest::default();
        let text = "hi";
        let of_user = root.then(&PathMessage::User { text, others: &[] });
        let of_agent = root.then(&PathMessage::Assistant { text, calls: &[] });
        let with_call = root.then(&PathMessage::Assistant {
            text,
            calls: &[("c", "look")],
        });
        let with_image = root.then(&PathMessage::User {
            text,
            others: &["{}".to_owned()],
        });
        let result = |call_id: &str| root.then(&PathMessage::Result { call_id, text });
        let twice = of_user.then(&PathMessage::User { text, others: &[] });
        let all = [
            root.clone(),
            of_user,
            of_agent,
            with_call,
            with_image,
            result("c"),
            result("d"),
            twice,
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(all.iter().skip(index + 1).all(|other| other != one));
        }
    }
}
