//! The service or the address that is called when a turn is over.

use crate::base::outbound::conceal_url;
use serde::{Deserialize, Serialize};

use crate::base::ids::Id;

/// A service binding, or an address whose origin is in `TOOL_ORIGINS`: one of the two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TurnEndCallback {
    /// The service binding's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl TurnEndCallback {
    /// As a caller without the secret sees it.
    pub fn conceal(&mut self) {
        if let Some(url) = &mut self.url {
            *url = conceal_url(url);
        }
    }
}
