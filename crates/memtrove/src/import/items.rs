//! The items of a JSON file, one at a time: an export of years is longer than memory.
//!
//! Only where an item begins and ends is looked at here. What is inside is parsed later, so that one that is
//! broken is one that is broken, and the others are read all the same.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;

/// The longest item that is kept: the longest conversations have some megabytes.
pub const MAX_ITEM: usize = 32 * 1024 * 1024;
const MAX_KEY: usize = 1024;
const BUFFER: usize = 256 * 1024;

/// How the items lie in a file. Where a file goes on after its end, it goes on the same way.
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

/// The member that services wrap their answers in: its members are taken for those of the file.
const WRAPPER: &str = "result";

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
    /// What items are being taken out of, the outermost first.
    open: Vec<Level>,
    index: usize,
}

/// Something that has items in it, and the member of the file that it is.
#[derive(Clone)]
enum Level {
    Array(Option<String>),
    Object(Option<String>),
}

/// An item, or the end; or to look again, further in or further out.
type Step = ControlFlow<Option<Item>>;

impl<R: Read> Items<R> {
    /// The items of a file of this shape.
    pub fn new(source: R, shape: Shape) -> Self {
        let source = BufReader::with_capacity(BUFFER, source);
        Self { source, shape, begun: false, open: Vec::new(), index: 0 }
    }

    /// The next item; an error if the file is not as it should be, after which there is none.
    pub fn next_item(&mut self) -> io::Result<Option<Item>> {
        if !self.begun && self.source.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
            self.source.consume(3);
        }
        if self.shape == Shape::Lines {
            self.begun = true;
            return self.next_line();
        }
        loop {
            let step = match self.open.last().cloned() {
                None => self.next_of_file()?,
                Some(Level::Array(member)) => self.next_of_array(member)?,
                Some(Level::Object(member)) => self.next_of_object(member.as_deref())?,
            };
            if let ControlFlow::Break(found) = step {
                return Ok(found);
            }
        }
    }

    /// What stands in the file itself: one value mostly, and what was appended to it.
    fn next_of_file(&mut self) -> io::Result<Step> {
        let is_first = !std::mem::replace(&mut self.begun, true);
        match (self.peek()?, self.shape) {
            (None, _) => Ok(ControlFlow::Break(None)),
            (Some(b'['), _) => Ok(self.enter(Level::Array(None))),
            (Some(b'{'), Shape::Members) => Ok(self.enter(Level::Object(None))),
            (Some(b'{'), _) | (_, Shape::Single) => self.item(None),
            _ if is_first => Err(broken("it is neither an array nor an object")),
            _ => Err(broken("after its end there is something that cannot be read")),
        }
    }

    fn next_of_array(&mut self, member: Option<String>) -> io::Result<Step> {
        self.skip(b',')?;
        match self.peek()? {
            Some(b']') => Ok(self.leave()),
            _ => self.item(member),
        }
    }

    fn next_of_object(&mut self, member: Option<&str>) -> io::Result<Step> {
        self.skip(b',')?;
        match self.peek()? {
            Some(b'}') => return Ok(self.leave()),
            Some(b'"') => {}
            Some(_) => return Err(broken("a member of the file has no name")),
            None => return Err(cut_off()),
        }
        let (mut name, mut whole) = (Vec::new(), true);
        self.value(&mut name, MAX_KEY, &mut whole)?;
        // A name that is too long, or none, is that of nothing anybody knows.
        let name: String = whole.then(|| serde_json::from_slice(&name).ok()).flatten().unwrap_or_default();
        let is_wrapper = member.is_none() && name == WRAPPER;
        let name = member.map_or_else(|| name.clone(), |of| format!("{of}.{name}"));
        self.expect(b':')?;
        self.index = 0;
        match self.peek()? {
            Some(b'[') => Ok(self.enter(Level::Array(Some(name)))),
            Some(b'{') if is_wrapper => Ok(self.enter(Level::Object(Some(name)))),
            _ => self.item(Some(name)),
        }
    }

    /// Goes in, past the byte that opens it.
    fn enter(&mut self, level: Level) -> Step {
        self.source.consume(1);
        self.open.push(level);
        ControlFlow::Continue(())
    }

    /// Goes out, past the byte that closes it.
    fn leave(&mut self) -> Step {
        self.source.consume(1);
        self.open.pop();
        ControlFlow::Continue(())
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

    fn item(&mut self, member: Option<String>) -> io::Result<Step> {
        let (mut bytes, mut whole) = (Vec::new(), true);
        self.value(&mut bytes, MAX_ITEM, &mut whole)?;
        self.index += 1;
        let item = Item { member, index: self.index - 1, bytes: whole.then_some(bytes) };
        Ok(ControlFlow::Break(Some(item)))
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
