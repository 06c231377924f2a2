//! Receipts of purges: what was erased, where, by which operation and when. A receipt
//! contains counts and no content, so it may be kept after everything else is deleted. Its
//! digest proves that it was not changed, and its signature that this Worker issued it.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use access::Secret;
use base::error::{Error, Result};
use base::host::Host;
use base::json::{self, list};
use memory::backends::receipt::BackendReceipt;
use store::erased::Erased;

/// The receipt that a deletion with `purge` adds to its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    pub erased: Erased,
    /// The answer of the block's external source. Absent: the text was stored only in this
    /// agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<BackendReceipt>,
    /// In a receipt for several agents: the name prefix of the destroyed agents, and their
    /// number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<ErasedAgentSet>,
    /// The agent's name.
    pub agent: String,
    /// The operation that erased.
    pub operation: String,
    /// Milliseconds since the epoch.
    pub at: i64,
    /// SHA-256, in hex, of the receipt as JSON without `digest` and `signature`: names
    /// sorted, no spaces.
    pub digest: String,
    /// HMAC-SHA-256, in hex, of `digest`, with a key derived from the Worker's secret.
    /// Absent: the Worker has no secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// The most shared agents that a receipt lists: 1,000 names of 200 characters.
const MAX_NAMED_BACKENDS: usize = 1_000;

/// The agents that a receipt is for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErasedAgentSet {
    pub prefix: String,
    pub count: i64,
    /// The agents among them that stored the others' shared memory, by name.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, 0, MAX_NAMED_BACKENDS>"
    )]
    #[schemars(length(max = MAX_NAMED_BACKENDS))]
    pub homes: Vec<String>,
}

/// Issues the receipts of an agent.
pub struct Issuer<'a> {
    pub agent: &'a str,
    pub host: &'a dyn Host,
    pub secret: Option<&'a Secret>,
}

impl Issuer<'_> {
    pub fn issue(
        &self,
        operation: &str,
        erased: Erased,
        home: Option<BackendReceipt>,
    ) -> Result<Receipt> {
        self.issue_for(operation, erased, home, None)
    }

    /// `agents`: the agents that were destroyed.
    pub fn issue_for(
        &self,
        operation: &str,
        erased: Erased,
        home: Option<BackendReceipt>,
        agents: Option<ErasedAgentSet>,
    ) -> Result<Receipt> {
        let mut receipt = Receipt {
            erased,
            home,
            agents,
            agent: self.agent.to_owned(),
            operation: operation.to_owned(),
            at: self.host.now_ms(),
            digest: String::new(),
            signature: None,
        };
        receipt.digest = receipt.compute_digest()?;
        receipt.signature = self
            .secret
            .map(|secret| hex(&secret.seal_receipt(&receipt.digest)));
        Ok(receipt)
    }
}

impl Receipt {
    /// The digest of the receipt's JSON. Field names are sorted, because `Value` sorts
    /// them.
    fn compute_digest(&self) -> Result<String> {
        let unread = |_| Error::storage("a receipt is not JSON");
        let mut digested = json::decode_tree(&json::encode(self)?).map_err(unread)?;
        if let Some(fields) = digested.as_object_mut() {
            fields.remove("digest");
            fields.remove("signature");
        }
        Ok(hex(&Sha256::digest(json::text(&digested))))
    }

    /// Whether the digest matches the receipt.
    pub fn is_whole(&self) -> Result<bool> {
        Ok(self.compute_digest()? == self.digest)
    }

    /// Whether a Worker with this secret signed the receipt.
    pub fn is_signed_by(&self, secret: &Secret) -> bool {
        let signature = self.signature.as_deref().and_then(from_hex);
        signature.is_some_and(|seal| secret.has_sealed_receipt(&self.digest, &seal))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}
