//! Tool outputs that are too long for a turn's row. The model receives the start and the
//! end of such an output. The whole output is stored in the table of out-of-band results,
//! under a negative number, and becomes the result's event when the turn ends. So it
//! survives an eviction in between.

use base::columns::{find_value, load_values};
use base::database::{Database, Delete, atomically};
use base::error::Result;
use base::ids::Id;
use base::json;
use context::working_context::truncate::cut_middle;

use crate::run::out_of_band::insert_parts;
use crate::tables::EARLY_ANSWERS;
use crate::turn::{CallState, Turn, WholeOutput, WholeOutputs};

/// The most bytes of all whole outputs of a turn. The end of the turn loads them into
/// memory and writes them in one transaction. Together with the turn's other outputs they
/// stay below the 4 MiB beyond which a message is read in parts.
pub const MAX_WHOLE_OUTPUT_BYTES: usize = 2 << 20;

/// How many characters of a too long output the model receives.
const PREVIEW_CHARS: usize = 4_000;

/// Stores the output of a call. `stored_bytes` were already stored for its turn. Returns
/// the call's new state. `None`: the output exceeds the limit.
pub fn store(
    db: &dyn Database,
    session_id: &Id,
    call_id: &Id,
    (output, is_json): (&str, bool),
    stored_bytes: usize,
) -> Result<Option<CallState>> {
    if stored_bytes + output.len() > MAX_WHOLE_OUTPUT_BYTES {
        return Ok(None);
    }
    let text = json::quoted(output);
    let number = atomically(db, || {
        let sql = "SELECT min(0, coalesce(min(number), 0)) - 1
                     FROM cf_agents_early_answers
                    WHERE session_id = ?1";
        let number: i64 = find_value(db, sql, &[session_id.as_str().into()])?.unwrap_or(-1);
        insert_parts(db, session_id, number, call_id.as_str(), &text)?;
        Ok(number)
    })?;
    Ok(Some(CallState::Done {
        output: cut_middle(output, PREVIEW_CHARS).unwrap_or_else(|| output.to_owned()),
        is_json: false,
        whole: Some(WholeOutput {
            number,
            bytes: output.len(),
            is_json,
        }),
    }))
}

/// Reads the whole outputs of a turn, as the log and the clients receive them.
pub fn load(db: &dyn Database, turn: &Turn) -> Result<WholeOutputs> {
    let mut outputs = WholeOutputs::default();
    for call in turn.steps.iter().flat_map(|step| &step.calls) {
        let CallState::Done {
            whole: Some(whole), ..
        } = &call.state
        else {
            continue;
        };
        let parts: Vec<String> = load_values(
            db,
            "SELECT text
               FROM cf_agents_early_answers
              WHERE session_id = ?1
                AND number = ?2
                AND tool_call_id = ?3
              ORDER BY part",
            &[
                turn.session_id.as_str().into(),
                whole.number.into(),
                call.id.as_str().into(),
            ],
        )?;
        if let Ok(output) = json::decode::<String>(&parts.concat()) {
            outputs.add(whole, output);
        }
    }
    Ok(outputs)
}

/// Deletes the whole outputs of a turn. Must run in the transaction that ends the turn.
pub fn forget(db: &dyn Database, turn: &Turn) -> Result<()> {
    if turn.whole_output_bytes() == 0 {
        return Ok(());
    }
    Delete::from(
        EARLY_ANSWERS,
        "session_id = ?1
         AND number < 0",
        &[turn.session_id.as_str().into()],
    )
    .run(db)?;
    Ok(())
}
