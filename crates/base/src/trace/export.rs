//! Sends spans to the receiver that the operator configured. No request waits for it, and its
//! failures affect no request: what can't be sent is dropped, and after a failure the exporter
//! backs off.

use super::otlp;
use super::run_in;
use super::sampler::Sampler;
use super::span::{Span, SpanQueue};
use crate::host::Host;
use crate::outbound::{CallLimits, CallPurpose, Endpoint, Outbound, OutboundRequest, read_all};
use crate::settings::Setting;

/// Spans that end within this time are sent together.
const PAUSE_MS: i64 = 1_000;

/// The receiver's answer is short. A silent receiver delays sending for no longer than this.
const LIMITS: CallLimits = CallLimits {
    wait_ms: 1_000,
    silence_ms: 5_000,
    no_content_ms: None,
    total_ms: 5_000,
    max_bytes: 64 << 10,
};

/// The pause after a failure: twice as long each time, at least the receiver's `retry-after`, and
/// at most the maximum.
const REST_MS: i64 = 5_000;
const MAX_REST_MS: i64 = 300_000;

/// The most headers, and the most bytes of all of them.
const MAX_HEADERS: usize = 16;
const MAX_HEADER_BYTES: usize = 8 << 10;

/// The most bytes of one value of captured content.
pub const MAX_CONTENT_BYTES: usize = 8 << 10;

/// The queue of an object whose spans are exported. `None`: no receiver is configured.
pub fn make_queue(outbound: &dyn Outbound) -> Option<SpanQueue> {
    find_address(outbound)?;
    let name = outbound.find_setting(Setting::OtelTracesSampler);
    let argument = outbound.find_setting(Setting::OtelTracesSamplerArg);
    let sampler = match name {
        Some(name) => Sampler::parse(&name, argument.as_deref()),
        None => Some(Sampler::default()),
    };
    // An unknown sampler records nothing: missing spans do no harm.
    sampler.map(SpanQueue::new)
}

/// Whether spans may contain the content of messages.
pub fn shows_content(outbound: &dyn Outbound) -> bool {
    let setting = outbound.find_setting(Setting::OtelCaptureContent);
    setting.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

fn find_address(outbound: &dyn Outbound) -> Option<String> {
    let base = outbound.find_setting(Setting::OtelEndpoint)?;
    let base = base.trim().trim_end_matches('/');
    let is_web = base.starts_with("https://") || base.starts_with("http://");
    is_web.then(|| format!("{base}/v1/traces"))
}

/// The headers of `name=value,name=value`, with values in percent-encoding. Other entries are
/// ignored.
fn parse_headers(text: &str) -> Vec<(String, String)> {
    if text.len() > MAX_HEADER_BYTES {
        return Vec::new();
    }
    let is_name = |name: &str| {
        let is_char = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !name.is_empty() && name.bytes().all(is_char) && !name.eq_ignore_ascii_case("content-type")
    };
    let entries = text.split(',').filter_map(|entry| entry.split_once('='));
    entries
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
        .filter(|(name, _)| is_name(name))
        .filter_map(|(name, value)| Some((name, decode_percent(value)?)))
        .take(MAX_HEADERS)
        .collect()
}

/// `None`: the value is not valid in a header.
fn decode_percent(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high << 4 | low).ok()?
            }
            byte => byte,
        });
    }
    let is_visible = bytes.iter().all(|byte| matches!(byte, 0x20..=0x7e));
    is_visible.then(|| String::from_utf8(bytes).ok())?
}

/// Sends the queued spans, including those that end in the meantime. Callers do not wait for it.
pub async fn send_spans(outbound: &dyn Outbound, queue: &SpanQueue, host: &dyn Host) {
    if queue.is_empty() || !queue.begin_sending() {
        return;
    }
    let _sending = Sending(queue);
    outbound.sleep(PAUSE_MS).await;
    let Some(address) = find_address(outbound) else {
        return;
    };
    loop {
        let batch = queue.take_batch();
        if batch.is_empty() {
            return;
        }
        // During the pause after a failure, spans are dropped: they would be old at its end.
        if host.now_ms() < queue.paused_until_ms.get() {
            continue;
        }
        // The request is not part of the trace that it reports.
        let sent = run_in(None, send(outbound, &address, &batch, queue.dropped())).await;
        match sent {
            Ok(()) => queue.failures.set(0),
            Err(retry_after_ms) => {
                let failures = queue.failures.get().min(16);
                let rest = (REST_MS << failures).max(retry_after_ms).min(MAX_REST_MS);
                queue.failures.set(failures + 1);
                queue.paused_until_ms.set(host.now_ms() + rest);
            }
        }
    }
}

/// Ends the sending, even if the future is dropped.
struct Sending<'a>(&'a SpanQueue);

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.end_sending();
    }
}

/// Sends some spans. `Err`: the receiver did not accept them, and requests this pause.
async fn send(
    outbound: &dyn Outbound,
    address: &str,
    spans: &[Span],
    dropped: u64,
) -> Result<(), i64> {
    let service = outbound.find_setting(Setting::OtelServiceName);
    let headers = outbound.find_setting(Setting::OtelHeaders);
    let request = OutboundRequest {
        purpose: CallPurpose::Trace,
        endpoint: Endpoint::Url(address.to_owned()),
        headers: parse_headers(headers.as_deref().unwrap_or_default()),
        body: otlp::render(
            service.as_deref().unwrap_or("session-agent"),
            spans,
            dropped,
        ),
        limits: LIMITS,
    };
    let mut answer = outbound.send(request).await.map_err(|_| 0)?;
    // The body is read, so that the connection can be used again.
    let is_read = read_all(answer.body.as_mut()).await.is_ok();
    if is_read && (200..300).contains(&answer.status) {
        Ok(())
    } else {
        Err(answer.retry_after.unwrap_or(0).saturating_mul(1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_parsed_in_the_opentelemetry_format() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            parse_headers("Authorization=Basic%20YTpi, x-team = memory ,=no,bad name=1,y"),
            [
                header("authorization", "Basic YTpi"),
                header("x-team", "memory")
            ]
        );
        for text in [
            "",
            "a=%0d%0ab",
            "a=%zz",
            "a=%4",
            "content-type=text/plain",
            "a=é",
        ] {
            assert_eq!(parse_headers(text), [], "{text}");
        }
        assert_eq!(parse_headers(&"a=1,".repeat(4_000)), []);
        assert_eq!(parse_headers(&"a=1,".repeat(40)).len(), MAX_HEADERS);
    }
}
