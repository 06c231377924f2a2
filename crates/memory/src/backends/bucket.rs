//! The bucket as a backend. One object contains a block's text, or the objects under a
//! prefix are a block's documents. A document is an object `{prefix}{key}`, or a folder
//! that contains a `SKILL.md`.

use super::{LIMITS, MAX_ANSWER_BYTES, begin_write, failed, mark_unavailable, outcome_unknown};
use crate::Memory;
use crate::skills::front_matter::FrontMatter;
use crate::skills::skill::{Skill, clip_description};
use crate::source::check_key;
use base::error::{Code, Error, Result};
use base::outbound::{CallFailure, PutCondition, WriteLock};

const WHO: &str = "The bucket";

/// The maximum number of documents of one listing, and of pages that a listing reads.
const MAX_LISTED: usize = 1_000;
const MAX_PAGES: usize = 4;
const PAGE: u32 = 500;

/// The maximum number of documents without a description that one listing opens to find
/// one.
const MAX_OPENED: usize = 20;

const FOLDER_FILE: &str = "/SKILL.md";

/// An object whose body is text.
pub struct StoredText {
    pub content: String,
    pub description: Option<String>,
    /// Identifies this content for [`replace_text`].
    pub etag: String,
}

/// The text of an object; `None`: there is no such object.
pub async fn get_text(memory: &Memory<'_>, key: &str) -> Result<Option<StoredText>> {
    let stored = memory.outbound.get_object(key, LIMITS).await;
    let stored = match stored {
        Ok(Some(stored)) if stored.bytes.len() <= MAX_ANSWER_BYTES => stored,
        Ok(None) => return Ok(None),
        Ok(Some(_)) | Err(CallFailure::TooLarge { .. }) => {
            let message = format!(
                "The object in the bucket is larger than {MAX_ANSWER_BYTES} bytes. Split it into several objects."
            );
            return Err(unusable(Code::PayloadTooLarge, message).with("limit", MAX_ANSWER_BYTES));
        }
        Err(failure) => return Err(failed(WHO, &failure)),
    };
    let content = String::from_utf8(stored.bytes).map_err(|_| {
        let message = "The object in the bucket is not UTF-8 text; only text goes to a model.";
        unusable(Code::InvalidRequest, message.to_owned()).with_field("key")
    })?;
    Ok(Some(StoredText {
        content,
        description: stored.description,
        etag: stored.etag,
    }))
}

/// The error for an object that exists but can't be used. The caller can repair the object.
/// A prompt treats the error like an unavailable backend.
fn unusable(code: Code, message: String) -> Error {
    mark_unavailable(Error::new(code, message.clone()), message)
}

pub async fn put_text(
    memory: &Memory<'_>,
    key: &str,
    content: &str,
    description: Option<&str>,
) -> Result<()> {
    let content = content.to_owned();
    memory
        .outbound
        .put_object(key, content, description, PutCondition::Anything, LIMITS)
        .await
        .map(drop)
        .map_err(put_failed)
}

fn put_failed(failure: CallFailure) -> Error {
    let error = failed(WHO, &failure);
    match failure {
        CallFailure::Overloaded => error,
        _ => outcome_unknown(error),
    }
}

/// Starts a write to an object: see [`begin_write`].
pub async fn begin_put<'a>(memory: &Memory<'a>, key: &str, content: &str) -> Result<WriteLock<'a>> {
    begin_write(memory, WHO, &format!("r2:{key}"), content.len()).await
}

/// Writes a text if the object still has this etag. Without an etag, the object must not
/// exist. `false`: another writer changed the object, and nothing was written.
pub async fn replace_text(
    memory: &Memory<'_>,
    key: &str,
    etag: Option<&str>,
    content: &str,
    description: Option<&str>,
) -> Result<bool> {
    let expected = etag.map_or(PutCondition::Nothing, PutCondition::Etag);
    memory
        .outbound
        .put_object(key, content.to_owned(), description, expected, LIMITS)
        .await
        .map_err(put_failed)
}

/// A document: its object's key, and its content.
pub struct BucketDocument {
    pub object_key: String,
    pub content: String,
    pub description: Option<String>,
    pub etag: String,
}

pub async fn find_document(
    memory: &Memory<'_>,
    prefix: &str,
    key: &str,
) -> Result<Option<BucketDocument>> {
    check_key(key).map_err(|reason| Error::invalid("key", format!("`key` {reason}.")))?;
    for object_key in object_keys_of(prefix, key) {
        if let Some(stored) = get_text(memory, &object_key).await? {
            return Ok(Some(BucketDocument {
                object_key,
                content: stored.content,
                description: stored.description,
                etag: stored.etag,
            }));
        }
    }
    Ok(None)
}

/// The object key of a document. `None`: there is no such document. An unreadable document
/// counts, too: a write must replace that object, not create a second one under the
/// document's other key.
pub async fn find_object_key(
    memory: &Memory<'_>,
    prefix: &str,
    key: &str,
) -> Result<Option<String>> {
    for object_key in object_keys_of(prefix, key) {
        match get_text(memory, &object_key).await {
            Ok(None) => {}
            Ok(Some(_)) => return Ok(Some(object_key)),
            Err(error) if matches!(error.code, Code::PayloadTooLarge | Code::InvalidRequest) => {
                return Ok(Some(object_key));
            }
            // It is unknown whether the document exists.
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn object_keys_of(prefix: &str, key: &str) -> [String; 2] {
    [
        format!("{prefix}{key}"),
        format!("{prefix}{key}{FOLDER_FILE}"),
    ]
}

pub async fn delete_document(memory: &Memory<'_>, object_key: &str) -> Result<()> {
    memory
        .outbound
        .delete_object(object_key, LIMITS)
        .await
        .map_err(|failure| failed(WHO, &failure))
}

/// The documents under a prefix, sorted by key.
pub async fn list_documents(memory: &Memory<'_>, prefix: &str) -> Result<Vec<Skill>> {
    let mut objects = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let page = memory
            .outbound
            .list_objects(prefix, cursor.as_deref(), PAGE, LIMITS)
            .await
            .map_err(|failure| failed(WHO, &failure))?;
        objects.extend(page.objects);
        cursor = page.cursor;
        if cursor.is_none() || objects.len() >= MAX_LISTED {
            break;
        }
    }
    let folders: Vec<String> = objects
        .iter()
        .filter_map(|object| object.key.strip_suffix(FOLDER_FILE))
        .map(|folder| format!("{folder}/"))
        .collect();
    let mut skills = Vec::new();
    let mut opened = 0;
    for object in objects {
        let Some(name) = object.key.strip_prefix(prefix) else {
            continue;
        };
        let folder = name.strip_suffix(FOLDER_FILE);
        // Other objects in the folder of a SKILL.md belong to that document.
        let belongs_to_skill =
            folder.is_none() && folders.iter().any(|folder| object.key.starts_with(folder));
        let key = folder.unwrap_or(name);
        if belongs_to_skill || key.ends_with('/') || check_key(key).is_err() {
            continue;
        }
        let mut description = object.description.as_deref().map(clip_description);
        if description.is_none() && key_is_markdown(name) && opened < MAX_OPENED {
            opened += 1;
            description = describe(memory, &object.key).await?;
        }
        skills.push(Skill {
            key: key.to_owned(),
            description: description.filter(|text| !text.is_empty()),
            bytes: Some(object.bytes),
            ..Skill::default()
        });
        if skills.len() >= MAX_LISTED {
            break;
        }
    }
    skills.sort_by(|a, b| a.key.cmp(&b.key));
    skills.dedup_by(|a, b| a.key == b.key);
    Ok(skills)
}

fn key_is_markdown(name: &str) -> bool {
    name.ends_with(".md")
}

/// The description in a document's front matter. An unreadable document is listed
/// without a description; loading the document gives the error.
async fn describe(memory: &Memory<'_>, object_key: &str) -> Result<Option<String>> {
    match get_text(memory, object_key).await {
        Ok(text) => Ok(text.and_then(|text| {
            FrontMatter::read(&text.content)
                .description
                .as_deref()
                .map(clip_description)
        })),
        Err(error) if super::find_unavailable(&error).is_some() => Ok(None),
        Err(error) => Err(error),
    }
}
