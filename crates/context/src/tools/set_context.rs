//! `set_context`: the model writes to its memory: a text to a writable block, an entry to a
//! searchable block, or a document to a loadable block. The key of an entry or a document
//! is derived from its title.

use super::arguments::{Arguments, mistake};
use super::untrusted::{WrittenText, less_trusted};
use super::{ContextTool, MemoryTool, Toolbox, describe_blocks, labels_of};
use base::days::{DAY_MS, end_of_day};
use base::error::Result;
use base::json::json;
use base::tags::{Metadata, Tags};
use memory::definition::Definition;
use memory::entry_text::{EntryText, MAX_SUPERSEDED};
use memory::kind::BlockKind;
use memory::origin::MarksChange;
use memory::skills::{Addition, SkillText};
use memory::source::BlockBackend;
use memory::write::{NewContent, Placement, write};
use memory::writer::MemoryWriter;
use memory::{entries, entry_rows, skills};

pub const TOOL: ContextTool = ContextTool {
    name: "set_context",
    define,
    run: |toolbox, blocks, arguments| Box::pin(run(toolbox, blocks, arguments)),
};

/// The maximum length of a key that is derived from a title, in characters.
const MAX_KEY_CHARS: usize = 80;

/// Whether an append can read the block's current text.
fn is_readable(block: &Definition) -> bool {
    match block.backend() {
        BlockBackend::Object | BlockBackend::Bucket { .. } | BlockBackend::BucketPrefix { .. } => {
            true
        }
        BlockBackend::Service { .. }
        | BlockBackend::Agent { .. }
        | BlockBackend::Unresolved { .. } => false,
    }
}

fn addressed<'b>(blocks: impl IntoIterator<Item = &'b Definition>) -> Vec<&'b Definition> {
    blocks
        .into_iter()
        .filter(|block| block.kind != BlockKind::Readonly)
        .collect()
}

fn define(toolbox: &Toolbox<'_>, blocks: &[Definition]) -> Option<MemoryTool> {
    let blocks = addressed(blocks.iter().filter(|block| toolbox.may_write(block)));
    if blocks.is_empty() {
        return None;
    }
    let mut metadata = json!({
        "title": {"type": "string", "description": "The name of an entry or a document."},
        "description": {"type": "string", "description": "One line about a document, shown in the block's listing."},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Short words for finding an entry or a document."},
        "fields": {"type": "object", "description": "Named values for finding an entry or a document, for example {\"city\": \"Oslo\"}."}
    });
    let has_entries = |block: &&Definition| block.kind == BlockKind::Searchable;
    if let (true, Some(fields)) = (blocks.iter().any(has_entries), metadata.as_object_mut()) {
        let day = |what: &str| json!({"type": "string", "description": what});
        fields.extend([
            (
                "supersedes".to_owned(),
                json!({
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Keys of entries that this entry replaces because they are no \
                                    longer true. search_context shows keys in [brackets]."
                }),
            ),
            (
                "validFrom".to_owned(),
                day("The day from which an entry is true, such as 2026-01-31. \
                                          Default: now."),
            ),
            (
                "validUntil".to_owned(),
                day("The last day on which an entry is true. Default: no end."),
            ),
        ]);
    }
    Some(MemoryTool {
        name: TOOL.name,
        description: format!(
            "Write to your memory. In a writable block, `content` replaces the text or is appended \
             to it as a new line; stay within its budget. In a searchable or loadable block, `content` \
             is stored as one entry or document, named by `metadata.title`; writing the same title \
             again replaces that entry or document. Blocks:{}",
            describe_blocks(&blocks)
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "label": {
                    "type": "string",
                    "enum": labels_of(&blocks),
                    "description": "The block to write to."
                },
                "content": {"type": "string", "description": "The text."},
                "action": {
                    "type": "string",
                    "enum": ["replace", "append"],
                    "description": "Whether to replace the text or append to it. Default: replace."
                },
                "metadata": {
                    "type": "object",
                    "properties": metadata,
                    "description": "For searchable and loadable blocks."
                }
            },
            "required": ["label", "content"]
        }),
    })
}

async fn run(
    toolbox: &Toolbox<'_>,
    blocks: &[Definition],
    arguments: &Arguments,
) -> Result<String> {
    let writable = blocks.iter().filter(|block| toolbox.may_write(block));
    let all: Vec<&Definition> = blocks.iter().collect();
    let block = arguments.get_block(&addressed(writable)).map_err(|error| {
        match arguments.get_block(&all) {
            Ok(block) => mistake(format!(
                "You can't write to {}: only its owners can. {}",
                block.label, error.message
            )),
            Err(_) => error,
        }
    })?;
    let content = arguments.get_text("content")?;
    let appends = match arguments.find_text("action")? {
        None | Some("replace") => false,
        Some("append") => true,
        Some(_) => return Err(mistake("`action` must be \"replace\" or \"append\".")),
    };
    match block.kind {
        BlockKind::Searchable => set_entry(toolbox, block, arguments, content, appends).await,
        BlockKind::Loadable => set_document(toolbox, block, arguments, content, appends).await,
        BlockKind::Readonly | BlockKind::Writable => {
            let text = NewContent {
                content,
                placement: if appends {
                    Placement::AppendedLine
                } else {
                    Placement::Whole
                },
                expected_version: None,
                reason: None,
                writer: toolbox.writer_of(&WrittenText {
                    content,
                    names: Vec::new(),
                })?,
            };
            let written = write(&toolbox.memory, block, &text).await?;
            Ok(match block.max_tokens {
                Some(max_tokens) => format!(
                    "Written. {} now uses {} of {max_tokens} tokens.",
                    block.label, written.tokens
                ),
                None => format!(
                    "Written. {} now uses {} tokens.",
                    block.label, written.tokens
                ),
            })
        }
    }
}

fn get_key(block: &Definition, arguments: &Arguments) -> Result<(String, String)> {
    let title = arguments
        .find_inner_text("metadata", "title")?
        .unwrap_or_default();
    let key = key_of(title);
    if key.is_empty() {
        return Err(mistake(format!(
            "`metadata.title` is missing: {} is {}, and the title names what is stored there.",
            block.label,
            block.kind.name()
        )));
    }
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok((key, title))
}

/// Derives a key from a title: lower-case letters, digits, `.` and `_`, and a single `-`
/// for anything else.
fn key_of(title: &str) -> String {
    let mut key = String::new();
    for c in title.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() || matches!(c, '.' | '_') {
            key.push(c);
        } else if !key.ends_with('-') && !key.is_empty() {
            key.push('-');
        }
    }
    let key: String = key.chars().take(MAX_KEY_CHARS).collect();
    key.trim_matches(['-', '.']).to_owned()
}

async fn set_entry(
    toolbox: &Toolbox<'_>,
    block: &Definition,
    arguments: &Arguments,
    content: &str,
    appends: bool,
) -> Result<String> {
    let memory = &toolbox.memory;
    let (key, title) = get_key(block, arguments)?;
    let before = if appends {
        check_readable(block)?;
        entry_rows::find_entry(memory.db, block, &key)?
    } else {
        None
    };
    let marks = find_marks(arguments)?;
    let writer = toolbox.writer_of(&WrittenText {
        content,
        names: names_of(Some(&title), None, &marks),
    })?;
    // An addition doesn't change the source of somebody else's text to the agent.
    let source_before =
        (before.as_ref().map(|entry| entry.source)).filter(|source| source.is_quoted());
    let writer = MemoryWriter {
        source: less_trusted(source_before, writer.source),
        ..writer
    };
    let content = if appends {
        after(before.as_ref().map(|entry| entry.content.as_str()), content)
    } else {
        content.to_owned()
    };
    let supersedes = get_replaced(arguments)?;
    // Appending to a text doesn't change the time when the fact is valid, unless the model
    // specifies it.
    let validity_before = before.map(|entry| entry.validity).unwrap_or_default();
    let text = EntryText {
        valid_from: find_day(arguments, "validFrom")?
            .map(|end| end + 1 - DAY_MS)
            .or(validity_before.valid_from),
        valid_until: find_day(arguments, "validUntil")?
            .map(|end| end + 1)
            .or(validity_before.valid_until),
        supersedes: supersedes.as_deref(),
        marks,
        ..EntryText::valid_from_now(&key, Some(&title), &content)
    };
    entries::set(memory, block, &text, writer).await?;
    Ok(format!(
        "Stored in {} as \"{key}\". search_context finds it.",
        block.label
    ))
}

/// The keys of the entries that the new one replaces. A key may be in brackets, as in the
/// output of `search_context`.
fn get_replaced(arguments: &Arguments) -> Result<Option<Vec<String>>> {
    let Some(mut keys) = arguments.find_inner_texts("metadata", "supersedes")? else {
        return Ok(None);
    };
    for key in &mut keys {
        *key = key.trim().trim_matches(['[', ']']).to_owned();
    }
    keys.sort_by(String::cmp);
    keys.dedup();
    match keys.len() {
        0 => Ok(None),
        1..=MAX_SUPERSEDED => Ok(Some(keys)),
        _ => Err(mistake(format!(
            "`metadata.supersedes` can have at most {MAX_SUPERSEDED} entries."
        ))),
    }
}

/// The names that the model gives a text: title, description, tags and fields.
fn names_of<'a>(
    title: Option<&'a str>,
    description: Option<&'a str>,
    marks: &'a MarksChange,
) -> Vec<&'a str> {
    let tags = marks.tags.iter().flat_map(Tags::iter);
    let fields = marks.metadata.iter().flatten().map(Metadata::as_str);
    let names = title.into_iter().chain(description);
    names.chain(tags).chain(fields).collect()
}

/// The custom data that the model sets on the entry or the document. Omitted fields are
/// unchanged.
fn find_marks(arguments: &Arguments) -> Result<MarksChange> {
    Ok(MarksChange {
        metadata: arguments
            .find_inner::<Metadata>("metadata", "fields")?
            .map(Some),
        tags: arguments.find_inner("metadata", "tags")?,
    })
}

/// The end of the day in a field.
fn find_day(arguments: &Arguments, name: &str) -> Result<Option<i64>> {
    let Some(day) = arguments.find_inner_text("metadata", name)? else {
        return Ok(None);
    };
    let wrong = || {
        mistake(format!(
            "`metadata.{name}` must be a day such as 2026-01-31."
        ))
    };
    end_of_day(day).map(Some).ok_or_else(wrong)
}

async fn set_document(
    toolbox: &Toolbox<'_>,
    block: &Definition,
    arguments: &Arguments,
    content: &str,
    appends: bool,
) -> Result<String> {
    let memory = &toolbox.memory;
    let (key, title) = get_key(block, arguments)?;
    let description = arguments.find_inner_text("metadata", "description")?;
    let marks = find_marks(arguments)?;
    let writer = toolbox.writer_of(&WrittenText {
        content,
        names: names_of(Some(&title), description, &marks),
    })?;
    // Stores a title only if it differs from the key.
    let title = (title != key).then_some(title.as_str());
    if appends {
        check_readable(block)?;
        let added = Addition {
            key: &key,
            content,
            description,
            title,
            marks,
        };
        skills::append(memory, block, &added, writer).await?;
    } else {
        let text = SkillText {
            key: &key,
            content,
            description: description.or(title),
            marks,
        };
        skills::put(memory, block, &text, writer).await?;
    }
    Ok(format!(
        "Stored in {} as \"{key}\". load_context loads it.",
        block.label
    ))
}

fn check_readable(block: &Definition) -> Result<()> {
    if is_readable(block) {
        return Ok(());
    }
    Err(mistake(format!(
        "{} is stored elsewhere and can't be appended to: write the whole text with action \
         \"replace\".",
        block.label
    )))
}

fn after(before: Option<&str>, content: &str) -> String {
    match before {
        Some(before) if !before.is_empty() => format!("{before}\n{content}"),
        _ => content.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_becomes_a_safe_key() {
        for (title, key) in [
            ("Deploy Checklist", "deploy-checklist"),
            ("api-ref", "api-ref"),
            ("  What's new?  ", "what-s-new"),
            ("../../etc/passwd", "etc-passwd"),
            ("Größe", "größe"),
            ("v1.2", "v1.2"),
            ("---", ""),
            ("", ""),
        ] {
            assert_eq!(key_of(title), key, "{title}");
        }
        assert_eq!(key_of(&"x".repeat(500)).len(), MAX_KEY_CHARS);
    }
}
