//! A turn that a request in a provider's API began: what such a turn stores until its end.

use serde::{Deserialize, Serialize};

use models::caller_fields::CallerFields;
use store::memory_use::MemoryUse;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiTurn {
    /// What is passed through to the provider.
    pub caller: CallerFields,
    /// The digest of the path that the answer follows.
    pub path: String,
    /// The digest of the request: a repeated request joins the turn.
    pub request: String,
    /// The request has a key, so its answer may be requested again after the turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_key: bool,
    /// The id by which the answer may be requested, and by which a request may name its position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    pub memory: MemoryUse,
    /// Whether tools run here. If the caller chooses which tool the model must call, none does.
    pub runs_tools: bool,
}

/// Serializes what the copies of a turn share.
pub mod shared {
    use std::rc::Rc;

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::ApiTurn;

    pub fn serialize<S: Serializer>(
        api: &Option<Rc<ApiTurn>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        api.as_deref().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Rc<ApiTurn>>, D::Error> {
        Option::<ApiTurn>::deserialize(deserializer).map(|api| api.map(Rc::new))
    }
}
