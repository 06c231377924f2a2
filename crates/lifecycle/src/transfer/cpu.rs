//! The CPU time of work that grows with the agent: exports, imports, backups and restores.
//!
//! The platform limits an object to 30 seconds of CPU between two requests that it
//! receives. The file of a large agent needs more. So the object sends a request to itself
//! after each [`RENEW_BYTES`] of the file, and each such request starts a new allowance.

use std::cell::Cell;

use base::outbound::{CallLimits, CallPurpose, Endpoint, Outbound, OutboundRequest, send_and_read};
use memory::backends::agent::secret_header;

/// The bytes of a file that are written or read per allowance. A file of short sessions
/// costs the most: about 1.5 seconds of CPU per MiB to import, and 1.1 to export.
pub const RENEW_BYTES: usize = 4 << 20;

/// The operation that the object calls on itself: it reads one row.
const OPERATION: &str = "getConfig";

const LIMITS: CallLimits = CallLimits {
    wait_ms: 5_000,
    silence_ms: 5_000,
    no_content_ms: None,
    total_ms: 5_000,
    max_bytes: 256 << 10,
};

/// Counts the bytes of a file since the last request that the object sent to itself.
#[derive(Default)]
pub struct CpuAllowance {
    used_bytes: Cell<usize>,
}

impl CpuAllowance {
    /// Counts bytes that were written or read, and renews the allowance if it is used up.
    /// `agent` is the name of this object.
    pub async fn use_bytes(&self, bytes: usize, outbound: &dyn Outbound, agent: &str) {
        let used_bytes = self.used_bytes.get() + bytes;
        if used_bytes < RENEW_BYTES {
            self.used_bytes.set(used_bytes);
            return;
        }
        self.used_bytes.set(0);
        let request = OutboundRequest {
            purpose: CallPurpose::Memory,
            endpoint: Endpoint::Agent {
                name: agent.to_owned(),
                operation: OPERATION.to_owned(),
            },
            headers: secret_header(outbound).into_iter().collect(),
            body: "{}".to_owned(),
            limits: LIMITS,
        };
        // A refused request has also reached the object. If a request didn't arrive, one
        // allowance is lost, and the next one renews it.
        let _ = send_and_read(outbound, request).await;
    }
}
