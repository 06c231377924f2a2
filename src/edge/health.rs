//! Liveness, and the version of this build. The Worker and every object return the same answer, and
//! nobody needs a token for it.

use super::http::{self, ResponseResult};
use base::json::{self, json};

pub fn answer() -> ResponseResult {
    let health = json!({
        "status": "ok",
        "name": env!("CARGO_PKG_NAME"),
        "version": env!("CARGO_PKG_VERSION"),
        "revision": env!("SESSION_AGENT_REVISION"),
    });
    http::respond(200, &json::text(&health).into(), None, &[])
}
