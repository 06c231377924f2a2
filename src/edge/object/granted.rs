//! Identifies the caller if a class that extends this one authorizes callers by its own
//! rules; and sets the owner of the object's tasks.

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
use base::leased_calls::{Lease, LeasedTask};
use base::owner::{OwnedTask, Owner};
use base::tokens::{self, CountedTask};

/// The class's answer for a request that it refuses.
const NOTHING: &str = "null";

/// The grant of a Worker that binds the class and calls over Workers RPC: the binding is
/// the permission. A class's `authorize` returns an object or `null`, never this.
const ALL: &str = "\"all\"";

pub(super) type WorkingTask<F> = LeasedTask<CountedTask<OwnedTask<F>>>;

impl Object {
    /// `granted` is what the class allows the request: JSON with the fields of `mintToken`,
    /// or `null`. `None`: the class doesn't decide, and the Worker's own rules apply. If
    /// the Worker has a secret, the secret and its tokens are always valid.
    pub(super) fn caller(
        &self,
        route: &Route,
        request: &web_sys::Request,
        granted: Option<&str>,
        db: &Sqlite<'_>,
    ) -> Result<Caller> {
        // The browser has no rights; the `state` in its URL is checked instead.
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
        // Browsers send cookies along with any page's requests.
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

    /// Runs a task of this object: with its agent as the owner, with the token counter of its
    /// class, and without the lease of the turn in whose middle the task may begin.
    pub(super) fn working<F: Future>(&self, task: F) -> WorkingTask<F> {
        let counter = self.counter.get_or_init(|| self.outbound.token_counter());
        let owned = Owner::agent(self.name.get()).run(task);
        Lease::run_without(tokens::counted_by(counter.clone(), owned))
    }
}
