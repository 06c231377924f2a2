//! Finds out from the class which calls of its tools need the user's approval.

use futures_util::future::join_all;

use super::{Broken, TurnDriver};
use crate::run::replay::emit_outcome;

impl TurnDriver<'_> {
    /// Sends the requests about all of these calls of the newest step at once. The step is stored
    /// first, so that the model is not called again if the object is evicted. The answers are
    /// stored with their effects: before a call is made, or in the turn's last transaction.
    pub(super) async fn ask_class(&self, calls: &[usize]) -> Result<(), Broken> {
        let config = self.config()?;
        self.save()?;
        let turn_tools = &self.turn_tools(&config)?;
        let calls = self.copy_calls(calls);
        let decisions = calls
            .iter()
            .map(async |(index, call)| (*index, turn_tools.needs_approval(call).await));
        let decided = self.running.unless_cancelled(join_all(decisions)).await;
        let mut chunks = Vec::new();
        for (index, needs_approval) in decided.ok_or(Broken::Cancelled)? {
            let mut turn = self.turn.borrow_mut();
            if let Some(call) = turn.newest_calls().get_mut(index) {
                call.apply_decision(needs_approval);
                chunks.extend(emit_outcome(&mut self.writer.borrow_mut(), call));
            }
        }
        self.emit(chunks);
        Ok(())
    }
}
