//! Files of a session and of the whole agent, sent and taken.

use wasm_bindgen::JsValue;

use super::Object;
use crate::edge::http::RequestBody;
use crate::edge::storage::Sqlite;
use crate::edge::transfer;
use api::operation::{Agent, Reply};
use api::route::{Route, nothing_here};
use api::transfer::{begin_agent_export, begin_agent_import, begin_export, begin_import};
use base::error::Result;
use base::ids::Id;
use chat::run::running_turns::Audience as _;
use chat::run::show_pace::ShownChange;
use lifecycle::retention::is_due;

impl Object {
    /// The file as a stream.
    pub(super) fn send_file(&self, agent: &Agent<'_>, route: Route) -> Result<JsValue> {
        let is_blank = !self.is_migrated.get();
        match route {
            Route::Export { session_id, .. } => {
                let export = begin_export(agent, session_id)?;
                transfer::to_stream(&self.storage, is_blank, export)
            }
            Route::ExportAgent { after, .. } => {
                let export = begin_agent_export(agent, after.as_deref())?;
                transfer::to_stream(&self.storage, is_blank, export)
            }
            _ => Err(nothing_here()),
        }
    }

    /// Takes a file in. `pieces`: the request's body.
    pub(super) async fn take_file(
        &self,
        agent: &Agent<'_>,
        db: &Sqlite<'_>,
        route: Route,
        pieces: Option<RequestBody>,
    ) -> Result<Reply> {
        match route {
            Route::Import {
                session_id,
                allows_sources,
                ..
            } => {
                let changed = Id::parse(session_id.clone()).ok();
                let import = begin_import(agent, session_id, allows_sources)?;
                let mut reply = transfer::receive(db, import, pieces).await?;
                let watched = changed.filter(|id| self.sockets.is_there(id));
                reply.changed = watched.map(ShownChange::of_all);
                // The file may hold rules of its session.
                agent.keep_soon(matches!(is_due(&agent.memory()), Ok(true)));
                Ok(reply)
            }
            Route::ImportAgent { allows_sources, .. } => {
                let import = begin_agent_import(agent, allows_sources)?;
                let reply = transfer::receive(db, import, pieces).await?;
                agent.keep_soon(matches!(is_due(&agent.memory()), Ok(true)));
                Ok(reply)
            }
            _ => Err(nothing_here()),
        }
    }
}
