//! One agent: runs operations on it, and retries those that may be retried.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::address::{of_agent, of_operation};
use crate::error::{Error, Result, of_answer, of_redirect};
use crate::operation::Operation;
use crate::read_json;
use crate::retry::Retry;
use crate::wire::{Answer, Body, Payload, Request, TraceContext, Wire};
#[cfg(feature = "worker")]
use crate::worker_wire::Binding;

/// One agent. Opening it sends nothing.
#[derive(Clone)]
pub struct Agent<#[cfg(feature = "worker")] W = Binding, #[cfg(not(feature = "worker"))] W> {
    wire: W,
    base: String,
    token: Option<String>,
    trace: Option<TraceContext>,
    retry: Retry,
}

/// Leaves out the token, which belongs in no log.
impl<W> fmt::Debug for Agent<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Agent").field(&self.base).finish()
    }
}

impl<W: Wire> Agent<W> {
    /// The agent of this name, over the caller's own transport. The name must not be empty, `.` or
    /// `..`, which no URL can contain as a segment.
    pub fn over(wire: W, name: &str) -> Result<Self> {
        Ok(Self {
            wire,
            base: of_agent(name)?,
            token: None,
            trace: None,
            retry: Retry::default(),
        })
    }

    /// The secret of Session Agent's Worker, or a minted token.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The trace that the calls belong to. For one call, take a clone:
    /// `agent.clone().with_trace(trace).call(&operation)`.
    #[must_use]
    pub fn with_trace(mut self, trace: TraceContext) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Sets which calls are retried, and when.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Runs an operation.
    pub async fn call<O: Operation>(&self, operation: &O) -> Result<O::Output> {
        self.post(O::NAME, operation, operation.is_repeatable())
            .await
    }

    /// Runs an operation by its name, also one that is newer than this crate. It is never retried
    /// automatically.
    pub async fn call_by_name<Output: DeserializeOwned>(
        &self,
        operation: &str,
        input: &impl Serialize,
    ) -> Result<Output> {
        self.post(operation, input, false).await
    }

    async fn post<Output: DeserializeOwned>(
        &self,
        operation: &str,
        input: &impl Serialize,
        is_repeatable: bool,
    ) -> Result<Output> {
        let path = of_operation(operation)?;
        let json = serde_json::to_string(input)
            .map_err(|error| Error::invalid(format!("the input of `{operation}`: {error}")))?;
        let request = self.request(&path, Payload::Json(json));
        let attempt = async || {
            self.read(operation, self.ask(operation, &request).await?)
                .await
        };
        let text = self.retrying(is_repeatable, attempt).await?;
        read_json(text.as_bytes()).map_err(|error| Error::unreadable(operation, error))
    }

    pub(crate) fn request(&self, path: &str, payload: Payload<W::Stream>) -> Request<W::Stream> {
        Request {
            url: format!("{}{path}", self.base),
            token: self.token.clone(),
            trace: self.trace.clone(),
            payload,
        }
    }

    /// Sends a request. A status other than 2xx is an error.
    pub(crate) async fn ask(
        &self,
        operation: &str,
        request: &Request<W::Stream>,
    ) -> Result<Answer<W::Body>> {
        let sent = self.wire.send(request).await;
        let answer = sent.map_err(|why| Error::lost(operation, &why))?;
        match answer.status {
            200..300 => Ok(answer),
            status @ 300..400 => Err(of_redirect(operation, status, answer.location.as_deref())),
            status => Err(of_answer(
                operation,
                status,
                &self.read(operation, answer).await?,
            )),
        }
    }

    pub(crate) async fn read(&self, operation: &str, answer: Answer<W::Body>) -> Result<String> {
        let text = answer.body.text().await;
        text.map_err(|why| Error::lost(operation, &why))
    }

    /// Runs `attempt` until it succeeds.
    pub(crate) async fn retrying<T>(
        &self,
        is_repeatable: bool,
        attempt: impl AsyncFn() -> Result<T>,
    ) -> Result<T> {
        for number in 1.. {
            let error = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(error) if !is_repeatable => return Err(error),
                Err(error) => error,
            };
            match self.retry.pause_after(&error, number, self.wire.random()) {
                Some(pause) => self.wire.wait(pause).await,
                None => return Err(error),
            }
        }
        Err(Error::invalid("no attempt was made"))
    }

    pub(crate) fn wire(&self) -> &W {
        &self.wire
    }
}
