//! `search_context`: the model searches a searchable block.

use serde_json::Value;

use super::arguments::{Arguments, mistake};
use super::recalled::{CUT_SHORT, FORM};
use super::{
    ContextTool, MemoryTool, Toolbox, blocks_of_kind, describe_blocks, labels_of, more_queries,
    tool_with_text,
};
use base::days::{day_of, end_of_day};
use base::error::Result;
use base::json::json;
use base::quoted::{Untrusted, origin_line, quote};
use memory::definition::Definition;
use memory::entry_query::EntryQuery;
use memory::found_entry::{FoundEntry, PastEntry};
use memory::kind::BlockKind;
use memory::origin::Origin;
use memory::validity::Validity;
use recall::entries::search;

pub const TOOL: ContextTool = ContextTool {
    name: "search_context",
    define,
    run: |toolbox, blocks, arguments| Box::pin(run(toolbox, blocks, arguments)),
};

/// The maximum number of entries for a model, and of characters of each.
const MAX_RESULTS: i64 = 5;
const MAX_ENTRY_CHARS: usize = 2_000;

fn addressed(blocks: &[Definition]) -> Vec<&Definition> {
    blocks_of_kind(blocks, BlockKind::Searchable)
}

fn define(_: &Toolbox<'_>, blocks: &[Definition]) -> Option<MemoryTool> {
    let blocks = addressed(blocks);
    if blocks.is_empty() {
        return None;
    }
    let description = format!(
        "Search a block whose contents are not shown in the prompt. Returns the best \
         matches, best first. Words match in all their forms; \"quoted phrases\" match exactly. \
         {FORM} Blocks:{}",
        describe_blocks(&blocks)
    );
    let mut tool = tool_with_text(
        TOOL.name,
        description,
        &blocks,
        "The block to search.",
        ("query", "What to look for, in a few words."),
    );
    let properties = tool.parameters.get_mut("properties");
    if let Some(properties) = properties.and_then(Value::as_object_mut) {
        let as_of = json!({
            "type": "string",
            "description": "A day such as 2026-01-31, to search what was true on that day. Default: now."
        });
        properties.insert("queries".to_owned(), more_queries());
        if blocks.len() > 1 {
            let labels = json!({
                "type": "array",
                "items": {"type": "string", "enum": labels_of(&blocks)},
                "description": "More blocks to search. All results are merged into one ranking."
            });
            properties.insert("labels".to_owned(), labels);
        }
        properties.insert("asOf".to_owned(), as_of);
        let tags = json!({
            "type": "array",
            "items": {"type": "string"},
            "description": "Only entries with all of these tags."
        });
        properties.insert("tags".to_owned(), tags);
        let fields = json!({
            "type": "object",
            "description": "Only entries with these values, for example {\"city\": \"Oslo\"}."
        });
        properties.insert("fields".to_owned(), fields);
    }
    Some(tool)
}

async fn run(
    toolbox: &Toolbox<'_>,
    blocks: &[Definition],
    arguments: &Arguments,
) -> Result<String> {
    let searched: Vec<Definition> = arguments
        .get_blocks(&addressed(blocks))?
        .into_iter()
        .cloned()
        .collect();
    let queries = arguments.get_queries()?;
    let filter = arguments.find_filter()?;
    let as_of = match arguments.find_text("asOf")? {
        Some(day) => Some(
            end_of_day(day).ok_or_else(|| mistake("`asOf` must be a day such as 2026-01-31."))?,
        ),
        None => None,
    };
    let query = EntryQuery {
        queries: &queries,
        limit: MAX_RESULTS,
        as_of,
        filter: filter.as_ref(),
    };
    let found = search(&toolbox.memory, &searched, &query).await?;
    let mut shown: Vec<String> = found.results.iter().map(show).collect();
    if shown.is_empty() {
        let labels: Vec<&str> = searched.iter().map(|block| block.label.as_str()).collect();
        let labels = labels.join(", ");
        shown.push(match as_of {
            Some(_) => format!("Nothing in {labels} matches for that day."),
            None => format!("Nothing in {labels} matches. Try other words."),
        });
    }
    shown.extend(found.past.iter().map(show_past));
    if found.is_cut {
        shown.push(CUT_SHORT.to_owned());
    }
    Ok(shown.join("\n\n"))
}

fn show(result: &FoundEntry) -> String {
    let title = (result.title.as_deref()).map(|title| quote(Untrusted::EntryTitle, title));
    let name = match (&title, result.key.as_deref().map(shown_key)) {
        (Some(title), Some(key)) => format!("[{key}] {title}\n"),
        (None, Some(key)) => format!("[{key}]\n"),
        (_, None) => String::new(),
    };
    let Validity {
        valid_from,
        valid_until,
        supersedes,
        superseded_by,
        superseded_at,
    } = &result.validity;
    let mut facts = Vec::new();
    if let Some(label) = &result.label {
        facts.push(format!("in {}", listed_key(label)));
    }
    if let Some(from) = valid_from {
        facts.push(format!("since {}", day_of(*from)));
    }
    if let Some(until) = valid_until {
        facts.push(format!("until {}", day_of(*until)));
    }
    if !supersedes.is_empty() {
        let keys: Vec<String> = supersedes.iter().map(|key| listed_key(key)).collect();
        facts.push(format!("replaces {}", keys.join(", ")));
    }
    if let (Some(by), Some(at)) = (superseded_by, superseded_at) {
        facts.push(format!("replaced by {} on {}", listed_key(by), day_of(*at)));
    }
    if !result.tags.is_empty() {
        let tags = result
            .tags
            .iter()
            .map(|tag| quote(Untrusted::EntryTag, tag));
        let tags: Vec<String> = tags.collect();
        facts.push(format!("tags: {}", tags.join(", ")));
    }
    let source = result.source.map_or("unknown", Origin::name);
    let mut text = cut(&result.content);
    if let (Some(title), None) = (title, &result.key) {
        // A title must not look like one of our own lines, so it is part of the quoted
        // text.
        text = format!("{title}\n{text}");
    }
    format!(
        "{name}{}\n{}",
        origin_line(source, result.updated_at, &facts),
        quote(Untrusted::EntryText, &text)
    )
}

/// A key in brackets, or in a sentence.
fn shown_key(key: &str) -> String {
    quote(Untrusted::EntryKey, key)
}

/// A key or a label in the line that names the source.
fn listed_key(name: &str) -> String {
    quote(Untrusted::ListedKey, name)
}

/// A fact that is no longer valid: its name, and the end of its validity.
fn show_past(past: &PastEntry) -> String {
    let validity = &past.validity;
    match (
        &validity.superseded_by,
        validity.superseded_at,
        validity.valid_until,
    ) {
        (Some(by), Some(at), _) => {
            format!(
                "[{}] is no longer true: {} replaced it on {}.",
                shown_key(&past.key),
                shown_key(by),
                day_of(at)
            )
        }
        (_, _, Some(until)) => {
            format!(
                "[{}] is no longer true: it was valid until {}.",
                shown_key(&past.key),
                day_of(until)
            )
        }
        _ => format!("[{}] is no longer true.", shown_key(&past.key)),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_ENTRY_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
