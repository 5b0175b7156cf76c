//! A blob on its way into the store.

use crate::seal::{PIECE, Sealer};
use crate::{BlobError, Seal, directory, objects};
use bytes::{Buf, Bytes, BytesMut};
use std::fmt;

/// A blob that is being written. It is invisible before it is finished. A write that fails, or is not awaited to its end,
/// spoils it: there is nothing left to do then but to begin anew.
pub struct Upload {
    /// Gone once it is spoiled, and with it whatever it left in the store.
    target: Option<Target>,
    sealer: Option<Sealer>,
    /// What waits to be a part.
    held: BytesMut,
    length: u64,
}

/// Where the parts go.
#[derive(Debug)]
pub(crate) enum Target {
    File(directory::FileUpload),
    Object(objects::ObjectUpload),
}

impl fmt::Debug for Upload {
    /// Without what it holds, which belongs in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload")
            .field("target", &self.target)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Upload {
    pub(crate) fn begin(target: Target, seal: Option<&Seal>) -> Result<Self, BlobError> {
        let mut held = BytesMut::new();
        let sealer = seal.map(|seal| Sealer::begin(seal, &mut held)).transpose()?;
        Ok(Self { target: Some(target), sealer, held, length: 0 })
    }

    /// Adds bytes to the end. Waits as long as the store takes for the parts that are full with them.
    pub async fn write(&mut self, mut bytes: Bytes) -> Result<(), BlobError> {
        let mut target = self.target.take().ok_or_else(spoiled)?;
        self.length += bytes.len() as u64;
        // So that no more than a part and a piece is held, however much comes at once.
        while bytes.has_remaining() {
            let step = bytes.split_to(bytes.len().min(PIECE));
            match &mut self.sealer {
                Some(sealer) => sealer.push(&step, &mut self.held)?,
                None => self.held.extend_from_slice(&step),
            }
            if self.held.len() >= target.part_size() {
                let part = self.held.split_to(target.part_size()).freeze();
                target.write(part).await?;
            }
        }
        self.target = Some(target);
        Ok(())
    }

    /// Makes the blob visible, all of it, and answers how many bytes were written. When this returns, it survives a crash.
    pub async fn finish(mut self) -> Result<u64, BlobError> {
        let target = self.target.take().ok_or_else(spoiled)?;
        if let Some(sealer) = self.sealer.take() {
            sealer.finish(&mut self.held)?;
        }
        target.finish(std::mem::take(&mut self.held)).await?;
        Ok(self.length)
    }

    /// Gives up, and waits until nothing of it is left in the store.
    pub async fn abort(mut self) -> Result<(), BlobError> {
        match self.target.take() {
            Some(target) => target.abort().await,
            None => Ok(()),
        }
    }
}

impl Target {
    /// How many bytes go to the store at once.
    fn part_size(&self) -> usize {
        match self {
            Self::File(_) => directory::PART,
            Self::Object(_) => objects::PART,
        }
    }

    async fn write(&mut self, part: Bytes) -> Result<(), BlobError> {
        match self {
            Self::File(file) => file.write(part).await,
            Self::Object(object) => object.write(part).await,
        }
    }

    /// With what is left after the last full part, which may be a little more than one.
    async fn finish(mut self, mut rest: BytesMut) -> Result<(), BlobError> {
        if rest.len() > self.part_size() {
            let part = rest.split_to(self.part_size()).freeze();
            self.write(part).await?;
        }
        match self {
            Self::File(file) => file.finish(rest.freeze()).await,
            Self::Object(object) => object.finish(rest.freeze()).await,
        }
    }

    async fn abort(self) -> Result<(), BlobError> {
        match self {
            // Dropping it removes it.
            Self::File(_) => Ok(()),
            Self::Object(object) => object.abort().await,
        }
    }
}

fn spoiled() -> BlobError {
    BlobError::Invalid("an earlier write to this upload did not succeed".into())
}
