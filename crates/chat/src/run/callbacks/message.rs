//! What one call says, and to whom.

use base::outbound::Endpoint;

pub struct CallbackMessage {
    pub place: Endpoint,
    pub delivery_id: String,
    pub body: String,
}
