//! The caller of a request over HTTP, and the owner of the object's tasks.

use super::Object;
use super::incoming::Incoming;
use crate::edge::storage::Sqlite;
use access::Caller;
use api::operation::Agent;
use api::request::{EntryPoint, Identified, identify_granted};
use api::route::Route;
use base::error::Result;
use base::leased_calls::{Lease, LeasedTask};
use base::owner::{OwnedTask, Owner};
use base::tokens::{self, CountedTask};

pub(super) type WorkingTask<F> = LeasedTask<CountedTask<OwnedTask<F>>>;

impl Object {
    pub(super) fn identify(
        &self,
        entry: &EntryPoint<'_>,
        route: &Route,
        incoming: &Incoming,
        db: &Sqlite<'_>,
    ) -> Result<Caller> {
        let granted = incoming.granted.as_deref();
        let grant = match identify_granted(entry, route, &incoming.head, granted)? {
            Identified::Caller(caller) => return Ok(caller),
            Identified::Granted(grant) => grant,
        };
        self.open_tables(db)?;
        let blank = self.blank(db);
        let agent = Agent {
            db: self.readable(db, &blank),
            ..self.own_agent(db)
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
