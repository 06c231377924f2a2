//! Running turns: the start of a turn on a request, the loop that drives it, its listeners,
//! its end, and its recovery after an eviction.

pub mod agent;
mod answer_log;
pub mod api_writer;
pub mod audience;
pub mod awaited;
pub mod broadcast_throttle;
pub mod callbacks;
pub mod checks;
pub mod context;
pub mod cycle;
pub mod deployed;
pub mod driver;
pub mod elsewhere;
mod ending;
pub mod in_flight_work;
pub mod listener;
pub mod out_of_band;
mod planning;
pub mod queue;
pub mod recover;
pub mod replay;
pub mod replies;
pub mod request_writer;
pub mod resume;
pub mod running_turns;
pub mod start;
pub mod tracing;
pub mod watchers;
pub mod whole_outputs;
pub mod work;
