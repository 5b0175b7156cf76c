//! NEON, which every 64-bit ARM has.

use super::{BLOCK_ROWS, Kernels, TABLE_BYTES, scalar};
use std::arch::aarch64::*;

pub(super) static NEON: Kernels = Kernels { name: "neon", dot_f32, dots_i8, table_sums };

#[target_feature(enable = "neon")]
fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    let (a_parts, a_rest) = a.as_chunks::<8>();
    let (b_parts, b_rest) = b.as_chunks::<8>();
    let mut sums = [vdupq_n_f32(0.0); 2];
    for (a, b) in a_parts.iter().zip(b_parts) {
        for (half, sum) in sums.iter_mut().enumerate() {
            // SAFETY: each part has two times four floats.
            let (a, b) =
                unsafe { (vld1q_f32(a.as_ptr().add(4 * half)), vld1q_f32(b.as_ptr().add(4 * half))) };
            *sum = vfmaq_f32(*sum, a, b);
        }
    }
    vaddvq_f32(vaddq_f32(sums[0], sums[1])) + scalar::dot_f32(a_rest, b_rest)
}

#[target_feature(enable = "neon")]
fn dots_i8(query: &[i8], rows: &[i8], out: &mut [i32]) {
    let (query_parts, query_rest) = query.as_chunks::<16>();
    for (n, out) in out.iter_mut().enumerate() {
        let (parts, rest) = rows[n * query.len()..][..query.len()].as_chunks::<16>();
        let mut sum = vdupq_n_s32(0);
        for (a, b) in query_parts.iter().zip(parts) {
            // SAFETY: each part has the sixteen bytes that are read.
            let (a, b) = unsafe { (vld1q_s8(a.as_ptr()), vld1q_s8(b.as_ptr())) };
            sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(a), vget_low_s8(b)));
            sum = vpadalq_s16(sum, vmull_high_s8(a, b));
        }
        *out = vaddvq_s32(sum) + scalar::dot_i8(query_rest, rest);
    }
}

#[target_feature(enable = "neon")]
fn table_sums(tables: &[u8], blocks: &[u8], out: &mut [i16]) {
    const PARTS: usize = BLOCK_ROWS / 16;
    let (tables, _) = tables.as_chunks::<TABLE_BYTES>();
    let (out, _) = out.as_chunks_mut::<BLOCK_ROWS>();
    let low_bits = vdupq_n_u8(15);
    for (n, out) in out.iter_mut().enumerate() {
        let (columns, _) =
            blocks[n * BLOCK_ROWS * tables.len()..][..BLOCK_ROWS * tables.len()].as_chunks::<BLOCK_ROWS>();
        let mut sums = [[vdupq_n_u16(0); 2]; PARTS];
        for (table, column) in tables.iter().zip(columns) {
            // SAFETY: a table has two times sixteen bytes.
            let (low, high) = unsafe { (vld1q_u8(table.as_ptr()), vld1q_u8(table.as_ptr().add(16))) };
            for (part, [first, second]) in sums.iter_mut().enumerate() {
                // SAFETY: a column has four times sixteen bytes.
                let rows = unsafe { vld1q_u8(column.as_ptr().add(16 * part)) };
                let of_low = vqtbl1q_u8(low, vandq_u8(rows, low_bits));
                let both = vaddq_u8(of_low, vqtbl1q_u8(high, vshrq_n_u8::<4>(rows)));
                *first = vaddw_u8(*first, vget_low_u8(both));
                *second = vaddw_high_u8(*second, both);
            }
        }
        for (part, [first, second]) in sums.into_iter().enumerate() {
            // SAFETY: a block has four times sixteen results.
            unsafe {
                let out = out.as_mut_ptr().add(16 * part);
                vst1q_s16(out, vreinterpretq_s16_u16(first));
                vst1q_s16(out.add(8), vreinterpretq_s16_u16(second));
            }
        }
    }
}
