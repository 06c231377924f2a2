//! The caller, if a class that extends this one lets callers in by its own rules; and for
//! whom the object's tasks work.

use worker::web_sys;

use super::Object;
use crate::edge::storage::Sqlite;
use crate::edge::{http, identify};
use access::Caller;
use api::operation::Agent;
use api::operations::tokens::MintToken;
use api::route::Route;
use base::error::{Code, Error, Result};
use base::json;
use base::owner::{OwnedTask, Owner};
use base::tokens::{self, CountedTask};

/// The answer of a class about a request that it does not let in.
const NOTHING: &str = "null";

/// The grant of a Worker that binds the class and asks over Workers RPC: being bound is the
/// permission. A class's `authorize` gives an object or `null`, never this.
const ALL: &str = "\"all\"";

impl Object {
    /// `granted` is what the class allows the request: JSON with the fields of `mintToken`,
    /// or `null`. `None`: the class says nothing, and the Worker's own rules hold. The
    /// secret and the tokens of a Worker that has a secret hold in any case.
    pub(super) fn caller(
        &self,
        route: &Route,
        request: &web_sys::Request,
        granted: Option<&str>,
        db: &Sqlite<'_>,
    ) -> Result<Caller> {
        // The browser has no rights, and the state of its address is what counts.
        if matches!(route, Route::OAuthReturn { .. }) {
            return identify(&self.policy, route, request);
        }
        let Some(granted) = granted else {
            return identify(&self.policy, route, request);
        };
        if granted == ALL {
            return Ok(Caller::Owner);
        }
        if self.policy.secret().is_some()
            && let Ok(caller) = identify(&self.policy, route, request)
        {
            return Ok(caller);
        }
        if granted == NOTHING {
            return Err(Error::new(
                Code::Unauthorized,
                "This agent refuses the request.",
            ));
        }
        // A browser sends a cookie along with the requests of any page.
        let origin = http::find_header(request, "origin");
        self.policy.admit_page(origin.as_deref(), &request.url())?;
        let grant: MintToken = json::parse(granted.as_bytes())?;
        self.open_tables(db)?;
        let blank = self.blank(db);
        let agent = Agent {
            db: if self.is_migrated.get() { db } else { &blank },
            ..self.agent(db, &Caller::Owner, &[])
        };
        grant.grant(&agent).map(Caller::Scoped)
    }

    /// Runs a task of this object: for its agent, and with the counter of its class.
    pub(super) fn working<F: Future>(&self, task: F) -> CountedTask<OwnedTask<F>> {
        let counter = self.counter.get_or_init(|| self.outbound.token_counter());
        tokens::counted_by(counter.clone(), Owner::agent(self.name.get()).run(task))
    }
}
