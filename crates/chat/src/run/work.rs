//! A turn that continues after its request was answered, and the trait that runs it.

use std::rc::Rc;

use crate::run::recover::RecoveredTurn;
use crate::run::running_turns::RunningTurn;
use crate::turn::Turn;

/// A turn to run.
pub enum TurnWork {
    Begin(Rc<RunningTurn>, Box<Turn>),
    Resume(Box<RecoveredTurn>),
}

impl TurnWork {
    pub fn turn(&self) -> &Turn {
        match self {
            TurnWork::Begin(_, turn) => turn,
            TurnWork::Resume(recovered) => &recovered.turn,
        }
    }

    pub fn running(&self) -> &Rc<RunningTurn> {
        match self {
            TurnWork::Begin(running, _) => running,
            TurnWork::Resume(recovered) => &recovered.running,
        }
    }
}

/// Runs turns in the background, for a caller that waits for the turn's end. The turn continues if
/// the caller disconnects.
pub trait TurnStarter {
    fn begin(&self, work: TurnWork);

    /// Resumes interrupted turns, unless the object has already done so: a caller may wait for one
    /// of them.
    fn recover(&self);
}
