//! Plain Rust, for machines that have none of the others, and what the others are tested against.

use super::{BLOCK_ROWS, Kernels, TABLE_BYTES};

pub(super) static SCALAR: Kernels = Kernels { name: "scalar", dot_f32, dots_i8, table_sums };

/// Sums lie in lanes, so that the compiler may use whatever registers there are.
const LANES: usize = 8;

pub(super) fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

pub(super) fn dot_i8(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum()
}

fn dots_i8(query: &[i8], rows: &[i8], out: &mut [i32]) {
    for (n, out) in out.iter_mut().enumerate() {
        *out = dot_i8(query, &rows[n * query.len()..][..query.len()]);
    }
}

fn table_sums(tables: &[u8], blocks: &[u8], out: &mut [i16]) {
    let (tables, _) = tables.as_chunks::<TABLE_BYTES>();
    for (n, sums) in out.chunks_exact_mut(BLOCK_ROWS).enumerate() {
        sums.fill(0);
        let block = &blocks[n * BLOCK_ROWS * tables.len()..][..BLOCK_ROWS * tables.len()];
        for (table, column) in tables.iter().zip(block.chunks_exact(BLOCK_ROWS)) {
            for (sum, byte) in sums.iter_mut().zip(column) {
                let (low, high) = (usize::from(byte & 15), 16 + usize::from(byte >> 4));
                *sum += i16::from(table[low]) + i16::from(table[high]);
            }
        }
    }
}
