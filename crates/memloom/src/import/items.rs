//! The items of a JSON file, one at a time: an export of years is longer than memory.
//!
//! Only where an item begins and ends is looked at here. What is inside is parsed by whoever wants it, so that one that is
//! broken is one that is broken, and the others are read all the same.

use std::io::{self, BufRead, BufReader, Read};

/// The longest item that is kept: the longest conversations have some megabytes.
pub const MAX_ITEM: usize = 32 * 1024 * 1024;
const MAX_KEY: usize = 1024;
const BUFFER: usize = 256 * 1024;

/// How the items lie in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// The file is an array of them.
    Array,
    /// The file is an object; arrays among its members have them, and every other member is one.
    Members,
    /// The file is one.
    Single,
    /// Every line is one.
    Lines,
}

/// An item, as it is written.
#[derive(Debug)]
pub struct Item {
    /// The member of the file it is of.
    pub member: Option<String>,
    /// Its place there.
    pub index: usize,
    /// Its bytes, unless it is longer than [`MAX_ITEM`].
    pub bytes: Option<Vec<u8>>,
}

/// Reads the items of a file.
pub struct Items<R> {
    source: BufReader<R>,
    shape: Shape,
    begun: bool,
    /// The member whose array is being read.
    inside: Option<Option<String>>,
    index: usize,
}

impl<R: Read> Items<R> {
    /// The items of a file of this shape.
    pub fn new(source: R, shape: Shape) -> Self {
        Self { source: BufReader::with_capacity(BUFFER, source), shape, begun: false, inside: None, index: 0 }
    }

    /// The next item; an error if the file is not as it should be, after which there is none.
    pub fn next_item(&mut self) -> io::Result<Option<Item>> {
        if !self.begun {
            self.begun = true;
            if self.source.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
                self.source.consume(3);
            }
            match self.shape {
                Shape::Array => {
                    self.expect(b'[')?;
                    self.inside = Some(None);
                }
                Shape::Members => self.expect(b'{')?,
                Shape::Single | Shape::Lines => {}
            }
        }
        match self.shape {
            Shape::Array => self.next_of_array().map(Option::flatten),
            Shape::Members => self.next_of_members(),
            Shape::Single => match self.peek()? {
                Some(_) if self.index == 0 => self.item(None).map(Some),
                _ => Ok(None),
            },
            Shape::Lines => self.next_line(),
        }
    }

    /// The next item of the array that is being read. `Some(None)` is its end, `None` that there is no such array.
    fn next_of_array(&mut self) -> io::Result<Option<Option<Item>>> {
        let Some(member) = self.inside.clone() else { return Ok(None) };
        self.skip(b',')?;
        if self.peek()? == Some(b']') {
            self.source.consume(1);
            self.inside = None;
            return Ok(Some(None));
        }
        self.item(member).map(|item| Some(Some(item)))
    }

    fn next_of_members(&mut self) -> io::Result<Option<Item>> {
        loop {
            if let Some(Some(item)) = self.next_of_array()? {
                return Ok(Some(item));
            }
            self.skip(b',')?;
            match self.peek()? {
                Some(b'}') => return Ok(None),
                Some(b'"') => {}
                _ => return Err(broken("a member of the file has no name")),
            }
            let (mut name, mut whole) = (Vec::new(), true);
            self.value(&mut name, MAX_KEY, &mut whole)?;
            let name = whole.then(|| serde_json::from_slice(&name).ok()).flatten();
            self.expect(b':')?;
            self.index = 0;
            if self.peek()? == Some(b'[') {
                self.source.consume(1);
                self.inside = Some(name);
                continue;
            }
            return self.item(name).map(Some);
        }
    }

    fn next_line(&mut self) -> io::Result<Option<Item>> {
        loop {
            let (mut line, mut whole) = (Vec::new(), true);
            let read = (&mut self.source).take(MAX_ITEM as u64 + 1).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(None);
            }
            while line.len() > MAX_ITEM && !line.ends_with(b"\n") {
                whole = false;
                line.truncate(MAX_ITEM);
                let mut rest = Vec::new();
                (&mut self.source).take(BUFFER as u64).read_until(b'\n', &mut rest)?;
                match rest.last() {
                    None | Some(b'\n') => break,
                    Some(_) => line.push(b' '),
                }
            }
            self.index += 1;
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            return Ok(Some(Item { member: None, index: self.index - 1, bytes: whole.then_some(line) }));
        }
    }

    fn item(&mut self, member: Option<String>) -> io::Result<Item> {
        let (mut bytes, mut whole) = (Vec::new(), true);
        self.value(&mut bytes, MAX_ITEM, &mut whole)?;
        self.index += 1;
        Ok(Item { member, index: self.index - 1, bytes: whole.then_some(bytes) })
    }

    /// Reads one value, up to the byte that belongs to it no more. One that is too long is read and not kept.
    fn value(&mut self, into: &mut Vec<u8>, max: usize, whole: &mut bool) -> io::Result<()> {
        self.skip(b' ')?;
        let (mut depth, mut in_string, mut escaped, mut begun) = (0usize, false, false, false);
        loop {
            let buffer = self.source.fill_buf()?;
            if buffer.is_empty() {
                // A number or a word may end with the file.
                return if begun && depth == 0 && !in_string { Ok(()) } else { Err(cut_off()) };
            }
            let (mut used, mut ended) = (0, false);
            for byte in buffer {
                if in_string {
                    used += 1;
                    match byte {
                        _ if escaped => escaped = false,
                        b'\\' => escaped = true,
                        b'"' => {
                            in_string = false;
                            ended = depth == 0;
                        }
                        _ => {}
                    }
                } else {
                    match byte {
                        b',' | b']' | b'}' | b':' if depth == 0 => {
                            ended = true;
                            break;
                        }
                        _ if depth == 0 && byte.is_ascii_whitespace() => {
                            ended = true;
                            break;
                        }
                        b'"' => in_string = true,
                        b'[' | b'{' => depth += 1,
                        b']' | b'}' => {
                            depth -= 1;
                            ended = depth == 0;
                        }
                        _ => {}
                    }
                    used += 1;
                }
                begun = true;
                if ended {
                    break;
                }
            }
            if *whole && into.len() + used > max {
                *whole = false;
                into.clear();
                into.shrink_to_fit();
            }
            if *whole {
                into.extend_from_slice(&buffer[..used]);
            }
            self.source.consume(used);
            if ended {
                return if begun { Ok(()) } else { Err(broken("there is something that is no value")) };
            }
        }
    }

    /// Goes on past white space and one more kind of byte.
    fn skip(&mut self, also: u8) -> io::Result<()> {
        loop {
            let buffer = self.source.fill_buf()?;
            let skipped =
                buffer.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == also).count();
            let done = skipped < buffer.len() || buffer.is_empty();
            self.source.consume(skipped);
            if done {
                return Ok(());
            }
        }
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> io::Result<Option<u8>> {
        self.skip(b' ')?;
        Ok(self.source.fill_buf()?.first().copied())
    }

    fn expect(&mut self, byte: u8) -> io::Result<()> {
        match self.peek()? {
            Some(found) if found == byte => {
                self.source.consume(1);
                Ok(())
            }
            Some(_) => Err(broken(format!("there is no '{}' where one should be", char::from(byte)))),
            None => Err(cut_off()),
        }
    }
}

fn broken(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file is cut off")
}

#[cfg(test)]
mod tests;
