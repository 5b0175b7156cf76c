//! Bytes are multiplied to 16 bits, which are added in pairs: what every 64-bit ARM can do.

use super::{GROUP, LANES};
use std::arch::aarch64::{
    int32x4_t, vaddq_s32, vdup_n_s32, vdupq_n_s32, vget_high_s8, vget_low_s8, vld1q_s8, vmull_s8,
    vpadalq_s16, vpaddlq_s8, vpaddq_s32, vreinterpret_s8_s32, vshlq_n_s32, vst1q_s32,
};

/// Rows at a time: their sums fill half of the registers.
const ROWS: usize = 2;
/// A panel's group fills this many registers.
const PARTS: usize = 4;
/// Columns in each of them.
const PART: usize = LANES / PARTS;
/// NEON multiplies bytes of one kind only, so inputs are taken as signed, 128 less than they are: the top bit turned.
const LESS_128: u32 = 0x8080_8080;

/// # Safety
/// The CPU has these instructions, and the lengths are as `Cpu::dot_panel` asserts.
#[target_feature(enable = "neon")]
pub(super) unsafe fn dot_panel(rows: &[u8], depth: usize, panel: &[i8], sums: &mut [i32]) {
    // SAFETY: the panel is as long as the caller promised; each tile is given as many rows, and room for as many sums,
    // as it says.
    unsafe {
        let missing = times_128(depth, panel);
        for (rows, sums) in rows.chunks(ROWS * depth).zip(sums.chunks_mut(ROWS * LANES)) {
            match rows.len() / depth {
                2 => tile::<2>(rows, depth, panel, missing, sums),
                _ => tile::<1>(rows, depth, panel, missing, sums),
            }
        }
    }
}

/// What inputs of 128 would have given: the sum of each column, 128 times.
///
/// # Safety
/// `panel` holds `LANES` times `depth` bytes.
#[target_feature(enable = "neon")]
unsafe fn times_128(depth: usize, panel: &[i8]) -> [int32x4_t; PARTS] {
    let mut sums = [vdupq_n_s32(0); PARTS];
    for group in 0..depth / GROUP {
        for (part, sum) in sums.iter_mut().enumerate() {
            // SAFETY: `group` is below `depth / GROUP`, so the read ends within the panel.
            let weights = unsafe { vld1q_s8(panel.as_ptr().add((group * LANES + part * PART) * GROUP)) };
            *sum = vpadalq_s16(*sum, vpaddlq_s8(weights));
        }
    }
    sums.map(|sum| vshlq_n_s32::<7>(sum))
}

/// # Safety
/// `rows` holds `R` times `depth` bytes, `panel` `LANES` times as many, `sums` has room for `R` times `LANES`.
#[target_feature(enable = "neon")]
unsafe fn tile<const R: usize>(
    rows: &[u8],
    depth: usize,
    panel: &[i8],
    missing: [int32x4_t; PARTS],
    sums: &mut [i32],
) {
    let mut totals = [[[vdupq_n_s32(0); 2]; PARTS]; R];
    for group in 0..depth / GROUP {
        let mut inputs = [vreinterpret_s8_s32(vdup_n_s32(0)); R];
        for (row, inputs) in inputs.iter_mut().enumerate() {
            // SAFETY: `group` is below `depth / GROUP`, so the read ends within the row.
            let bytes =
                unsafe { rows.as_ptr().add(row * depth + group * GROUP).cast::<u32>().read_unaligned() };
            *inputs = vreinterpret_s8_s32(vdup_n_s32((bytes ^ LESS_128).cast_signed()));
        }
        for part in 0..PARTS {
            // SAFETY: the same bound for the panel, which has `GROUP * LANES` bytes per group.
            let weights = unsafe { vld1q_s8(panel.as_ptr().add((group * LANES + part * PART) * GROUP)) };
            for (totals, inputs) in totals.iter_mut().zip(inputs) {
                let [low, high] = &mut totals[part];
                *low = vpadalq_s16(*low, vmull_s8(vget_low_s8(weights), inputs));
                *high = vpadalq_s16(*high, vmull_s8(vget_high_s8(weights), inputs));
            }
        }
    }
    for (row, totals) in totals.into_iter().enumerate() {
        for (part, [low, high]) in totals.into_iter().enumerate() {
            let sum = vaddq_s32(vpaddq_s32(low, high), missing[part]);
            // SAFETY: there is room for `R` rows of `LANES` sums.
            unsafe { vst1q_s32(sums.as_mut_ptr().add(row * LANES + part * PART), sum) };
        }
    }
}
