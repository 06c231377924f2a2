//! `search_context`: the model searches a searchable block.

use serde_json::Value;

use super::arguments::{Arguments, mistake};
use super::{
    ContextTool, MemoryTool, Toolbox, blocks_of_kind, describe_blocks, more_queries, tool_with_text,
};
use crate::base::days::{day_of, end_of_day};
use crate::base::error::Result;
use crate::base::json::json;
use crate::memory::definition::Definition;
use crate::memory::entry_search::{FoundEntry, PastEntry};
use crate::memory::kind::BlockKind;
use crate::memory::validity::Validity;
use crate::recall::entries::search;

pub const TOOL: ContextTool = ContextTool {
    name: "search_context",
    define,
    run: |toolbox, blocks, arguments| Box::pin(run(toolbox, blocks, arguments)),
};

/// How many entries a model gets, and how many characters of each.
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
        "Search what is kept in a block and not shown in it. Gives the best matches, best first. Words match in all their forms; \"quoted phrases\" match as they stand. Blocks:{}",
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
            "description": "A day, as 2026-01-31: what held then is searched. Default: now."
        });
        properties.insert("queries".to_owned(), more_queries());
        properties.insert("asOf".to_owned(), as_of);
    }
    Some(tool)
}

async fn run(
    toolbox: &Toolbox<'_>,
    blocks: &[Definition],
    arguments: &Arguments,
) -> Result<String> {
    let block = arguments.get_block(&addressed(blocks))?;
    let queries = arguments.get_queries()?;
    let as_of = match arguments.find_text("asOf")? {
        Some(day) => {
            Some(end_of_day(day).ok_or_else(|| mistake("`asOf` must be a day, as 2026-01-31."))?)
        }
        None => None,
    };
    let found = search(&toolbox.memory, block, &queries, MAX_RESULTS, as_of).await?;
    let mut shown: Vec<String> = found.results.iter().map(show).collect();
    if shown.is_empty() {
        shown.push(match as_of {
            Some(_) => format!("Nothing that {} held then matches.", block.label),
            None => format!("Nothing in {} matches. Try other words.", block.label),
        });
    }
    shown.extend(found.past.iter().map(show_past));
    Ok(shown.join("\n\n"))
}

fn show(result: &FoundEntry) -> String {
    let name = match (&result.title, &result.key) {
        (Some(title), Some(key)) => format!("[{key}] {title}\n"),
        (None, Some(key)) => format!("[{key}]\n"),
        (Some(title), None) => format!("{title}\n"),
        (None, None) => String::new(),
    };
    let Validity {
        valid_from,
        valid_until,
        supersedes,
        superseded_by,
        superseded_at,
    } = &result.validity;
    let mut told = Vec::new();
    if let Some(from) = valid_from {
        told.push(format!("since {}", day_of(*from)));
    }
    if let Some(until) = valid_until {
        told.push(format!("until {}", day_of(*until)));
    }
    if !supersedes.is_empty() {
        told.push(format!("in place of {}", supersedes.join(", ")));
    }
    if let (Some(by), Some(at)) = (superseded_by, superseded_at) {
        told.push(format!("replaced by {by} on {}", day_of(*at)));
    }
    let told = match told.is_empty() {
        true => String::new(),
        false => format!("({})\n", told.join("; ")),
    };
    format!("{name}{told}{}", cut(&result.content))
}

/// A fact that holds no longer: its name, and its end.
fn show_past(past: &PastEntry) -> String {
    let validity = &past.validity;
    match (
        &validity.superseded_by,
        validity.superseded_at,
        validity.valid_until,
    ) {
        (Some(by), Some(at), _) => {
            format!(
                "[{}] holds no longer: {by} replaced it on {}.",
                past.key,
                day_of(at)
            )
        }
        (_, _, Some(until)) => {
            format!(
                "[{}] holds no longer: its time ended on {}.",
                past.key,
                day_of(until)
            )
        }
        _ => format!("[{}] holds no longer.", past.key),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_ENTRY_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
