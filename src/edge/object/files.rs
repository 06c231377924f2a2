//! Sends and receives the files of a session and of the whole agent.

use wasm_bindgen::JsValue;

use super::Object;
use crate::edge::http::RequestBody;
use crate::edge::storage::Sqlite;
use crate::edge::transfer;
use api::operation::{Agent, Reply};
use api::route::{Route, no_such_route};
use api::transfer::{begin_agent_export, begin_agent_import, begin_export, begin_import};
use base::error::Result;
use base::ids::Id;
use chat::run::broadcast_throttle::MessageChange;
use chat::run::running_turns::Audience as _;
use lifecycle::retention::is_due;

impl Object {
    /// The file as a stream.
    #[inline(never)]
    pub(super) fn send_file(&self, agent: &Agent<'_>, route: &Route) -> Result<JsValue> {
        let is_blank = !self.is_migrated.get();
        let object = self.me.upgrade();
        let on_page: transfer::PageListener = Box::new(move |bytes| {
            let object = object.clone();
            Box::pin(async move {
                if let Some(object) = object {
                    object.use_cpu_for(bytes).await;
                }
            })
        });
        match route {
            Route::Export { session_id, .. } => {
                let export = begin_export(agent, session_id.clone())?;
                transfer::to_stream(&self.storage, is_blank, export, on_page)
            }
            Route::ExportAgent { after, .. } => {
                let export = begin_agent_export(agent, after.as_deref())?;
                transfer::to_stream(&self.storage, is_blank, export, on_page)
            }
            _ => Err(no_such_route()),
        }
    }

    /// Accounts for the CPU time of this many bytes of a file.
    async fn use_cpu_for(&self, bytes: usize) {
        self.files_cpu
            .use_bytes(bytes, &self.outbound, self.name.get())
            .await;
    }

    /// Receives a file. `pieces`: the request's body.
    pub(super) async fn take_file(
        &self,
        agent: &Agent<'_>,
        db: &Sqlite<'_>,
        route: &Route,
        pieces: Option<RequestBody>,
    ) -> Result<Reply> {
        let on_piece = async |bytes| self.use_cpu_for(bytes).await;
        match route {
            Route::Import {
                session_id,
                allows_sources,
                ..
            } => {
                let changed = Id::parse(session_id.clone()).ok();
                let import = begin_import(agent, session_id.clone(), *allows_sources)?;
                let mut reply = transfer::receive(db, import, pieces, on_piece).await?;
                let watched = changed.filter(|id| self.sockets.is_watching(id));
                reply.changed = watched.map(MessageChange::of_all);
                // The file may contain retention rules of its session.
                agent.schedule_retention(matches!(is_due(&agent.memory()), Ok(true)));
                Ok(reply)
            }
            Route::ImportAgent { allows_sources, .. } => {
                let import = begin_agent_import(agent, *allows_sources)?;
                let reply = transfer::receive(db, import, pieces, on_piece).await?;
                agent.schedule_retention(matches!(is_due(&agent.memory()), Ok(true)));
                Ok(reply)
            }
            _ => Err(no_such_route()),
        }
    }
}
