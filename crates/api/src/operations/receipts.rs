//! Receipts of deletions with `purge`, and the operation that checks one.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use access::{Effect, Needs, permit_purge};
use base::error::Result;
use lifecycle::receipt::{Issuer, Receipt};
use lifecycle::retention::retained_until;
use memory::Memory;
use memory::backends::receipt::BackendReceipt;
use memory::definition::Definition;
use memory::past::ItemDeleted;
use memory::purge::Purged;
use memory::source::BlockBackend;
use store::erased::{Erased, Erasure};

/// Checks that the caller may purge by this operation, and that not too many purges wait for
/// receipts. Runs before anything is deleted.
pub fn admit_purge(agent: &Agent<'_>, operation: &str) -> Result<()> {
    permit_purge(agent.caller, operation)?;
    agent.work.pages.check_capacity(agent.host.now_ms())
}

/// A receipt of this agent for a committed purge. It becomes true once pages are cleared, which the
/// object does before it responds ([`Reply::purged`]).
pub fn issue_of(
    agent: &Agent<'_>,
    operation: &str,
    erasure: &Erasure,
    home: Option<BackendReceipt>,
) -> Result<Receipt> {
    agent.work.pages.add(&erasure.left);
    issue(agent, operation, erasure.erased.clone(), home)
}

/// A receipt of this agent for an operation.
pub fn issue(
    agent: &Agent<'_>,
    operation: &str,
    erased: Erased,
    home: Option<BackendReceipt>,
) -> Result<Receipt> {
    let issuer = Issuer {
        agent: agent.name,
        host: agent.host,
        secret: agent.policy.secret(),
    };
    issuer.issue(operation, erased, home)
}

/// The result of deleting an entry or a document.
#[derive(Serialize, JsonSchema)]
pub struct DeletedItem {
    #[serde(flatten)]
    item: ItemDeleted,
    /// With `purge`: what was erased.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
}

impl DeletedItem {
    /// The time until which the versions of an item that is deleted now are retained. Computed before
    /// the deletion, because nothing may fail after the commit. If another agent stores the block, its
    /// answer contains the time.
    pub fn find_until(memory: &Memory<'_>, block: &Definition) -> Result<Option<i64>> {
        match block.backend() {
            BlockBackend::Agent { .. } => Ok(None),
            BlockBackend::Object
            | BlockBackend::Bucket { .. }
            | BlockBackend::BucketPrefix { .. }
            | BlockBackend::Service { .. }
            | BlockBackend::Unresolved { .. } => retained_until(memory, &block.scope, &block.label),
        }
    }

    /// The answer to a deletion without `purge`: the retained versions, and for how long.
    pub fn deleted(mut item: ItemDeleted, until: Option<i64>) -> Result<Reply> {
        if item.versions_kept.is_some() {
            item.versions_until = item.versions_until.or(until);
        }
        Reply::json(&Self {
            item,
            receipt: None,
        })
    }

    pub fn purged(agent: &Agent<'_>, operation: &str, purged: Purged) -> Result<Reply> {
        let reply = Reply::json(&Self {
            item: ItemDeleted {
                deleted: purged.existed,
                versions_kept: None,
                versions_until: None,
            },
            receipt: Some(issue_of(agent, operation, &purged.erasure, purged.home)?),
        })?;
        Ok(reply.purged(purged.erasure.left))
    }
}

/// Checks a receipt: whether this Worker signed it, and whether it is unchanged since. A
/// receipt without a signature can't be verified, because anybody can write one, so it is
/// not valid. A Worker without a secret signs nothing, and can verify no receipt.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifyReceipt {
    /// The receipt, exactly as the deletion returned it. Other fields of that answer are
    /// ignored.
    receipt: Receipt,
}

#[derive(Serialize, JsonSchema)]
pub struct ReceiptCheck {
    /// Whether this Worker signed the receipt, and nobody has changed it since.
    valid: bool,
    /// The same as `valid`: only a signed receipt is valid.
    signed: bool,
}

impl Operation for VerifyReceipt {
    const NAME: &'static str = "verifyReceipt";
    const NEEDS: Needs = Needs::Narrowed;
    const EFFECT: Effect = Effect::Nothing;
    type Output = ReceiptCheck;
}

impl RunAtOnce for VerifyReceipt {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let receipt = &self.receipt;
        let mut secrets = agent.policy.secrets();
        let is_ours = secrets.any(|secret| receipt.is_signed_by(secret)) && receipt.is_whole()?;
        Reply::json(&ReceiptCheck {
            valid: is_ours,
            signed: is_ours,
        })
    }
}
