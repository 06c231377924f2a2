//! Finds where a request's history continues: in the session that the request names, or in
//! the one that gave the newest answer of the history. No session is scanned: the digest of
//! each answer's path is stored.

use crate::calls::ApiHeaders;
use crate::request::Item;
use access::permit;
use base::error::{Error, Result};
use base::ids::Id;
use chat::request::path_digest::PathDigest;
use chat::run::agent::{Agent, CHAT_RULE};
use chat::run::api_writer::ApiPosition;
use conversation::log::sessions::session_exists;
use conversation::log::tip::get_tip;
use conversation::session::path_digests::{PathEnd, find_longest};

pub struct HistoryPosition {
    pub session_id: Id,
    pub position: ApiPosition,
    /// How many items of the history the log already has.
    pub known: usize,
    /// The digest of the whole history.
    pub path: PathDigest,
}

/// The session that the request names: in its URL, in a header, or by its token.
pub fn named_session(
    agent: &Agent<'_>,
    address: Option<&Id>,
    headers: &ApiHeaders,
) -> Result<Option<Id>> {
    if let (Some(address), Some(header)) = (address, &headers.session_id)
        && address != header
    {
        return Err(Error::invalid(
            "x-session-id",
            "`x-session-id` and the URL name different sessions. Name the session in only one of them.",
        ));
    }
    let named = address.or(headers.session_id.as_ref());
    if let Some(named) = named {
        permit(agent.caller, CHAT_RULE, Some(named))?;
    }
    Ok(named.or(agent.caller.only_session()).cloned())
}

/// The position of an answer that a request names by id. All items of the request are new.
pub fn find_previous(
    agent: &Agent<'_>,
    named: Option<&Id>,
    previous: &Id,
    items: &[Item],
) -> Result<HistoryPosition> {
    let name = previous.as_str().to_owned();
    let ends = find_longest(agent.db, named, std::slice::from_ref(&name), true)?;
    let Some(end) = ends.into_iter().next_back() else {
        return Err(Error::invalid(
            "previous_response_id",
            "There is no answer with the id in `previous_response_id`, or it was not stored.",
        ));
    };
    let session_id = Id::parse(end.session_id).map_err(Error::storage)?;
    permit(agent.caller, CHAT_RULE, Some(&session_id))?;
    let mut path = PathDigest::from_text(name);
    for item in items {
        path = item.after(&path);
    }
    Ok(HistoryPosition {
        session_id,
        position: ApiPosition::After(end.seq),
        known: 0,
        path,
    })
}

/// `named` is the session that the request names.
pub fn find_position(
    agent: &Agent<'_>,
    named: Option<Id>,
    is_stored: bool,
    items: &[Item],
) -> Result<HistoryPosition> {
    let mut paths = Vec::with_capacity(items.len());
    let mut path = PathDigest::default();
    for item in items {
        path = item.after(&path);
        paths.push(path.as_str().to_owned());
    }
    let end = match &named {
        Some(id) if is_stored => find_in_stored(agent, id, &paths)?,
        Some(id) => find_longest(agent.db, Some(id), &paths, false)?.pop(),
        None => find_unnamed(agent, &paths)?,
    };
    let found = end.and_then(|end| {
        let known = paths.iter().rposition(|path| *path == end.digest)? + 1;
        Some((known, end))
    });
    let Some((known, end)) = found else {
        let position = match &named {
            Some(id) if is_stored => leaf_position(agent, id)?,
            _ => ApiPosition::Root,
        };
        return Ok(HistoryPosition {
            session_id: named.unwrap_or_else(|| Id::mint_session(agent.host)),
            position,
            known: 0,
            path,
        });
    };
    Ok(HistoryPosition {
        session_id: Id::parse(end.session_id).map_err(Error::storage)?,
        position: ApiPosition::After(end.seq),
        known,
        path,
    })
}

/// The newest position in a session whose log may contain only the start of the history. A
/// conversation may repeat a message: it counts as the same question only if nothing
/// follows it.
fn find_in_stored(agent: &Agent<'_>, session_id: &Id, paths: &[String]) -> Result<Option<PathEnd>> {
    if !session_exists(agent.db, session_id)? {
        return Ok(None);
    }
    let leaf = get_tip(agent.db, session_id)?.leaf.map(|leaf| leaf.seq);
    match find_longest(agent.db, Some(session_id), paths, false)?.pop() {
        Some(end) if end.is_answer || leaf == Some(end.seq) => Ok(Some(end)),
        Some(_) => Ok(find_longest(agent.db, Some(session_id), paths, true)?.pop()),
        None => Ok(None),
    }
}

/// The newest event of a session, whose messages precede the request's. Results of its
/// calls may come next.
fn leaf_position(agent: &Agent<'_>, session_id: &Id) -> Result<ApiPosition> {
    if !session_exists(agent.db, session_id)? {
        return Ok(ApiPosition::Root);
    }
    let leaf = get_tip(agent.db, session_id)?.leaf;
    Ok(leaf.map_or(ApiPosition::Root, |leaf| ApiPosition::After(leaf.seq)))
}

/// Among the sessions with the newest known answer of the history, the one whose leaf is still that
/// answer, or else the newest. A question doesn't identify a session by itself, because many
/// conversations start with the same words.
fn find_unnamed(agent: &Agent<'_>, paths: &[String]) -> Result<Option<PathEnd>> {
    let answers = find_longest(agent.db, None, paths, true)?;
    let mut best: Option<PathEnd> = None;
    for end in answers {
        let id = Id::parse(end.session_id.clone()).map_err(Error::storage)?;
        let leaf = get_tip(agent.db, &id)?.leaf.map(|leaf| leaf.seq);
        let is_at_leaf = leaf == Some(end.seq);
        best = Some(end);
        if is_at_leaf {
            break;
        }
    }
    let Some(best) = best else {
        return Ok(None);
    };
    // The same session may contain more of the history, such as a repeated question.
    let id = Id::parse(best.session_id.clone()).map_err(Error::storage)?;
    Ok(find_longest(agent.db, Some(&id), paths, false)?
        .pop()
        .or(Some(best)))
}
