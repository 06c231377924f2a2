//! Prepares messages of the AI SDK for a model: truncates older outputs and texts, removes
//! unloaded documents, and replaces older files by their names. The working context, which
//! is built from events, follows the same rules.
//!
//! Only copies are changed. Unchanged parts of a message keep their exact bytes.

use serde::Deserialize;
use serde_json::{Value, json};

use super::working_context::documents::find_replacement;
use super::working_context::media::{name_file, name_urls};
use super::working_context::truncate::{UNTRUNCATED_MESSAGES, cutoff_of, find_short_text};
use base::action::Role;
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json::{self, RawValue};
use base::part::{PartKind, field, kind};
use conversation::messages::history::{ReadPage, WalkStart, walk_page};
use conversation::messages::page::PageQuery;
use memory::skills::loaded::{LoadedSkill, load_context_documents};
use models::file::files_of_parts;

/// The events up to which messages are truncated, and up to which files are replaced by
/// names.
struct ModelCutoffs {
    short_seq: i64,
    media_seq: i64,
}

/// The page that ends at `start`, prepared for a model. `leaf_seq` is the end of the
/// branch, from which the newest messages are counted.
pub fn load_page_for_model(
    db: &dyn Database,
    session_id: &Id,
    (leaf_seq, start): (i64, WalkStart),
    ask: PageQuery,
    keep_media: usize,
) -> Result<ReadPage> {
    let documents = load_context_documents(db, session_id)?;
    let needed = PageQuery {
        limit: keep_media.max(UNTRUNCATED_MESSAGES) + 1,
        max_bytes: usize::MAX,
        ..ask
    };
    let newest = walk_page(db, session_id, WalkStart::At(leaf_seq), needed)?;
    let lines = ModelCutoffs::new(&newest, keep_media);
    drop(newest);
    let mut page = walk_page(db, session_id, start, ask)?;
    page.rewrite(&mut |json, first_seq| {
        if let Some(changed) = rewrite(json, first_seq, &lines, &documents) {
            *json = changed;
        }
    });
    Ok(page)
}

impl ModelCutoffs {
    /// `newest` are the branch's newest messages.
    fn new(newest: &ReadPage, keep_media: usize) -> Self {
        let seqs = newest.first_seqs();
        // If only the newest messages fill a page, all others are older.
        let above = match (seqs.last(), newest.is_cut()) {
            (Some(oldest), true) => oldest - 1,
            _ => 0,
        };
        let at = |index: usize| seqs.get(index).copied().unwrap_or(above);
        Self {
            short_seq: cutoff_of(at(UNTRUNCATED_MESSAGES)),
            media_seq: at(keep_media),
        }
    }
}

#[derive(Deserialize)]
struct RoleAndParts<'a> {
    role: Role,
    #[serde(borrow)]
    parts: &'a RawValue,
}

/// The message, prepared for a model. `None`: it is unchanged.
fn rewrite(
    json: &str,
    first_seq: i64,
    lines: &ModelCutoffs,
    documents: &[LoadedSkill],
) -> Option<String> {
    let message: RoleAndParts<'_> = json::decode(json).ok()?;
    let parts: Vec<&RawValue> = json::decode(message.parts.get()).ok()?;
    let is_short = first_seq <= lines.short_seq;
    let names_files = first_seq <= lines.media_seq;
    let mut has_changed = false;
    let parts: Vec<String> = parts
        .into_iter()
        .map(|raw| {
            let changed = json::decode_tree(raw.get())
                .ok()
                .and_then(|part| change_part(part, message.role, is_short, names_files, documents));
            has_changed |= changed.is_some();
            changed.map_or_else(|| raw.get().to_owned(), |part| json::text(&part))
        })
        .collect();
    if !has_changed {
        return None;
    }
    // The parts are a slice of `json`, so their offset follows from their address.
    let offset = message.parts.get().as_ptr().addr() - json.as_ptr().addr();
    let head = json.get(..offset)?;
    let tail = json.get(offset + message.parts.get().len()..)?;
    Some(format!("{head}[{}]{tail}", parts.join(",")))
}

/// The part, prepared for a model. `None`: it is unchanged.
fn change_part(
    part: Value,
    role: Role,
    is_short: bool,
    names_files: bool,
    documents: &[LoadedSkill],
) -> Option<Value> {
    let part_kind = part.get(field::KIND)?.as_str().map(PartKind::parse)?;
    match part_kind {
        PartKind::Text if is_short => {
            let short = find_short_text(role, part.get(field::TEXT)?.as_str()?)?;
            set(part, field::TEXT, short.into())
        }
        PartKind::File if names_files => {
            let file = files_of_parts(std::slice::from_ref(&part)).pop()?;
            Some(json!({field::KIND: kind::TEXT, field::TEXT: name_file(&file)}))
        }
        PartKind::Tool(_) | PartKind::DynamicTool => {
            let name = part_kind.find_tool(part.get(field::TOOL_NAME).and_then(Value::as_str));
            let name = name.unwrap_or_default().to_owned();
            let output = [field::OUTPUT, field::ERROR_TEXT]
                .into_iter()
                .find(|name| part.get(name).is_some_and(|value| !value.is_null()))?;
            let arguments = part.get(field::INPUT).map(json::text);
            let changed = change_output(
                part.get(output)?,
                (&name, &arguments.unwrap_or_default()),
                is_short,
                documents,
            )?;
            set(part, output, changed)
        }
        _ => None,
    }
}

fn set(mut part: Value, name: &str, value: Value) -> Option<Value> {
    part.as_object_mut()?.insert(name.to_owned(), value);
    Some(part)
}

/// `call`: the tool's name and its arguments.
fn change_output(
    output: &Value,
    call: (&str, &str),
    is_short: bool,
    documents: &[LoadedSkill],
) -> Option<Value> {
    let mut text = match output {
        Value::String(text) => text.clone(),
        output => json::text(output),
    };
    let (name, arguments) = call;
    if let Some(note) = find_replacement(name, arguments, &text, documents) {
        return Some(note.into());
    }
    let is_loaded = documents
        .iter()
        .any(|document| document.content.as_ref() == Some(&text));
    if is_loaded {
        return None;
    }
    let length = text.len();
    name_urls(&mut text);
    if let Some(short) = find_short_text(Role::Tool, &text).filter(|_| is_short) {
        return Some(short.into());
    }
    let is_changed = text.len() != length;
    is_changed.then(|| match output {
        Value::String(_) => text.into(),
        _ => json::decode_tree(&text).unwrap_or(Value::String(text)),
    })
}
