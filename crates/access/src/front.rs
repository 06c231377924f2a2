//! How an object recognizes the Worker in front, which waits for models in the object's place. The
//! object sends it the provider's keys, and believes what it says that a model answered.
//!
//! The Worker signs the agent's name with a key that is derived from the secret. Without a secret,
//! nobody can sign, and each object waits by itself.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac as _;

use super::policy::Policy;
use super::token::{Secret, mac};

/// The header with the signature. The Worker in front replaces what a client sends in it.
pub const FRONT_HEADER: &str = "x-session-agent-front";

/// The header with the id of a turn's lease, in the object's answer and in the request for the
/// lease's socket.
pub const LEASE_HEADER: &str = "x-session-agent-lease";

/// How long a signature is valid. The object checks it when the request arrives.
const VALID_MS: i64 = 60_000;

fn content(agent: &str, expires_at: i64) -> String {
    format!("{expires_at}\n{agent}")
}

impl Policy {
    /// The signature for a request to this agent. `None`: there is no secret.
    pub fn sign_front(&self, agent: &str, now_ms: i64) -> Option<String> {
        let expires_at = now_ms + VALID_MS;
        let key = self.secret()?.front_key();
        let seal = mac(&key, &content(agent, expires_at))
            .finalize()
            .into_bytes();
        Some(format!("{expires_at}.{}", URL_SAFE_NO_PAD.encode(seal)))
    }

    /// Whether this signature is valid for a request to this agent. The comparison takes constant
    /// time.
    pub fn is_front(&self, agent: &str, now_ms: i64, signature: Option<&str>) -> bool {
        let Some((expires_at, seal)) = signature.and_then(|text| text.split_once('.')) else {
            return false;
        };
        let (Ok(expires_at), Ok(seal)) = (expires_at.parse::<i64>(), URL_SAFE_NO_PAD.decode(seal))
        else {
            return false;
        };
        let content = content(agent, expires_at);
        let has_signed = |secret: &Secret| {
            mac(&secret.front_key(), &content)
                .verify_slice(&seal)
                .is_ok()
        };
        expires_at >= now_ms && self.secrets().any(has_signed)
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
    fn only_a_holder_of_the_secret_signs_for_one_agent_and_for_a_minute() {
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
}
