//! Frames: what an archive is made of, inside one zstd stream.
//!
//! | Bytes | |
//! |---|---|
//! | 1 | what it is |
//! | 4 | its length |
//! | … | its content |
//! | 16 | the digest of everything from the beginning of the archive up to here |
//!
//! So a frame that was changed, left out, repeated or moved is noticed when it is read, before anything is made of it.

use super::ArchiveError;
use std::io::{BufReader, Chain, Cursor, ErrorKind, Read, Write};

/// The first line, for those who look into one.
const MAGIC: &[u8] = memtrove_core::legacy_labels::ARCHIVE_MAGIC;
const CHECK: usize = 16;
/// How everything begins that zstd has compressed.
const COMPRESSED: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// What the archive is; the first one.
    Header,
    /// A table begins.
    Table,
    /// Some of its rows.
    Rows,
    TableEnd,
    /// The bytes of attachments begin, under their storage key.
    Blob,
    /// Some of them.
    Bytes,
    /// They end.
    BlobEnd,
    /// The archive ends.
    End,
}

const TAGS: [(Tag, u8); 8] = [
    (Tag::Header, b'H'),
    (Tag::Table, b'T'),
    (Tag::Rows, b'R'),
    (Tag::TableEnd, b'E'),
    (Tag::Blob, b'B'),
    (Tag::Bytes, b'P'),
    (Tag::BlobEnd, b'F'),
    (Tag::End, b'Z'),
];

/// The quickest level that is worth its while.
const LEVEL: i32 = 3;

/// Writes frames.
pub(super) struct FrameWriter<W: Write> {
    stream: zstd::stream::write::Encoder<'static, W>,
    so_far: blake3::Hasher,
}

impl<W: Write> FrameWriter<W> {
    pub(super) fn new(sink: W) -> Result<Self, ArchiveError> {
        let mut stream = zstd::stream::write::Encoder::new(sink, LEVEL).map_err(ArchiveError::writing)?;
        stream.include_checksum(true).map_err(ArchiveError::writing)?;
        let mut writer = Self { stream, so_far: blake3::Hasher::new() };
        writer.put(MAGIC)?;
        Ok(writer)
    }

    pub(super) fn frame(&mut self, tag: Tag, content: &[u8]) -> Result<(), ArchiveError> {
        let length = u32::try_from(content.len())
            .map_err(|_| ArchiveError::writing(std::io::Error::other("a single row has 4 GiB or more")))?;
        let tag = TAGS.iter().find(|(known, _)| *known == tag).map_or(0, |(_, byte)| *byte);
        self.put(&[tag])?;
        self.put(&length.to_le_bytes())?;
        self.put(content)?;
        let check = self.so_far.finalize();
        self.put(&check.as_bytes()[..CHECK])
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.so_far.update(bytes);
        self.stream.write_all(bytes).map_err(ArchiveError::writing)
    }

    /// Ends the stream; everything is with the sink then.
    pub(super) fn finish(self) -> Result<W, ArchiveError> {
        let mut sink = self.stream.finish().map_err(ArchiveError::writing)?;
        sink.flush().map_err(ArchiveError::writing)?;
        Ok(sink)
    }
}

/// Reads frames.
pub(super) struct FrameReader<R: Read> {
    stream: zstd::stream::read::Decoder<'static, BufReader<Whole<R>>>,
    so_far: blake3::Hasher,
}

/// A source whose first bytes were looked at.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

/// Why there is no next frame.
pub(super) enum NoFrame {
    /// The source failed.
    Io(std::io::Error),
    /// It ends too early.
    Truncated,
    /// It is not what was written.
    Changed(&'static str),
}

impl From<std::io::Error> for NoFrame {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof => NoFrame::Truncated,
            // What zstd says of a stream that is none; a source that fails names a reason of the system.
            _ if error.raw_os_error().is_none() => NoFrame::Changed("it cannot be decompressed"),
            _ => NoFrame::Io(error),
        }
    }
}

impl<R: Read> FrameReader<R> {
    /// Begins to read; an error is one of the source, or says that it is no archive or the beginning of one.
    pub(super) fn new(mut source: R) -> Result<Self, ArchiveError> {
        let mut first = Vec::new();
        (&mut source).take(COMPRESSED.len() as u64).read_to_end(&mut first).map_err(ArchiveError::reading)?;
        if first.is_empty() {
            return Err(ArchiveError::Empty);
        }
        if !COMPRESSED.starts_with(&first) {
            return Err(ArchiveError::Foreign);
        }
        let whole = Cursor::new(first).chain(source);
        let mut stream = zstd::stream::read::Decoder::new(whole).map_err(ArchiveError::reading)?;
        let mut magic = Vec::new();
        let read = (&mut stream).take(MAGIC.len() as u64).read_to_end(&mut magic);
        match read.map_err(NoFrame::from) {
            Ok(_) if magic == MAGIC => {}
            Err(NoFrame::Io(why)) => return Err(ArchiveError::reading(why)),
            // What can be read of it may be the beginning of an archive.
            Err(NoFrame::Truncated) if MAGIC.starts_with(&magic) => {
                return Err(ArchiveError::CutOff { place: "at its beginning".to_owned() });
            }
            Ok(_) | Err(NoFrame::Truncated | NoFrame::Changed(_)) => return Err(ArchiveError::Foreign),
        }
        let mut so_far = blake3::Hasher::new();
        so_far.update(&magic);
        Ok(Self { stream, so_far })
    }

    /// The next frame.
    pub(super) fn frame(&mut self) -> Result<(Tag, Vec<u8>), NoFrame> {
        let (mut tag, mut length) = ([0; 1], [0; 4]);
        self.take(&mut tag)?;
        let tag = TAGS.iter().find(|(_, byte)| *byte == tag[0]);
        let tag = tag.ok_or(NoFrame::Changed("there is something that is no part of an archive"))?.0;
        self.take(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        // Room is made for what is there, not for what a changed length says.
        let mut content = Vec::new();
        let read = (&mut self.stream).take(length).read_to_end(&mut content)?;
        if read as u64 != length {
            return Err(NoFrame::Truncated);
        }
        self.so_far.update(&content);
        let expected = self.so_far.finalize();
        let mut check = [0; CHECK];
        self.take(&mut check)?;
        if check != expected.as_bytes()[..CHECK] {
            return Err(NoFrame::Changed("its content is not what was written"));
        }
        Ok((tag, content))
    }

    /// Sees to it that nothing follows.
    pub(super) fn end(&mut self) -> Result<(), NoFrame> {
        match self.stream.read(&mut [0; 1])? {
            0 => Ok(()),
            _ => Err(NoFrame::Changed("something follows its end")),
        }
    }

    fn take(&mut self, bytes: &mut [u8]) -> Result<(), NoFrame> {
        self.stream.read_exact(bytes)?;
        self.so_far.update(bytes);
        Ok(())
    }
}
