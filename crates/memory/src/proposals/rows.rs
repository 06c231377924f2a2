//! The table of proposals. A proposal's id is its number: the time of its creation, or one more
//! than the last number, so that ids are in chronological order.

use super::{
    ChangeStatus, CurrentText, MemoryChange, Proposal, ProposalKind, ProposalNote, ProposalOrigin,
    ProposalScope, ProposalStatus,
};
use crate::Memory;
use crate::change_events::ChangeEvent;
use crate::tables::PROPOSALS;
use crate::writer::MemoryWriter;
use base::columns::{find, find_value, load};
use base::database::{Database, Delete, SqlValue};
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json;
use base::row;

/// How many decided proposals are stored. The oldest are deleted; what they wrote stays.
const MAX_DECIDED: i64 = 1_000;

/// How many proposals may be pending. Beyond that, the agent learns no more until some are decided.
/// Proposals from callers limited to a session have a limit of their own, and each session a share
/// of it, so that no session stops the others' learning.
const MAX_PENDING: i64 = 500;
const MAX_PENDING_OF_SESSION: i64 = 20;

/// One proposal, as its row stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredProposal {
    pub number: i64,
    /// Empty: from memory itself.
    pub session_id: String,
    pub kind: ProposalKind,
    pub label: String,
    pub note: ProposalNote,
    pub changes: Vec<MemoryChange>,
}

impl StoredProposal {
    pub fn origin(&self) -> Result<ProposalOrigin> {
        let session_id = match self.session_id.as_str() {
            "" => None,
            id => Some(Id::parse(id.to_owned()).map_err(Error::storage)?),
        };
        Ok(ProposalOrigin {
            session_id,
            scope: self.note.scope,
        })
    }

    /// Whether the proposal is about a block of this scope.
    pub(super) fn is_of(&self, scope: &str) -> bool {
        match self.note.scope {
            ProposalScope::Session => self.session_id == scope,
            ProposalScope::Agent | ProposalScope::Narrowed => scope.is_empty(),
        }
    }

    /// Notifies a service that the proposal is new, decided or withdrawn (`onMemoryChange`). Part
    /// of the transaction that writes it.
    pub fn notify(&self, memory: &Memory<'_>) -> Result<()> {
        let status = ProposalStatus::of(&self.changes).name();
        ChangeEvent::of_proposal(self.number, &self.label, status)
            .notify(memory, MemoryWriter::default())
    }

    /// The proposal as callers see it. A pending change includes the current text.
    pub fn show(
        mut self,
        find_current: &dyn Fn(&MemoryChange) -> Result<Option<CurrentText>>,
    ) -> Result<Proposal> {
        for change in &mut self.changes {
            if change.status == ChangeStatus::Pending {
                change.before = find_current(change)?;
            }
        }
        Ok(Proposal {
            id: self.number.to_string(),
            kind: self.kind,
            status: ProposalStatus::of(&self.changes),
            label: self.label,
            session_id: Some(self.session_id).filter(|id| !id.is_empty()),
            model: self.note.model,
            created_at: self.note.created_at,
            decided_at: self.note.decided_at,
            decided_by: self.note.decided_by,
            refused: self.note.refused,
            changes: self.changes,
        })
    }
}

row! {
    pub for StoredProposal {
        number: i64 = "number",
        session_id: String = "session_id",
        kind: &str = "kind",
        label: String = "label",
        note: &str = "note",
        changes: &str = "changes",
    }
    {
        let damaged = || Error::corrupt_row(&number.to_string(), "proposal");
        Ok(Self {
            number,
            session_id,
            kind: ProposalKind::parse(kind).ok_or_else(damaged)?,
            label,
            note: json::decode(note).map_err(|_| damaged())?,
            changes: json::decode(changes).map_err(|_| damaged())?,
        })
    }
}

/// Writes a new proposal, and assigns its number. Part of a transaction.
pub fn insert(memory: &Memory<'_>, mut proposal: StoredProposal) -> Result<StoredProposal> {
    let (db, host) = (memory.db, memory.host);
    let last: Option<Option<i64>> =
        find_value(db, "SELECT max(number) FROM cf_agents_proposals", &[])?;
    let after_last = last.flatten().map_or(1, |last| last + 1);
    proposal.number = host.now_ms().max(after_last);
    restore(db, &proposal)?;
    forget_old(db)?;
    proposal.notify(memory)?;
    Ok(proposal)
}

/// Writes a proposal's row as it is.
pub fn restore(db: &dyn Database, proposal: &StoredProposal) -> Result<()> {
    db.run(
        "INSERT INTO cf_agents_proposals (number, session_id, kind, status, label, note, changes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        &[
            proposal.number.into(),
            proposal.session_id.as_str().into(),
            proposal.kind.name().into(),
            ProposalStatus::of(&proposal.changes).name().into(),
            proposal.label.as_str().into(),
            json::encode(&proposal.note)?.into(),
            json::encode(&proposal.changes)?.into(),
        ],
    )
}

/// Writes the outcome of a proposal. Part of a transaction.
pub fn update(db: &dyn Database, proposal: &StoredProposal) -> Result<()> {
    db.run(
        "UPDATE cf_agents_proposals
            SET status = ?2,
                note = ?3,
                changes = ?4
          WHERE number = ?1",
        &[
            proposal.number.into(),
            ProposalStatus::of(&proposal.changes).name().into(),
            json::encode(&proposal.note)?.into(),
            json::encode(&proposal.changes)?.into(),
        ],
    )
}

/// Deletes a proposal; `false`: there is none of this number. Part of a transaction.
pub fn delete(db: &dyn Database, number: i64) -> Result<bool> {
    Ok(Delete::from(PROPOSALS, "number = ?1", &[number.into()]).run(db)? > 0)
}

/// Deletes the oldest decided proposals beyond the limit.
fn forget_old(db: &dyn Database) -> Result<()> {
    Delete::from(
        PROPOSALS,
        "number IN (SELECT number
                      FROM cf_agents_proposals
                     WHERE status <> 'pending'
                     ORDER BY number DESC
                     LIMIT 10 OFFSET ?1)",
        &[MAX_DECIDED.into()],
    )
    .run(db)?;
    Ok(())
}

/// Deletes proposals that were made before this time, 500 at most. A proposal's number is the time
/// when it was made.
pub fn forget_before(db: &dyn Database, time_ms: i64, keeps_pending: bool) -> Result<()> {
    Delete::from(
        PROPOSALS,
        "number IN (SELECT number
                      FROM cf_agents_proposals
                     WHERE number <= ?1
                       AND (?2 = 0 OR status <> 'pending')
                     ORDER BY number
                     LIMIT 500)",
        &[time_ms.into(), keeps_pending.into()],
    )
    .run(db)?;
    Ok(())
}

/// Rejects another proposal if the limit of pending ones is reached.
pub fn check_capacity(db: &dyn Database, origin: &ProposalOrigin) -> Result<()> {
    let session_id = origin.session_id.as_ref().map(Id::as_str);
    match origin.scope {
        ProposalScope::Agent => check_count(db, true, None, MAX_PENDING),
        ProposalScope::Narrowed | ProposalScope::Session => {
            check_count(db, false, None, MAX_PENDING)?;
            check_count(db, false, session_id, MAX_PENDING_OF_SESSION)
        }
    }
}

fn check_count(
    db: &dyn Database,
    is_agents: bool,
    session_id: Option<&str>,
    most: i64,
) -> Result<()> {
    let sql = "SELECT count(*)
                 FROM (SELECT 1
                         FROM cf_agents_proposals
                        WHERE status = 'pending'
                          AND (note ->> '$.scope' IS NULL) = ?1
                          AND (?2 IS NULL OR session_id = ?2)
                        LIMIT ?3)";
    let params = [i64::from(is_agents).into(), session_id.into(), most.into()];
    let waiting: i64 = find_value(db, sql, &params)?.unwrap_or(0);
    if waiting < most {
        return Ok(());
    }
    Err(Error::new(
        Code::PayloadTooLarge,
        format!(
            "There are {most} pending proposals, which is the limit. Approve or reject some with \
             `decideProposal`; then learning continues."
        ),
    )
    .with("limit", most)
    .with("actual", waiting))
}

/// The proposal of this id.
pub fn get(db: &dyn Database, id: &str) -> Result<StoredProposal> {
    let unknown = || {
        Error::invalid(
            "id",
            "There is no proposal with this `id`. `getProposals` lists the existing ones.",
        )
    };
    let number: i64 = id.parse().map_err(|_| unknown())?;
    let sql = format!(
        "SELECT {}
           FROM cf_agents_proposals
          WHERE number = ?1",
        StoredProposal::COLUMNS
    );
    find(db, &sql, &[number.into()])?.ok_or_else(unknown)
}

/// The filter of a page of proposals.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProposalFilter<'a> {
    pub status: Option<ProposalStatus>,
    pub session_id: Option<&'a str>,
}

/// Up to `limit` proposals with lower numbers than `below`, newest first.
pub fn load_page(
    db: &dyn Database,
    filter: ProposalFilter<'_>,
    below: i64,
    limit: i64,
) -> Result<Vec<StoredProposal>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_proposals
          WHERE number < ?1
            AND (?2 IS NULL OR status = ?2)
            AND (?3 IS NULL OR session_id = ?3)
          ORDER BY number DESC
          LIMIT ?4",
        StoredProposal::COLUMNS
    );
    let params: [SqlValue; 4] = [
        below.into(),
        filter.status.map(ProposalStatus::name).into(),
        filter.session_id.into(),
        limit.into(),
    ];
    load(db, &sql, &params)
}

/// Up to `limit` proposals with higher numbers, in their order, for an export.
pub fn load_after(db: &dyn Database, after: i64, limit: i64) -> Result<Vec<StoredProposal>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_proposals
          WHERE number > ?1
          ORDER BY number
          LIMIT ?2",
        StoredProposal::COLUMNS
    );
    load(db, &sql, &[after.into(), limit.into()])
}
