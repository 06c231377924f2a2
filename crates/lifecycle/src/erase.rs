//! Erases mentions that `findMentions` found, all of them or none, by deletions that purge: each
//! mention's text, and what was derived from it.

use std::collections::BTreeMap;

use super::mentions::{Mention, MentionKind};
use super::purge::erase_around;
use base::database::{Database, atomically};
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use conversation::log::find::find_seqs;
use conversation::log::sessions::{self, session_exists};
use conversation::messages::change::touch;
use conversation::messages::delete::delete_events;
use conversation::messages::derived::delete_overlay;
use memory::erase_text::erase_text;
use memory::label::Label;
use memory::log_answers::TargetDocument;
use memory::log_copies::{CopiedDocument, erase_copies, erase_in_session};
use memory::proposals::erase::erase_of_block;
use memory::purge::{
    ItemKeys, erase_definition, erase_document_at, erase_entry_at, erase_version, forget_prompts,
};
use memory::{frozen, proposals};
use store::callbacks;
use store::erased::Erasure;
use store::erasing::ErasingDatabase;

/// The most mentions of one request.
pub const MAX_MENTIONS: usize = 100;

/// The mentions that a request erased.
pub struct ErasedMentions {
    /// How many of the mentions existed.
    pub found: usize,
    pub erasure: Erasure,
}

/// Erases these mentions in one transaction. A mention that no longer exists counts as not found.
pub fn erase_mentions(
    db: &dyn Database,
    host: &dyn Host,
    mentions: &[Mention],
) -> Result<ErasedMentions> {
    let targets: Vec<Target<'_>> = mentions
        .iter()
        .enumerate()
        .map(|(index, mention)| Target::read(index, mention))
        .collect::<Result<_>>()?;
    atomically(db, || {
        let db = ErasingDatabase::of_purge(db)?;
        let mut found = erase_events(&db, host, &targets)?;
        for target in &targets {
            found += usize::from(target.erase(&db, host)?);
        }
        Ok(ErasedMentions {
            found,
            erasure: db.finish()?,
        })
    })
}

/// A mention with the fields that its kind needs.
enum Target<'a> {
    Event(&'a Id, &'a Id),
    Summary(&'a Id, &'a Id),
    Session(&'a Id),
    Definition(&'a str, Label),
    Text(&'a str, Label, i64),
    Entry(&'a str, Label, &'a str),
    Document(&'a str, Label, &'a str),
    ItemVersion(&'a str, Label, &'a str, i64),
    LoadedDocument(&'a Id, Label, &'a str),
    Prompt(&'a str),
    Report(&'a str, &'a Id),
    Proposal(&'a Id),
}

impl<'a> Target<'a> {
    fn read(index: usize, mention: &'a Mention) -> Result<Self> {
        let missing = |field: &str| {
            let field = format!("places[{index}].{field}");
            let message =
                format!("`{field}` is missing. Send the place as `findMentions` returned it.");
            Error::invalid(&field, message)
        };
        let session = || {
            mention
                .session_id
                .as_ref()
                .ok_or_else(|| missing("sessionId"))
        };
        let id = || mention.id.as_ref().ok_or_else(|| missing("id"));
        let key = || mention.key.as_deref().ok_or_else(|| missing("key"));
        let version = || mention.version.ok_or_else(|| missing("version"));
        let label = || {
            let label = mention.label.as_deref().ok_or_else(|| missing("label"))?;
            Label::parse(label).map_err(|_| missing("label"))
        };
        let scope = mention.session_id.as_ref().map_or("", Id::as_str);
        Ok(match mention.kind {
            MentionKind::Event => Target::Event(session()?, id()?),
            MentionKind::Summary => Target::Summary(session()?, id()?),
            MentionKind::Session => Target::Session(session()?),
            MentionKind::Definition => Target::Definition(scope, label()?),
            MentionKind::Block => Target::Text(scope, label()?, version()?),
            MentionKind::Entry => Target::Entry(scope, label()?, key()?),
            MentionKind::Document => Target::Document(scope, label()?, key()?),
            MentionKind::Version => match &mention.key {
                Some(key) => Target::ItemVersion(scope, label()?, key, version()?),
                None => Target::Text(scope, label()?, version()?),
            },
            MentionKind::LoadedDocument => Target::LoadedDocument(session()?, label()?, key()?),
            MentionKind::Prompt => Target::Prompt(scope),
            MentionKind::Report => Target::Report(scope, id()?),
            MentionKind::Proposal => Target::Proposal(id()?),
        })
    }

    /// `false`: the target no longer exists, or is an event, which [`erase_events`] handles.
    fn erase(&self, db: &ErasingDatabase<'_>, host: &dyn Host) -> Result<bool> {
        Ok(match self {
            Target::Event(..) => false,
            Target::Summary(session_id, id) => {
                session_exists(db, session_id)? && delete_overlay(db, host, session_id, id)?
            }
            Target::Session(session_id) => erase_head(db, host, session_id)?,
            Target::Definition(scope, label) => {
                forget_prompts(db, scope)?;
                let existed = erase_definition(db, scope, label)?;
                db.count(|erased| erased.descriptions += i64::from(existed));
                existed
            }
            Target::Text(scope, label, version) => erase_text(db, scope, label, *version)?,
            Target::Entry(scope, label, key) => {
                forget_prompts(db, scope)?;
                erase_entry_at(db, &ItemKeys::new(scope, label, key))?
            }
            Target::Document(scope, label, key) => {
                let existed = erase_document_at(db, &ItemKeys::new(scope, label, key))?;
                let copied = CopiedDocument {
                    scope,
                    label,
                    key: Some(key),
                };
                erase_copies(db, host, &copied)?;
                forget_prompts(db, scope)?;
                existed
            }
            Target::ItemVersion(scope, label, key, version) => {
                forget_prompts(db, scope)?;
                erase_of_block(db, scope, &label.key(), Some(key))?;
                erase_version(db, &ItemKeys::new(scope, label, key), *version)?
            }
            // The row records that the log may contain the document: without the row, no purge
            // would search the log.
            Target::LoadedDocument(session_id, label, key) => {
                let sought = TargetDocument {
                    label,
                    key: Some(key),
                    until_ms: None,
                    is_agents: false,
                };
                erase_in_session(db, host, session_id, &sought)?
            }
            Target::Prompt(scope) => frozen::forget(db, scope)?,
            Target::Report(scope, id) => callbacks::delete_of_session(db, scope, id)?,
            Target::Proposal(id) => {
                let number = id.as_str().parse::<i64>().unwrap_or(0);
                proposals::rows::delete(db, number)?
            }
        })
    }
}

/// Erases the events among the targets, session by session.
fn erase_events(
    db: &ErasingDatabase<'_>,
    host: &dyn Host,
    targets: &[Target<'_>],
) -> Result<usize> {
    let mut sessions: BTreeMap<&str, (&Id, Vec<Id>)> = BTreeMap::new();
    for target in targets {
        if let Target::Event(session_id, id) = target {
            let (_, ids) = sessions
                .entry(session_id.as_str())
                .or_insert_with(|| (session_id, Vec::new()));
            ids.push((*id).clone());
        }
    }
    let mut found = 0;
    for (session_id, ids) in sessions.into_values() {
        if !session_exists(db, session_id)? {
            continue;
        }
        let seqs = find_seqs(db, session_id, ids.iter())?;
        erase_around(db, host, session_id, &seqs.into_values().collect())?;
        found += delete_events(db, host, session_id, &ids)?;
    }
    Ok(found)
}

/// Erases a session's name, metadata and tags. The session stays.
fn erase_head(db: &ErasingDatabase<'_>, host: &dyn Host, session_id: &Id) -> Result<bool> {
    if !sessions::erase_head(db, session_id)? {
        return Ok(false);
    }
    db.count(|erased| erased.descriptions += 1);
    touch(db, host, session_id)?;
    Ok(true)
}
