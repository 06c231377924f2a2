//! The event stream that answers a request. A stream that is interrupted before its result
//! is resumed if its events have ids. The request itself is never repeated.

use crate::tools::mcp::client::{EVENT_STREAM, NOTE_LIMITS, ServerClient};
use crate::tools::mcp::failure::ServerFailure;
use crate::tools::mcp::wire::{ServerMessage, read_message};
use base::json::RawValue;
use base::outbound::{ByteChunks, RequestForm, in_time};
use models::sse;

/// The most server requests that are answered during one of our requests. Further ones get
/// no answer.
const MAX_REFUSALS: usize = 8;

/// The most times that a stream is resumed.
const MAX_RESUMES: usize = 5;

/// The pause before a stream is resumed, if the server specifies none.
const DEFAULT_RETRY_MS: i64 = 1_000;

const METHOD_NOT_FOUND: i64 = -32_601;

/// How far a stream was read.
#[derive(Default)]
struct StreamCursor {
    /// The id of the last event. `None`: the stream can't be resumed.
    last_id: Option<String>,
    retry_ms: Option<i64>,
    /// How many requests of the server were refused.
    refusals: usize,
}

impl StreamCursor {
    fn update(&mut self, parser: &sse::Parser) {
        if let Some(last_id) = parser.last_id() {
            // An empty id resets the previous one. A header can't contain any other text.
            let is_id =
                !last_id.is_empty() && last_id.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            self.last_id = is_id.then(|| last_id.to_owned());
        }
        self.retry_ms = parser.retry_ms().or(self.retry_ms);
    }
}

impl ServerClient<'_> {
    /// Reads a stream up to the answer, and resumes an interrupted stream.
    pub(super) async fn read_events(
        &self,
        body: &mut (dyn ByteChunks + '_),
        id: i64,
    ) -> Result<Box<RawValue>, ServerFailure> {
        let mut cursor = StreamCursor::default();
        let broken = match self.read_stream(body, id, &mut cursor).await {
            Err(failure) if failure.breaks_stream() && cursor.last_id.is_some() => failure,
            outcome => return outcome,
        };
        let resuming = self.resume(id, cursor);
        let most_ms = self.limits.total_ms;
        let resumed = in_time(self.outbound.sleep(most_ms), resuming).await;
        resumed.flatten().unwrap_or(Err(broken))
    }

    /// Requests the rest of a stream. `None`: the server has no rest.
    async fn resume(
        &self,
        id: i64,
        mut cursor: StreamCursor,
    ) -> Option<Result<Box<RawValue>, ServerFailure>> {
        for _ in 0..MAX_RESUMES {
            self.outbound
                .sleep(cursor.retry_ms.unwrap_or(DEFAULT_RETRY_MS))
                .await;
            let headers = [("last-event-id".to_owned(), cursor.last_id.clone()?)];
            let answer = self.send(RequestForm::Get, String::new(), &headers, self.limits);
            let mut answer = match answer.await {
                Ok(answer) => answer,
                Err(failure) if failure.breaks_stream() => continue,
                Err(_) => return None,
            };
            if answer.status != 200 || answer.content_type != EVENT_STREAM {
                return None;
            }
            match self
                .read_stream(answer.body.as_mut(), id, &mut cursor)
                .await
            {
                Err(failure) if failure.breaks_stream() => {}
                outcome => return Some(outcome),
            }
        }
        None
    }

    /// Reads a stream up to the answer, and ignores the rest of the stream.
    async fn read_stream(
        &self,
        body: &mut (dyn ByteChunks + '_),
        id: i64,
        cursor: &mut StreamCursor,
    ) -> Result<Box<RawValue>, ServerFailure> {
        let mut parser = sse::Parser::default();
        let mut is_over = false;
        while !is_over {
            let events = match body.next().await? {
                Some(bytes) => {
                    let events = parser.push(&bytes);
                    cursor.update(&parser);
                    events
                }
                None => {
                    is_over = true;
                    parser.end().map(|last| last.into_iter().collect())
                }
            };
            let too_long = |_| ServerFailure::InvalidResponse("sent an event that is too long");
            for event in events.map_err(too_long)? {
                // An event without data only keeps the connection alive.
                if event.data.trim().is_empty() {
                    continue;
                }
                match read_message(&event.data, id)? {
                    ServerMessage::Result(result) => return Ok(result),
                    ServerMessage::Request { id, method } if cursor.refusals < MAX_REFUSALS => {
                        cursor.refusals += 1;
                        self.refuse(&id, &method).await;
                    }
                    ServerMessage::ListChanged => self.has_new_list.set(true),
                    ServerMessage::Request { .. } | ServerMessage::Notification => {}
                }
            }
        }
        Err(ServerFailure::Ended)
    }

    /// Answers a request of the server. Only a ping succeeds. Every other request is
    /// refused: a server gets no access to models, files or the user.
    async fn refuse(&self, id: &str, method: &str) {
        let answer = match method {
            "ping" => r#""result":{}"#.to_owned(),
            _ => format!(
                r#""error":{{"code":{METHOD_NOT_FOUND},"message":"This client accepts no requests."}}"#
            ),
        };
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#);
        // If the refusal doesn't arrive, the server waits until our own request times out.
        let _ = self.post(body, &[], NOTE_LIMITS).await;
    }
}
