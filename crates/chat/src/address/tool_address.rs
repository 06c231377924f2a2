//! The address of a registered tool, and the limits on the duration and the length of its
//! answers.

use crate::address::origin::origin_of;
use crate::address::tool_headers::{ResolvedHeaders, ToolHeaders};
use base::error::{Code, Error, Result};
use base::outbound::{CallFailure, CallLimits, Endpoint, Outbound};
use base::settings::Setting;

/// The limits of a tool call. A call waits at most 5 minutes to be sent, and its answer
/// takes at most 5 minutes.
pub const LIMITS: CallLimits = CallLimits {
    wait_ms: 5 * 60_000,
    silence_ms: 30_000,
    no_content_ms: None,
    total_ms: 5 * 60_000,
    max_bytes: 1 << 20,
};

/// The bytes of an answer that a model receives, if the tool's definition sets no limit. A
/// longer answer is stored completely: see `chat/run/whole_outputs.rs`.
const SHOWN_BYTES: usize = 256 << 10;

/// The longest timeout that a tool's definition may set.
pub const MAX_TIMEOUT_MS: i64 = 5 * 60_000;

/// The highest limit that a tool's definition may set for its answers: half of the limit
/// for all outputs of a turn.
pub const MAX_TOOL_OUTPUT_BYTES: i64 = 512 << 10;

/// The address of a tool or of a tool server.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolAddress {
    /// A service binding, and a path of the service.
    Service {
        binding: String,
        path: String,
    },
    Url(String),
}

impl ToolAddress {
    /// `None`: a service has no URL.
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Url(url) => Some(url),
            Self::Service { .. } => None,
        }
    }

    pub fn to_endpoint(&self) -> Endpoint {
        match self {
            ToolAddress::Service { binding, path } => Endpoint::Service {
                binding: binding.clone(),
                path: path.clone(),
            },
            ToolAddress::Url(url) => Endpoint::Url(url.clone()),
        }
    }

    /// Checks that the address is configured and allowed, and that the secrets may be sent
    /// there. `field` is the name of the URL in the request.
    pub fn check_address(
        &self,
        outbound: &dyn Outbound,
        headers: &ToolHeaders,
        field: &str,
    ) -> Result<ResolvedHeaders> {
        match self {
            ToolAddress::Service { binding, .. } => {
                if !outbound.is_bound(binding) {
                    return Err(CallFailure::not_configured(binding));
                }
                headers.resolve(outbound, None)
            }
            ToolAddress::Url(url) => {
                check_url(outbound, url, field)?;
                headers.resolve(outbound, Some(url))
            }
        }
    }
}

/// The limits that a tool's definition sets. `None`: those of [`LIMITS`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ToolLimits {
    /// The time from sending a call to the end of its answer.
    pub timeout_ms: Option<i64>,
    /// The most bytes of an answer.
    pub max_output_bytes: Option<i64>,
}

impl ToolLimits {
    /// The most bytes of an answer that the model receives untruncated.
    pub fn shown_bytes(self) -> usize {
        let own = self.max_output_bytes.map(usize::try_from);
        own.and_then(|bytes| bytes.ok()).unwrap_or(SHOWN_BYTES)
    }

    pub fn of_call(self) -> CallLimits {
        let mut limits = LIMITS;
        if let Some(ms) = self.timeout_ms {
            // A tool with its own timeout may be silent for all of it.
            limits.silence_ms = ms;
            limits.total_ms = ms;
        }
        if let Some(bytes) = self.max_output_bytes {
            limits.max_bytes = usize::try_from(bytes).unwrap_or(limits.max_bytes);
        }
        limits
    }
}

/// Checks that the operator of this Worker allows tools at this URL. `field` is its name in
/// the request.
pub fn check_url(outbound: &dyn Outbound, url: &str, field: &str) -> Result<()> {
    let refused = |message: String| Error::new(Code::Forbidden, message).with_field(field);
    let Some(origin) = origin_of(url) else {
        return Err(Error::invalid(
            field,
            format!(
                "`{field}` must be an `https:` URL without a user name or a fragment. `http:` is allowed only for this machine."
            ),
        ));
    };
    let allowed = outbound
        .find_setting(Setting::ToolOrigins)
        .unwrap_or_default();
    let is_allowed = allowed
        .split([',', ' '])
        .filter_map(origin_of)
        .any(|allowed| allowed == origin);
    if is_allowed {
        return Ok(());
    }
    Err(refused(format!(
        "Tools at {origin} are not allowed. Add the origin to the variable `{}`.",
        Setting::ToolOrigins.name()
    )))
}
