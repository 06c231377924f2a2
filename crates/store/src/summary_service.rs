//! The setting `summarize`: a service binding that writes summaries instead of a model.
//! `context/compaction/service.rs` calls it.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use base::ids::Id;

/// The service that writes summaries. `{}`: none, even if a default is deployed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SummaryService {
    /// The service binding's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Id>,
}
