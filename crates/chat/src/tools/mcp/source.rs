//! The address of a server, as `defineTool` accepts it and `listTools` returns it.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::address::tool_address::ToolAddress;
use base::error::{Error, Result};
use base::json::{self, RawValue};
use base::outbound::redact_url;
use base::settings::is_own_binding;

/// The path of a service where its server usually is.
const DEFAULT_PATH: &str = "mcp";

const MAX_PATH_BYTES: usize = 500;

const MAX_BINDING_BYTES: usize = 64;

/// An address, or a service binding.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ServerSource {
    Url(String),
    Service(ServerService),
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerService {
    /// The service binding's name.
    service: String,
    /// The path of the service. Default: `mcp`.
    path: Option<String>,
}

impl ServerSource {
    /// Hides what a caller without the secret must not see.
    pub fn redact(&mut self) {
        if let Self::Url(url) = self {
            *url = redact_url(url);
        }
    }
}

impl<'de> Deserialize<'de> for ServerSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let read = if raw.get().starts_with('"') {
            json::decode(raw.get()).map(Self::Url)
        } else {
            json::decode(raw.get()).map(Self::Service)
        };
        read.map_err(|_| de::Error::custom("must be a URL, or an object with `service` and `path`"))
    }
}

impl ServerSource {
    pub fn into_address(self) -> Result<ToolAddress> {
        let service = match self {
            Self::Url(url) => return Ok(ToolAddress::Url(url)),
            Self::Service(service) => service,
        };
        let refused = |what: &str| Err(Error::invalid("mcp", what));
        let binding = service.service;
        if binding.is_empty() || binding.len() > MAX_BINDING_BYTES || is_own_binding(&binding) {
            return refused("`mcp.service` must be the name of a service binding.");
        }
        let path = service.path.unwrap_or_else(|| DEFAULT_PATH.to_owned());
        let path = path.strip_prefix('/').unwrap_or(&path);
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'#');
        if path.len() > MAX_PATH_BYTES || !path.bytes().all(is_plain) {
            return refused("`mcp.path` must be a path in ASCII without `#`.");
        }
        Ok(ToolAddress::Service {
            binding,
            path: path.to_owned(),
        })
    }

    /// The source for an address, as it is returned.
    pub fn of(address: &ToolAddress) -> Self {
        match address {
            ToolAddress::Url(url) => Self::Url(url.clone()),
            ToolAddress::Service { binding, path } => Self::Service(ServerService {
                service: binding.clone(),
                path: Some(path.clone()),
            }),
        }
    }
}
