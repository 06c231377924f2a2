//! The content of one callback, and its receiver.

use base::outbound::Endpoint;

pub struct CallbackMessage {
    pub endpoint: Endpoint,
    pub delivery_id: String,
    pub body: String,
}
