//! How a socket to the object is opened.

use super::Object;
use super::answering::ObjectAnswer;
use crate::edge::http::HttpRequest;
use api::operation::Agent;
use api::{route, socket};
use base::error::Result;
use base::trace::{self, StoredTrace, Trace};

impl Object {
    #[inline(never)]
    pub(super) fn open_socket(
        &self,
        agent: &Agent<'_>,
        session_id: String,
        head: &HttpRequest,
    ) -> Result<ObjectAnswer> {
        let upgrade = head.find_header("upgrade").unwrap_or_default();
        if !upgrade.eq_ignore_ascii_case("websocket") {
            return Err(route::no_such_route());
        }
        let mut state = socket::open(agent, session_id)?;
        state.trace = trace::current().map(|trace| {
            StoredTrace::of(&Trace {
                // The data that is stored with a socket is short.
                state: None,
                ..(*trace).clone()
            })
        });
        socket::check_sockets(self.sockets.count(&state.session_id))?;
        let offered = head.find_header("sec-websocket-protocol");
        let (_, protocol) = access::find_subprotocol(offered.as_deref());
        let greeting = socket::greet(agent, &state)?;
        Ok(ObjectAnswer::Response(
            self.sockets.open(&state, &greeting, protocol),
        ))
    }
}
