//! How an object recognizes the Worker in front, which waits for models instead of the object. The
//! object sends it the provider's keys, and trusts its report of what a model answered.
//!
//! The Worker signs the agent's name, and later the id of the turn's lease, with a key that is
//! derived from the secret. Without a secret, nobody can sign, and each object waits by itself.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac as _;

use super::policy::Policy;
use super::token::{Secret, mac};

/// The header with a signature. The Worker in front replaces what a client sends in it.
pub const FRONT_HEADER: &str = "x-session-agent-front";

/// The header with the id of a turn's lease, in the object's answer and in the request for the
/// lease's socket.
pub const LEASE_HEADER: &str = "x-session-agent-lease";

/// How long a signature is valid. The object checks it when the request arrives.
const VALID_MS: i64 = 60_000;

fn content(agent: &str, expires_at: i64) -> String {
    format!("{expires_at}\n{agent}")
}

/// A time is a number, so this is never the content of the other signature.
fn content_for_lease(agent: &str, lease: &str) -> String {
    format!("lease\n{agent}\n{lease}")
}

impl Policy {
    /// The signature for a request to this agent. `None`: there is no secret.
    pub fn sign_front(&self, agent: &str, now_ms: i64) -> Option<String> {
        let expires_at = now_ms + VALID_MS;
        let seal = self.seal_front(&content(agent, expires_at))?;
        Some(format!("{expires_at}.{seal}"))
    }

    /// The signature with which the Worker connects to this lease. It expires with the lease, since
    /// a request may take longer than [`VALID_MS`] to arrive.
    pub fn sign_lease(&self, agent: &str, lease: &str) -> Option<String> {
        self.seal_front(&content_for_lease(agent, lease))
    }

    fn seal_front(&self, content: &str) -> Option<String> {
        let key = self.secret()?.front_key();
        let seal = mac(&key, content).finalize().into_bytes();
        Some(URL_SAFE_NO_PAD.encode(seal))
    }

    /// The comparison takes constant time.
    fn is_sealed(&self, content: &str, seal: &str) -> bool {
        let Ok(seal) = URL_SAFE_NO_PAD.decode(seal) else {
            return false;
        };
        let has_signed = |secret: &Secret| {
            mac(&secret.front_key(), content)
                .verify_slice(&seal)
                .is_ok()
        };
        self.secrets().any(has_signed)
    }

    /// Whether this signature is valid for connecting to this lease.
    pub fn holds_lease(&self, agent: &str, lease: &str, signature: Option<&str>) -> bool {
        signature.is_some_and(|seal| self.is_sealed(&content_for_lease(agent, lease), seal))
    }

    /// Whether this signature is valid for a request to this agent.
    pub fn is_front(&self, agent: &str, now_ms: i64, signature: Option<&str>) -> bool {
        let Some((expires_at, seal)) = signature.and_then(|text| text.split_once('.')) else {
            return false;
        };
        let Ok(expires_at) = expires_at.parse::<i64>() else {
            return false;
        };
        expires_at >= now_ms && self.is_sealed(&content(agent, expires_at), seal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(secret: Option<&str>) -> Policy {
        Policy::new(secret.map(str::to_owned), None)
    }

    const OLD: &str = "an older secret of 32 characters";
    const NEW: &str = "a newer secret with 32 characters";

    #[test]
    fn a_front_signature_is_valid_for_one_agent_and_one_minute() {
        let new = policy(Some(NEW));
        let signature = new.sign_front("alice", 1_000).unwrap();
        let is_valid = |policy: &Policy, agent: &str, now_ms: i64| {
            policy.is_front(agent, now_ms, Some(&signature))
        };
        assert!(is_valid(&new, "alice", 61_000));
        assert!(!is_valid(&new, "alice", 61_001));
        assert!(!is_valid(&new, "bob", 1_000));
        assert!(!is_valid(&policy(Some(OLD)), "alice", 1_000));
        let both = policy(Some(OLD)).with_previous(Some(NEW.to_owned()));
        assert!(is_valid(&both, "alice", 1_000));
        assert!(!is_valid(&policy(None), "alice", 1_000));
        assert!(!is_valid(&Policy::new(None, Some("open")), "alice", 1_000));
        assert_eq!(policy(None).sign_front("alice", 1_000), None);
        let later = signature.replace("61000", "99000");
        for forged in ["", ".", "61000.", "61000.AA", "x.AA", &later, NEW] {
            assert!(!new.is_front("alice", 1_000, Some(forged)), "{forged}");
        }
        assert!(!new.is_front("alice", 1_000, None));
    }

    #[test]
    fn a_lease_signature_is_valid_for_one_lease() {
        let new = policy(Some(NEW));
        let front = new.sign_front("alice", 1_000).unwrap();
        let signature = new.sign_lease("alice", "t-1").unwrap();
        let is_valid = |policy: &Policy, agent: &str, lease: &str| {
            policy.holds_lease(agent, lease, Some(&signature))
        };
        assert!(is_valid(&new, "alice", "t-1"));
        assert!(!is_valid(&new, "alice", "t-2"));
        assert!(!is_valid(&new, "bob", "t-1"));
        assert!(!is_valid(&policy(Some(OLD)), "alice", "t-1"));
        let both = policy(Some(OLD)).with_previous(Some(NEW.to_owned()));
        assert!(is_valid(&both, "alice", "t-1"));
        assert!(!is_valid(&policy(None), "alice", "t-1"));
        assert_eq!(policy(None).sign_lease("alice", "t-1"), None);
        assert!(!new.is_front("alice", 1_000, Some(&signature)));
        let seal = front.split_once('.').unwrap().1;
        for forged in ["", "AA", &front, seal, &signature[1..], NEW] {
            assert!(!new.holds_lease("alice", "t-1", Some(forged)), "{forged}");
        }
        assert!(!new.holds_lease("alice", "t-1", None));
    }
}
