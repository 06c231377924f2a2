//! A position in a JSON text. It moves over bytes, numbers, strings and whole values.

use std::borrow::Cow;

use serde::de::Visitor;

use super::problem::{ReadError, ReadResult};
use super::scan::count_unescaped;
use super::string::unescape;

/// The largest integer that JavaScript, and so the engine's binding, represents exactly.
pub const MAX_INTEGER: i64 = (1 << 53) - 1;

pub struct Cursor<'de> {
    text: &'de str,
    at: usize,
}

pub enum Number {
    Natural(u64),
    Negative(i64),
    Real(f64),
}

impl<'de> Cursor<'de> {
    pub fn new(text: &'de str) -> Self {
        Self { text, at: 0 }
    }

    /// Rejects anything but whitespace after the value.
    pub fn end(&mut self) -> ReadResult<()> {
        if self.is_at_end() {
            Ok(())
        } else {
            Err(self.syntax())
        }
    }

    /// Whether nothing but whitespace follows.
    pub fn is_at_end(&mut self) -> bool {
        self.next_byte();
        self.at == self.text.len()
    }

    /// Moves past one byte.
    pub fn step(&mut self) {
        self.at += 1;
    }

    pub fn offset(&self) -> usize {
        self.at
    }

    /// The same text from another position on.
    pub fn at(&self, offset: usize) -> Self {
        Self {
            text: self.text,
            at: offset,
        }
    }

    pub fn syntax(&self) -> ReadError {
        ReadError::syntax(self.at)
    }

    /// The byte at the cursor; 0, which never occurs in JSON, at the end.
    fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// The next byte that isn't whitespace. The cursor moves to it, not past it.
    #[inline(never)]
    pub fn next_byte(&mut self) -> u8 {
        loop {
            match self.byte() {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                byte => return byte,
            }
        }
    }

    pub fn take(&mut self, wanted: u8) -> ReadResult<()> {
        if self.next_byte() != wanted {
            return Err(self.syntax());
        }
        self.at += 1;
        Ok(())
    }

    /// Moves past a word, or to the first byte that differs.
    pub fn word(&mut self, word: &str) -> ReadResult<()> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            let same = rest.iter().zip(word.as_bytes());
            self.at += same.take_while(|(read, wanted)| read == wanted).count();
            return Err(self.syntax());
        }
        self.at += word.len();
        Ok(())
    }

    fn since(&self, start: usize) -> ReadResult<&'de str> {
        self.text.get(start..self.at).ok_or_else(|| self.syntax())
    }

    fn digits(&mut self) -> ReadResult<()> {
        let start = self.at;
        while self.byte().is_ascii_digit() {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err(self.syntax())
        }
    }

    /// Moves past a number. Returns whether the number is written as an integer.
    fn skip_number(&mut self) -> ReadResult<bool> {
        if self.byte() == b'-' {
            self.at += 1;
        }
        match self.byte() {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        // `01`
        if self.byte().is_ascii_digit() {
            return Err(self.syntax());
        }
        let mut is_integer = true;
        if self.byte() == b'.' {
            is_integer = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), b'e' | b'E') {
            is_integer = false;
            self.at += 1;
            if matches!(self.byte(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(is_integer)
    }

    #[inline(never)]
    pub fn number(&mut self) -> ReadResult<Number> {
        let start = self.at;
        let is_integer = self.skip_number()?;
        let text = self.since(start)?;
        if is_integer {
            if let Ok(number) = text.parse() {
                return Ok(Number::Natural(number));
            }
            // `-0` is a real number: an integer has no negative zero.
            if let Ok(number) = text.parse::<i64>()
                && number != 0
            {
                return Ok(Number::Negative(number));
            }
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Number::Real(number)),
            // No float is large enough.
            _ => Err(self.syntax()),
        }
    }

    /// Moves past a string. Returns where its text begins, and whether it contains an escape.
    pub fn skip_string(&mut self) -> ReadResult<(usize, bool)> {
        self.take(b'"')?;
        let start = self.at;
        let mut has_escape = false;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            self.at += count_unescaped(rest);
            match self.byte() {
                b'"' => {
                    self.at += 1;
                    return Ok((start, has_escape));
                }
                b'\\' => {
                    has_escape = true;
                    self.at += 1;
                    match self.byte() {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                        b'u' => {
                            self.at += 1;
                            for _ in 0..4 {
                                if !self.byte().is_ascii_hexdigit() {
                                    return Err(self.syntax());
                                }
                                self.at += 1;
                            }
                        }
                        _ => return Err(self.syntax()),
                    }
                }
                // A control character, or the end of the text.
                _ => return Err(self.syntax()),
            }
        }
    }

    #[inline(never)]
    pub fn string(&mut self) -> ReadResult<Cow<'de, str>> {
        let (start, has_escape) = self.skip_string()?;
        let text = self.text.get(start..self.at - 1);
        let text = text.ok_or_else(|| self.syntax())?;
        if !has_escape {
            return Ok(Cow::Borrowed(text));
        }
        match unescape(text) {
            Some(text) => Ok(Cow::Owned(text)),
            None => Err(self.syntax()),
        }
    }

    /// Moves past one value of any depth, without recursion.
    #[inline(never)]
    pub fn skip_value(&mut self) -> ReadResult<&'de str> {
        self.next_byte();
        let start = self.at;
        // The closing brackets of the objects and arrays around the cursor.
        let mut closers = Vec::new();
        loop {
            match self.next_byte() {
                b'"' => drop(self.skip_string()?),
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                open @ (b'{' | b'[') => {
                    self.at += 1;
                    let closer = if open == b'{' { b'}' } else { b']' };
                    closers.push(closer);
                    if self.next_byte() != closer {
                        if open == b'{' {
                            self.skip_key()?;
                        }
                        continue;
                    }
                }
                _ => drop(self.skip_number()?),
            }
            // A value ended, and perhaps also the array or object around it.
            loop {
                let Some(closer) = closers.last().copied() else {
                    return self.since(start);
                };
                match self.next_byte() {
                    b',' => {
                        self.at += 1;
                        if closer == b'}' {
                            self.skip_key()?;
                        }
                        break;
                    }
                    byte if byte == closer => {
                        self.at += 1;
                        closers.pop();
                    }
                    _ => return Err(self.syntax()),
                }
            }
        }
    }

    fn skip_key(&mut self) -> ReadResult<()> {
        self.skip_string()?;
        self.take(b':')
    }
}

/// The number of bytes before the first at which a text is not JSON. `None`: the text is
/// JSON.
pub fn find_fault(text: &str) -> Option<usize> {
    let mut cursor = Cursor::new(text);
    let read = cursor.skip_value().and_then(|_| cursor.end());
    read.is_err().then_some(cursor.at)
}

impl Number {
    pub fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        match self {
            Self::Natural(number) => visitor.visit_u64(number),
            Self::Negative(number) => visitor.visit_i64(number),
            Self::Real(number) => visitor.visit_f64(number),
        }
    }

    /// For a field that is an integer: `5.0` and `5e0` are the integer 5 in JSON, and some
    /// writers of JSON write it so.
    pub fn visit_integer<'de, V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        match self {
            Self::Real(number) if number.fract() == 0.0 && number.abs() <= MAX_INTEGER as f64 => {
                visitor.visit_i64(number as i64)
            }
            number => number.visit(visitor),
        }
    }
}
