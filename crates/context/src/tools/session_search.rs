//! `session_search`: the model searches the messages of the agent's sessions.

use super::arguments::Arguments;
use super::recalled::{CUT_SHORT, FORM};
use super::{ContextTool, MemoryTool, Toolbox, more_queries};
use base::action::Role;
use base::error::Result;
use base::ids::Id;
use base::json::json;
use base::quoted::{Untrusted, origin_line, quote};
use conversation::index::build::{BuildScope, advance};
use conversation::index::request::SearchRequest;
use memory::definition::Definition;
use memory::origin::Origin;
use recall::events::search;

pub const TOOL: ContextTool = ContextTool {
    name: "session_search",
    define,
    run: |toolbox, blocks, arguments| Box::pin(run(toolbox, blocks, arguments)),
};

/// How many results a model gets.
const MAX_RESULTS: usize = 8;

/// Informs a model that older events are not in the index yet.
const STILL_INDEXING: &str =
    "(Older conversations are still being indexed: search again later to find more.)";

fn define(toolbox: &Toolbox<'_>, _: &[Definition]) -> Option<MemoryTool> {
    toolbox.config.session_search.then(|| MemoryTool {
        name: TOOL.name,
        description: "Search the messages and tool results of earlier conversations. Returns the \
                      best matches, best first. "
            .to_owned()
            + FORM,
        parameters: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for, in a few words."},
                "queries": more_queries()
            },
            "required": ["query"]
        }),
    })
}

async fn run(toolbox: &Toolbox<'_>, _: &[Definition], arguments: &Arguments) -> Result<String> {
    let queries = arguments.get_queries()?;
    let db = toolbox.memory.db;
    let only = toolbox.only_session.map(Id::as_str);
    let progress = advance(db, only.map_or(BuildScope::Anyone(None), BuildScope::Only))?;
    let wanted = SearchRequest {
        queries: &queries,
        session_id: toolbox.only_session,
        limit: MAX_RESULTS,
        roles: None,
        since_ms: None,
        until_ms: None,
        filter: None,
    };
    let found = search(&toolbox.memory, &wanted).await?;
    let is_cut = found.is_cut;
    let found = found.hits;
    if found.is_empty() {
        return Ok(match (progress.is_pending, is_cut) {
            (true, _) => format!("No message matches. {STILL_INDEXING}"),
            (false, true) => format!("No message matches so far. {CUT_SHORT}"),
            (false, false) => "No message matches. Try other words.".to_owned(),
        });
    }
    let mut lines: Vec<String> = found
        .iter()
        .map(|hit| {
            let session = hit.session_name.as_deref().unwrap_or(&hit.session_id);
            let source = source_of(&hit.role);
            format!(
                "[{}] {}\n{}",
                quote(Untrusted::SessionName, session),
                origin_line(source, Some(hit.created_at), &[]),
                quote(Untrusted::MessageText, &hit.snippet)
            )
        })
        .collect();
    if is_cut {
        lines.push(CUT_SHORT.to_owned());
    }
    if progress.is_pending {
        lines.push(STILL_INDEXING.to_owned());
    }
    Ok(lines.join("\n"))
}

/// The source of a message, as memory names it.
fn source_of(role: &str) -> &'static str {
    let origin = match Role::find(role) {
        Some(Role::User) => Origin::User,
        Some(Role::Assistant) => Origin::Agent,
        Some(Role::Tool) => Origin::Tool,
        Some(Role::System) | None => Origin::Operator,
    };
    origin.name()
}
