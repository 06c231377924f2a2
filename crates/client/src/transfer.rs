//! Exports and imports a session as a file, in pieces.

use std::collections::VecDeque;

use serde_json::Value;

use crate::address::of_file;
use crate::agent::Agent;
use crate::error::{Error, Result, of_last_line};
use crate::wire::{Body, Payload, Wire};
use crate::{Imported, Object, read_json};

const EXPORT: &str = "exportSession";
const IMPORT: &str = "importSession";

/// A file's last line is short, so a longer end is not checked.
const END_BYTES: usize = 16 * 1024;

impl<W: Wire> Agent<W> {
    /// The whole session as lines of JSON.
    pub async fn export_session(&self, session_id: &str) -> Result<Export<W::Body>> {
        let request = self.request(&of_file(session_id, "export")?, Payload::Nothing);
        let answer = self
            .retrying(true, async || self.ask(EXPORT, &request).await)
            .await?;
        Ok(Export {
            body: answer.body,
            end: Vec::new(),
            is_over: false,
        })
    }

    /// Imports a file from `export_session` into a session with this id.
    pub fn import_session<'a>(&'a self, session_id: &'a str) -> Import<'a, W> {
        Import {
            agent: self,
            session_id,
            allow_sources: false,
        }
    }
}

/// A session's file. Reading it fails at the end if it was truncated.
#[derive(Debug)]
pub struct Export<B> {
    body: B,
    end: Vec<u8>,
    is_over: bool,
}

impl<B: Body> Export<B> {
    /// The next piece. `None`: that was the whole file.
    pub async fn piece(&mut self) -> Result<Option<Vec<u8>>> {
        if self.is_over {
            return Ok(None);
        }
        let piece = self
            .body
            .piece()
            .await
            .map_err(|why| Error::lost(EXPORT, &why))?;
        match piece {
            Some(piece) => {
                self.end.extend_from_slice(&piece);
                let surplus = self.end.len().saturating_sub(END_BYTES);
                self.end.drain(..surplus);
                Ok(Some(piece))
            }
            None => {
                check_whole(&self.end)?;
                self.is_over = true;
                Ok(None)
            }
        }
    }

    /// The lines of the file as objects. The last one has the `type` `end`.
    #[must_use]
    pub fn into_lines(self) -> Lines<B> {
        Lines {
            file: self,
            lines: VecDeque::new(),
            rest: Vec::new(),
        }
    }

    /// The body as the transport returns it. It is not checked whether it is whole: an import does
    /// that.
    #[must_use]
    pub fn into_body(self) -> B {
        self.body
    }
}

/// The lines of a session's file.
#[derive(Debug)]
pub struct Lines<B> {
    file: Export<B>,
    lines: VecDeque<Vec<u8>>,
    rest: Vec<u8>,
}

impl<B: Body> Lines<B> {
    /// The next line. `None`: that was the whole file.
    pub async fn next(&mut self) -> Result<Option<Object>> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                let line = read_json(&line);
                return line
                    .map(Some)
                    .map_err(|error| Error::unreadable(EXPORT, error));
            }
            let Some(piece) = self.file.piece().await? else {
                if self.rest.is_empty() {
                    return Ok(None);
                }
                self.lines.push_back(std::mem::take(&mut self.rest));
                continue;
            };
            for part in piece.split_inclusive(|byte| *byte == b'\n') {
                self.rest.extend_from_slice(part);
                if part.ends_with(b"\n") {
                    self.lines.push_back(std::mem::take(&mut self.rest));
                }
            }
        }
    }
}

/// An import that has no file yet.
#[derive(Debug)]
pub struct Import<'a, W> {
    agent: &'a Agent<W>,
    session_id: &'a str,
    allow_sources: bool,
}

impl<W: Wire> Import<'_, W> {
    /// Accept the `source` of blocks and the frozen prompt from the file.
    #[must_use]
    pub fn allow_sources(mut self) -> Self {
        self.allow_sources = true;
        self
    }

    /// Imports a file that is in memory.
    pub async fn file(self, file: impl Into<Vec<u8>>) -> Result<Imported> {
        self.send(Payload::File(file.into())).await
    }

    /// Imports a file that is sent while it arrives. A truncated one writes nothing.
    pub async fn stream(self, stream: W::Stream) -> Result<Imported> {
        self.send(Payload::Stream(stream)).await
    }

    async fn send(self, payload: Payload<W::Stream>) -> Result<Imported> {
        let path = of_file(self.session_id, "import")?;
        let query = if self.allow_sources {
            "?allowSources=true"
        } else {
            ""
        };
        let request = self.agent.request(&format!("{path}{query}"), payload);
        let answer = self.agent.ask(IMPORT, &request).await?;
        let text = self.agent.read(IMPORT, answer).await?;
        read_json(text.as_bytes()).map_err(|error| Error::unreadable(IMPORT, error))
    }
}

/// Checks by its last line that a file is complete. A file whose export failed ends with an error.
fn check_whole(end: &[u8]) -> Result<()> {
    let text = end.trim_ascii_end();
    let line = text
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let last: Value = read_json(line).unwrap_or_default();
    let is = |word: &str| last.get("type").is_some_and(|of| of == word);
    if is("end") {
        return Ok(());
    }
    if is("error") {
        return Err(of_last_line(EXPORT, last.get("error").unwrap_or(&last)));
    }
    Err(Error::Unreached {
        operation: EXPORT.to_owned(),
        message: "the file is truncated: it has no `end`".to_owned(),
        status: None,
    })
}
