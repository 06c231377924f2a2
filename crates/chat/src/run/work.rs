//! A turn that runs after its request was answered, and the trait of its runner.

use std::rc::Rc;

use crate::run::recover::RecoveredTurn;
use crate::run::running_turns::RunningTurn;
use crate::turn::Turn;
use base::ids::Id;
use lifecycle::restores::RunningRestore;

/// A turn to run.
pub enum TurnWork {
    Begin(Rc<RunningTurn>, Box<Turn>),
    TakeUp(Box<RecoveredTurn>),
}

impl TurnWork {
    pub fn turn(&self) -> &Turn {
        match self {
            TurnWork::Begin(_, turn) => turn,
            TurnWork::TakeUp(taken) => &taken.turn,
        }
    }

    pub fn running(&self) -> &Rc<RunningTurn> {
        match self {
            TurnWork::Begin(running, _) => running,
            TurnWork::TakeUp(taken) => &taken.running,
        }
    }
}

/// Runs turns in the background, for a caller who waits for the turn's end. The turn
/// goes on if the caller goes away.
pub trait TurnStarter {
    fn begin(&self, work: TurnWork);

    /// Looks for turns that were cut off, if the object has yet to do so: a caller may
    /// wait for one of them.
    fn recover(&self);

    /// Makes the calls that tell of turns' ends.
    fn call_back(&self);

    /// Makes the vectors of entries that were written, after the answer.
    fn make_vectors(&self);

    /// Has the object's alarm look in some seconds what is left to do, also after a death.
    fn wake_soon(&self);

    /// Begins the object's next life soon after the answer.
    fn restart(&self);

    /// Has retention and backups begin soon, or go on.
    fn keep_soon(&self);

    /// Keeps the object at work until the restore is over, also if its caller gives up.
    fn stay_for(&self, restore: Rc<RunningRestore>);

    /// Shows a session's sockets that its messages changed.
    fn show(&self, session_id: &Id);
}
