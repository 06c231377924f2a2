//! An entry to write, and its validation.

use serde_json::Value as Json;

use super::definition::check_description;
use super::origin::MarksChange;
use super::source::check_key;
use base::error::{Error, Result};

/// The most bytes of an entry's text: a chunk of knowledge, not a file.
pub const MAX_ENTRY_BYTES: usize = 64 << 10;

/// The most entries that one entry replaces.
pub const MAX_SUPERSEDED: usize = 20;

pub fn check_entry(key: &str, title: Option<&str>, content: &str) -> Result<()> {
    check_key(key).map_err(|reason| Error::invalid("key", format!("`key` {reason}.")))?;
    if let Some(title) = title {
        check_description("title", title)?;
    }
    if content.len() > MAX_ENTRY_BYTES {
        let error = Error::payload_too_large("`content`", MAX_ENTRY_BYTES, content.len());
        return Err(error.with_field("content"));
    }
    Ok(())
}

/// An entry to write.
pub struct EntryText<'a> {
    pub key: &'a str,
    pub title: Option<&'a str>,
    pub content: &'a str,
    pub valid_from: Option<i64>,
    pub valid_until: Option<i64>,
    /// The keys of the entries that this one replaces. `None`: those that it replaced
    /// before.
    pub supersedes: Option<&'a [String]>,
    pub marks: MarksChange,
}

impl<'a> EntryText<'a> {
    /// A fact that is valid from now on, until another one replaces it.
    pub fn valid_from_now(key: &'a str, title: Option<&'a str>, content: &'a str) -> Self {
        Self {
            key,
            title,
            content,
            valid_from: None,
            valid_until: None,
            supersedes: None,
            marks: MarksChange::default(),
        }
    }

    pub fn check(&self) -> Result<()> {
        check_entry(self.key, self.title, self.content)?;
        if let (Some(from), Some(until)) = (self.valid_from, self.valid_until)
            && until <= from
        {
            let message = "`validUntil` must be later than `validFrom`.";
            return Err(Error::invalid("validUntil", message));
        }
        let mut supersedes = self.supersedes.unwrap_or_default().iter();
        if supersedes.any(|key| key == self.key) {
            let message = "`supersedes` contains the entry itself. A new text for the same key \
                           always replaces the old one.";
            return Err(Error::invalid("supersedes", message));
        }
        Ok(())
    }

    /// The fields of a request to another backend. Unset fields are omitted.
    pub fn fields(&self) -> Vec<(&'static str, Json)> {
        let mut fields = vec![
            ("key", self.key.into()),
            ("title", self.title.into()),
            ("content", self.content.into()),
        ];
        let times = [
            ("validFrom", self.valid_from),
            ("validUntil", self.valid_until),
        ];
        for (name, time) in times {
            if let Some(time) = time {
                fields.push((name, time.into()));
            }
        }
        if let Some(supersedes) = self.supersedes.filter(|keys| !keys.is_empty()) {
            fields.push(("supersedes", supersedes.into()));
        }
        fields.extend(self.marks.fields());
        fields
    }
}
