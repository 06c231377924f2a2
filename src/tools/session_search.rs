//! `session_search`: the model looks for what was said in the agent's sessions.

use serde_json::json;

use super::arguments::Arguments;
use super::{Tool, Toolbox};
use crate::config::Config;
use crate::error::Result;
use crate::search::build::ensure_index;
use crate::search::find::Search;
use crate::vectors::events::search;

pub const NAME: &str = "session_search";

/// Places that a model is shown.
const MAX_RESULTS: usize = 8;

pub fn define(config: &Config) -> Option<Tool> {
    config.session_search.then(|| Tool {
        name: NAME,
        description: "Search what was said in earlier conversations, and what tools answered in them. Gives the best places, best first.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for, in a few words."}
            },
            "required": ["query"]
        }),
    })
}

pub async fn run(toolbox: &Toolbox<'_>, arguments: &Arguments) -> Result<String> {
    let query = arguments.get_text("query")?;
    let db = toolbox.memory.db;
    ensure_index(db)?;
    let wanted = Search {
        query,
        session_id: toolbox.only_session,
        limit: MAX_RESULTS,
        roles: None,
        since_ms: None,
        until_ms: None,
    };
    let found = search(db, toolbox.memory.outside, &wanted).await?.hits;
    if found.is_empty() {
        return Ok("Nothing that was said matches. Try other words.".to_owned());
    }
    let lines: Vec<String> = found
        .iter()
        .map(|hit| {
            let session = hit.session_name.as_deref().unwrap_or(&hit.session_id);
            let snippet: Vec<&str> = hit.snippet.split_whitespace().collect();
            let snippet = snippet.join(" ");
            format!("[{session}] {}: {snippet}", hit.role)
        })
        .collect();
    Ok(lines.join("\n"))
}
