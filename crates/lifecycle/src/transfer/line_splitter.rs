//! Splits a file that arrives in chunks into lines. Only the unfinished line is buffered.

use super::target::at_line;
use super::{MAX_FILE_BYTES, MAX_LINE_BYTES};
use base::error::{Code, Error, Result};

pub struct LineSplitter {
    /// The line whose end hasn't arrived yet.
    line: Vec<u8>,
    /// The number of that line.
    number: u64,
    received: u64,
}

impl LineSplitter {
    /// `number`: the number of the first line.
    pub fn new(number: u64) -> Self {
        Self {
            line: Vec::new(),
            number,
            received: 0,
        }
    }

    /// The memory in use between two chunks: the unfinished line.
    pub fn buffered_bytes(&self) -> usize {
        self.line.capacity()
    }

    /// Sets the number of the next line.
    pub fn number_next(&mut self, number: u64) {
        self.number = number;
    }

    /// The number of the line that was cut off last, after [`Self::pass`].
    pub fn last_number(&self) -> u64 {
        self.number - 1
    }

    /// Counts a line as processed. Returns its number.
    pub fn pass(&mut self) -> u64 {
        self.number += 1;
        self.number - 1
    }

    /// Counts the bytes of a chunk. Rejects a file that is too long.
    pub fn receive(&mut self, bytes: usize) -> Result<()> {
        self.received += bytes as u64;
        if self.received <= MAX_FILE_BYTES {
            return Ok(());
        }
        Err(Error::new(
            Code::PayloadTooLarge,
            format!("The file is longer than {MAX_FILE_BYTES} bytes."),
        )
        .with("limit", MAX_FILE_BYTES)
        .with("actual", self.received))
    }

    /// Removes the next line from a chunk. `None`: the chunk is used up.
    pub fn cut(&mut self, rest: &mut &[u8]) -> Result<Option<Vec<u8>>> {
        let end = rest.iter().position(|byte| *byte == b'\n');
        match end.and_then(|end| rest.split_at_checked(end)) {
            Some((head, tail)) => {
                self.extend(head)?;
                *rest = tail.get(1..).unwrap_or_default();
                Ok(Some(self.take_rest()))
            }
            None => {
                self.extend(rest)?;
                *rest = &[];
                Ok(None)
            }
        }
    }

    /// Takes the buffered bytes: at the end of the file, a last line without a newline.
    pub fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.line)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<()> {
        let length = self.line.len() + bytes.len();
        if length > MAX_LINE_BYTES {
            let error = Error::payload_too_large("The line", MAX_LINE_BYTES, length);
            return Err(at_line(self.number, error));
        }
        // Grows in small steps rather than by doubling: a long line takes a quarter of
        // all memory.
        if self.line.capacity() < length {
            self.line
                .reserve_exact(bytes.len().max(self.line.len() / 4));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }
}
