//! The ids of calls to `onTurnEnd` and `onMemoryChange`. A request that names such an id starts no
//! further call. So an id must be one that this agent issued, for this session or for its memory:
//! it contains a seal, and nothing about it is stored once its call is answered.

use sha2::{Digest as _, Sha256};

use access::{Policy, Secret};
use base::ids::Id;

/// The bytes of the seal in an id: 128 bits.
const SEAL_BYTES: usize = 16;

/// The deliveries of one session, or those that report changes of the agent's memory.
#[derive(Clone, Copy)]
pub struct Delivery<'a> {
    policy: &'a Policy,
    agent_name: &'a str,
    /// "": memory. No session has this id.
    session_id: &'a str,
}

impl<'a> Delivery<'a> {
    pub fn of(policy: &'a Policy, agent_name: &'a str, session_id: &'a Id) -> Self {
        Self {
            policy,
            agent_name,
            session_id: session_id.as_str(),
        }
    }

    /// The deliveries that report changes of memory, the agent's and its sessions'.
    pub fn of_memory(policy: &'a Policy, agent_name: &'a str) -> Self {
        Self {
            policy,
            agent_name,
            session_id: "",
        }
    }

    /// The id as it is issued.
    pub fn seal(self, id: &str) -> String {
        sealed(id, &self.digest(self.policy.secret(), id))
    }

    /// Whether this id was issued for a turn of this session, or for memory, also under a secret
    /// that is being replaced.
    pub fn issued(self, given: &Id) -> bool {
        let Some((id, _)) = given.as_str().rsplit_once('-') else {
            return false;
        };
        // Both are compared as digests, so that the time of the comparison reveals nothing about
        // the seal.
        let is_of = |secret: Option<&Secret>| {
            let seal = sealed(id, &self.digest(secret, id));
            self.digest(secret, &seal) == self.digest(secret, given.as_str())
        };
        match self.policy.secret() {
            Some(_) => self.policy.secrets().any(|secret| is_of(Some(secret))),
            None => is_of(None),
        }
    }

    fn digest(self, secret: Option<&Secret>, id: &str) -> [u8; 32] {
        // With the lengths first, no other three texts have the same content.
        let (agent, session) = (self.agent_name, self.session_id);
        let content = format!("{} {} {id}{agent}{session}", id.len(), agent.len());
        match secret {
            Some(secret) => secret.seal_delivery(&content),
            // Without a secret, no caller is restricted, so nobody benefits from a forgery.
            None => Sha256::digest(content).into(),
        }
    }
}

fn sealed(id: &str, digest: &[u8; 32]) -> String {
    let seal: String = (digest.iter().take(SEAL_BYTES))
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{id}-{seal}")
}
