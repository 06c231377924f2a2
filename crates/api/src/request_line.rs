//! The Worker's log line for each request, and the same facts as a data point. Both contain
//! names, numbers and codes only: never request or answer contents, and no token.

use std::cell::Cell;

use serde::Serialize;

use super::route::Route;
use base::error::Result;
use base::host::Host;
use base::json::{self, json};

/// The most bytes of an index in a data set.
const MAX_INDEX_BYTES: usize = 96;

/// In the default mode ([`LoggedRequests::Auto`]), this many requests per second are
/// logged.
const MAX_AUTO_LINES: u32 = 100;

/// One in this many of the further requests in that second is logged.
const AUTO_ONE_IN: u32 = 20;

/// The facts about an answered request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestLine<'a> {
    /// See [`name_of`].
    pub operation: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub agent: &'a str,
    /// Until the answer started.
    pub duration_ms: i64,
    pub rows_read: i64,
    pub rows_written: i64,
    pub status: u16,
    /// The error's code, if the request was refused or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// The id of the trace that the caller named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<&'a str>,
    /// The share of similar requests that are logged, if not all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

impl RequestLine<'_> {
    pub fn to_json(&self) -> Result<String> {
        json::encode(self)
    }

    /// The data point, as the JSON of its fields. docs/operations-guide.md lists their
    /// order, which never changes.
    pub fn to_point(&self) -> String {
        let index = self.agent;
        let index = index.get(..index.floor_char_boundary(MAX_INDEX_BYTES));
        json::text(&json!({
            "indexes": [index],
            "blobs": [self.operation, self.code.unwrap_or("ok"), self.agent],
            "doubles": [self.duration_ms, self.rows_read, self.rows_written, self.status],
        }))
    }
}

/// Which requests are logged: the setting `REQUEST_LOG`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoggedRequests {
    All,
    /// All at low rates, and a sample and all failures at high rates. A line costs as much
    /// as a tenth of an append.
    Auto,
    /// Only those that the agent failed to answer: status 500 and above.
    Failures,
    /// This share of all requests, and all failures.
    Share(f64),
    None,
}

impl LoggedRequests {
    /// `None`: the setting's value is invalid.
    pub fn parse(setting: Option<&str>) -> Option<Self> {
        Some(match setting.map(str::trim) {
            None | Some("" | "auto") => Self::Auto,
            Some("all") => Self::All,
            Some("off") => Self::None,
            Some("failures") => Self::Failures,
            Some(share) => match share.parse::<f64>().ok()? {
                share if (0.0..=1.0).contains(&share) => Self::Share(share),
                _ => return None,
            },
        })
    }
}

/// Whether a request is logged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampled {
    No,
    /// Logged, without sampling.
    Itself,
    /// Logged as a sample: this share of similar requests is logged.
    Share(f64),
}

/// Decides which requests are logged.
pub struct LineSampler {
    logged: LoggedRequests,
    /// The second of the newest request, and the number of requests in it.
    second: Cell<(i64, u32)>,
}

impl LineSampler {
    pub const fn new(logged: LoggedRequests) -> Self {
        Self {
            logged,
            second: Cell::new((0, 0)),
        }
    }

    pub fn is_off(&self) -> bool {
        self.logged == LoggedRequests::None
    }

    /// `at_ms`: when the request started.
    pub fn sample(&self, status: u16, at_ms: i64, host: &dyn Host) -> Sampled {
        let is_failure = status >= 500;
        match self.logged {
            LoggedRequests::None => Sampled::No,
            LoggedRequests::All => Sampled::Itself,
            _ if is_failure => Sampled::Itself,
            LoggedRequests::Failures => Sampled::No,
            LoggedRequests::Share(share) if draw(host) < share => Sampled::Share(share),
            LoggedRequests::Share(_) => Sampled::No,
            LoggedRequests::Auto => self.sample_in_second(at_ms / 1_000),
        }
    }

    fn sample_in_second(&self, second: i64) -> Sampled {
        let (newest, count) = self.second.get();
        let count = if newest == second { count + 1 } else { 1 };
        self.second.set((second, count));
        if count <= MAX_AUTO_LINES {
            Sampled::Itself
        } else if (count - MAX_AUTO_LINES).is_multiple_of(AUTO_ONE_IN) {
            Sampled::Share(1.0 / f64::from(AUTO_ONE_IN))
        } else {
            Sampled::No
        }
    }
}

/// A random number from 0 to below 1.
fn draw(host: &dyn Host) -> f64 {
    let mut bytes = [0; 4];
    host.fill_random(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}

/// The name of a request's operation, or the `operationId` of its path in openapi.json. A
/// name that the caller made up becomes `unknown`.
pub fn name_of(route: &Route) -> &'static str {
    match route {
        Route::Health => "health",
        Route::OAuthClient => "oauthClient",
        Route::OAuthReturn { .. } => "oauthReturn",
        Route::Agents { .. } => "listAgents",
        Route::Rpc { operation, .. } => operation.listed_name(),
        Route::Messages { .. } => "getMessages",
        Route::Export { .. } => "exportSession",
        Route::Import { .. } => "importSession",
        Route::ExportAgent { .. } => "exportAgent",
        Route::ImportAgent { .. } => "importAgent",
        Route::Chat { .. } => "chat",
        Route::Resume { .. } => "resumeChat",
        Route::Mcp { .. } => "mcp",
        Route::Provider { call, .. } => call.name(),
        Route::Socket { .. } => "openSocket",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::table::NamedOperation;
    use base::testing::FixedHost;

    const LINE: RequestLine<'_> = RequestLine {
        operation: "appendEvents",
        agent: "user:42",
        duration_ms: 3,
        rows_read: 4,
        rows_written: 1,
        status: 200,
        code: None,
        trace_id: None,
        share: None,
    };

    #[test]
    fn a_log_line_has_only_names_numbers_and_codes() {
        let line: Value = serde_json::from_str(&LINE.to_json().unwrap()).unwrap();
        assert_eq!(
            line,
            json!({"operation": "appendEvents", "agent": "user:42", "durationMs": 3,
                   "rowsRead": 4, "rowsWritten": 1, "status": 200})
        );
        let refused = RequestLine {
            agent: "",
            status: 409,
            code: Some("leaf_moved"),
            trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736"),
            ..LINE
        };
        let line: Value = serde_json::from_str(&refused.to_json().unwrap()).unwrap();
        assert_eq!(line.get("agent"), None);
        assert_eq!(
            [&line["code"], &line["traceId"]],
            ["leaf_moved", "4bf92f3577b34da6a3ce929d0e0e4736"]
        );
    }

    #[test]
    fn a_data_point_has_ordered_fields_and_a_short_index() {
        let point =
            |line: &RequestLine<'_>| -> Value { serde_json::from_str(&line.to_point()).unwrap() };
        assert_eq!(
            point(&LINE),
            json!({"indexes": ["user:42"], "blobs": ["appendEvents", "ok", "user:42"],
                   "doubles": [3, 4, 1, 200]})
        );
        let agent = "é".repeat(60);
        let index = point(&RequestLine {
            agent: &agent,
            ..LINE
        });
        assert_eq!(index["indexes"], json!(["é".repeat(48)]));
    }

    #[test]
    fn the_setting_selects_the_logged_requests() {
        let host = FixedHost::default();
        let counted = |setting: Option<&str>, status: u16| {
            let sampler = LineSampler::new(LoggedRequests::parse(setting).unwrap());
            let sampled = (0..1_000).map(|_| sampler.sample(status, 5_000, &host));
            sampled.filter(|sampled| *sampled != Sampled::No).count()
        };
        for all in [Some("all"), Some("1")] {
            assert_eq!(counted(all, 200), 1_000, "{all:?}");
        }
        assert_eq!(
            [counted(Some("off"), 200), counted(Some("off"), 500)],
            [0, 0]
        );
        assert_eq!(
            [200, 404, 500].map(|status| counted(Some("failures"), status)),
            [0, 0, 1_000]
        );
        assert_eq!(
            [counted(Some("0"), 200), counted(Some("0"), 502)],
            [0, 1_000]
        );
        assert!((150..350).contains(&counted(Some(" 0.25 "), 200)));
        for wrong in ["2", "-1", "some", "NaN"] {
            assert_eq!(LoggedRequests::parse(Some(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn busy_seconds_are_sampled() {
        let host = FixedHost::default();
        for setting in [None, Some(""), Some("auto")] {
            let sampler = LineSampler::new(LoggedRequests::parse(setting).unwrap());
            for second in [7, 8] {
                let at_ms = second * 1_000;
                let sampled: Vec<Sampled> = (0..1_100)
                    .map(|n| sampler.sample(200, at_ms + n / 2, &host))
                    .collect();
                let (early, late) = sampled.split_at(100);
                assert!(early.iter().all(|one| *one == Sampled::Itself));
                let shares = late.iter().filter(|one| **one == Sampled::Share(0.05));
                assert_eq!(shares.count(), 50);
                assert!(!late.contains(&Sampled::Itself));
                assert_eq!(sampler.sample(503, at_ms, &host), Sampled::Itself);
            }
        }
    }

    #[test]
    fn names_invented_by_callers_are_not_logged() {
        let rpc = |operation: &str| Route::Rpc {
            agent: "a".to_owned(),
            operation: NamedOperation::find(operation.to_owned()),
        };
        assert_eq!(name_of(&rpc("appendEvents")), "appendEvents");
        assert_eq!(name_of(&rpc("my password")), "unknown");
    }
}
