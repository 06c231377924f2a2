//! Stored answers of the Responses API, which are fetched or deleted by id.

use crate::listener::{ApiListener, Head, Source};
use crate::stored_answer::find_stored;
use access::{permit, permit_by_name};
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::{self, json};
use chat::run::agent::{Agent, CHAT_RULE};
use conversation::session::path_digests::{PathEnd, find_longest, forget};
use models::caller_fields::ProviderApi;

/// The prefix of their ids. Other answers' names have other prefixes.
pub const PREFIX: &str = "resp_";

/// The end of the path with this answer. `None`: there is no such answer, or it was not
/// stored.
pub fn find_end(agent: &Agent<'_>, named: Option<&Id>, id: &str) -> Result<Option<PathEnd>> {
    permit_by_name(agent.caller, CHAT_RULE)?;
    let named = named.or(agent.caller.only_session());
    let found = match id.strip_prefix(PREFIX) {
        Some(_) => find_longest(agent.db, named, &[id.to_owned()], true)?.pop(),
        None => None,
    };
    if let Some(end) = &found {
        let session_id = Id::parse(end.session_id.clone()).map_err(Error::storage)?;
        permit(agent.caller, CHAT_RULE, Some(&session_id))?;
    }
    Ok(found)
}

fn find(agent: &Agent<'_>, named: Option<&Id>, id: &str) -> Result<PathEnd> {
    find_end(agent, named, id)?.ok_or_else(|| {
        Error::new(
            Code::MessageNotFound,
            "There is no answer with this id, or it was not stored.",
        )
    })
}

/// Returns the whole answer.
pub async fn get(agent: &Agent<'_>, named: Option<&Id>, id: &str) -> Result<String> {
    let end = find(agent, named, id)?;
    let session_id = Id::parse(end.session_id).map_err(Error::storage)?;
    let stored = find_stored(agent.db, &session_id, end.seq)?;
    let model = stored.model.unwrap_or_default();
    let head = Head {
        api: ProviderApi::Responses,
        is_streamed: false,
        wants_usage: true,
        model: model.strip_prefix("openai:").unwrap_or(&model).to_owned(),
        tools: stored.tools,
        created_s: agent.host.now_ms() / 1000,
        echo: None,
        wants_encrypted: false,
    };
    let name = id.strip_prefix(PREFIX).unwrap_or(id).to_owned();
    ApiListener::new(head, Source::Stored(name, stored.events))
        .whole()
        .await
}

/// Deletes the id. The log keeps the messages.
pub fn delete(agent: &Agent<'_>, named: Option<&Id>, id: &str) -> Result<String> {
    let end = find(agent, named, id)?;
    let session_id = Id::parse(end.session_id).map_err(Error::storage)?;
    forget(agent.db, Some(&session_id), id)?;
    let answer = json!({"id": id, "object": "response", "deleted": true});
    Ok(json::text(&answer))
}
