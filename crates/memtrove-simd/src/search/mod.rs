//! The inner loops of a search. All sets of instructions give the same integers, so what is found does not depend on the
//! machine; dot products of floats differ in their last bits.

#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

/// Bit sketches lie in blocks of this many rows, column after column; see [`Kernels::table_sums`].
pub const BLOCK_ROWS: usize = 64;
/// A column of a sketch is one byte of each row; its table has 16 entries for the low four bits and 16 for the high.
pub const TABLE_BYTES: usize = 32;
/// No entry of a table is larger, so that two of them fit in a byte.
pub const MAX_ENTRY: u8 = 127;

type DotF32 = unsafe fn(&[f32], &[f32]) -> f32;
type DotsI8 = unsafe fn(&[i8], &[i8], &mut [i32]);
type TableSums = unsafe fn(&[u8], &[u8], &mut [i16]);

/// One implementation of every kernel. Those that the machine cannot run are never handed out.
pub struct Kernels {
    name: &'static str,
    dot_f32: DotF32,
    dots_i8: DotsI8,
    table_sums: TableSums,
}

/// The dot product of two vectors of the same length.
#[inline]
pub fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    Kernels::best().dot_f32(a, b)
}

/// The dot product of two vectors of the same length, exactly.
#[inline]
pub fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    let mut out = [0];
    Kernels::best().dots_i8(a, b, &mut out);
    out[0]
}

impl Kernels {
    /// The fastest set of this machine.
    #[inline]
    pub fn best() -> &'static Self {
        BEST.get_or_init(|| Self::available()[0])
    }

    /// Makes one set the best, for measurements. It has to happen before the first use.
    pub fn prefer(&'static self) {
        let _ = BEST.set(self);
    }

    /// All sets that this machine can run, the fastest first.
    #[allow(unused_mut, clippy::vec_init_then_push, reason = "what is pushed depends on the architecture")]
    pub fn available() -> Vec<&'static Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let wide = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
            if avx2 && wide && is_x86_feature_detected!("avx512vnni") {
                sets.push(&x86::AVX512);
            }
            if avx2 {
                sets.push(&x86::AVX2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            sets.push(&neon::NEON);
        }
        sets.push(&scalar::SCALAR);
        sets
    }

    /// Which instructions it uses.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The dot product of two vectors of the same length.
    #[inline]
    pub fn dot_f32(&self, a: &[f32], b: &[f32]) -> f32 {
        assert_eq!(a.len(), b.len(), "vectors of one length");
        // SAFETY: `available` hands out only what the machine can run; the lengths are equal.
        unsafe { (self.dot_f32)(a, b) }
    }

    /// The dot product of `query` with each of the rows that follow each other in `rows`, exactly (for up to 2^17
    /// dimensions).
    #[inline]
    pub fn dots_i8(&self, query: &[i8], rows: &[i8], out: &mut [i32]) {
        assert_eq!(rows.len(), query.len() * out.len(), "rows as long as the query");
        // SAFETY: `available` hands out only what the machine can run; there is a whole row for every result.
        unsafe {
            (self.dots_i8)(query, rows, out);
        }
    }

    /// For each row of bits the sum of what `tables` says about each four of them.
    ///
    /// Rows lie in blocks of [`BLOCK_ROWS`]: first the first byte of each row, then the second of each, and so on. So
    /// one instruction looks up a byte of dozens of rows, and a sketch is read as fast as memory delivers it, which
    /// counting bits is not before AVX-512.
    #[inline]
    pub fn table_sums(&self, tables: &[u8], blocks: &[u8], out: &mut [i16]) {
        let columns = tables.len() / TABLE_BYTES;
        assert_eq!(tables.len() % TABLE_BYTES, 0, "whole tables");
        assert_eq!(out.len() % BLOCK_ROWS, 0, "whole blocks");
        assert_eq!(blocks.len(), columns * out.len(), "a column for every table");
        // SAFETY: `available` hands out only what the machine can run; blocks and tables are whole and belong together.
        unsafe {
            (self.table_sums)(tables, blocks, out);
        }
    }
}

static BEST: OnceLock<&'static Kernels> = OnceLock::new();
