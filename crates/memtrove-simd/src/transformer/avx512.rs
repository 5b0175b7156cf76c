//! One instruction of VNNI multiplies 64 bytes and adds them up by fours: a whole group of a panel.

use super::{GROUP, LANES};
use std::arch::x86_64::{
    _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_storeu_si512,
};

/// Rows at a time: enough sums under way to hide an instruction's latency, few enough addresses for the registers.
const ROWS: usize = 8;

/// # Safety
/// The CPU has these instructions, and the lengths are as `Cpu::dot_panel` asserts.
#[target_feature(enable = "avx512f,avx512vnni")]
pub(super) unsafe fn dot_panel(rows: &[u8], depth: usize, panel: &[i8], sums: &mut [i32]) {
    for (rows, sums) in rows.chunks(ROWS * depth).zip(sums.chunks_mut(ROWS * LANES)) {
        // SAFETY: each tile is given as many rows, and room for as many sums, as it says.
        unsafe {
            match rows.len() / depth {
                8 => tile::<8>(rows, depth, panel, sums),
                7 => tile::<7>(rows, depth, panel, sums),
                6 => tile::<6>(rows, depth, panel, sums),
                5 => tile::<5>(rows, depth, panel, sums),
                4 => tile::<4>(rows, depth, panel, sums),
                3 => tile::<3>(rows, depth, panel, sums),
                2 => tile::<2>(rows, depth, panel, sums),
                _ => tile::<1>(rows, depth, panel, sums),
            }
        }
    }
}

/// # Safety
/// `rows` holds `R` times `depth` bytes, `panel` `LANES` times as many, `sums` has room for `R` times `LANES`.
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn tile<const R: usize>(rows: &[u8], depth: usize, panel: &[i8], sums: &mut [i32]) {
    let mut totals = [_mm512_setzero_si512(); R];
    for group in 0..depth / GROUP {
        // SAFETY: `group` is below `depth / GROUP`, so both reads end within what the caller promised.
        unsafe {
            let weights = _mm512_loadu_si512(panel.as_ptr().add(group * GROUP * LANES).cast());
            for (row, total) in totals.iter_mut().enumerate() {
                let inputs = rows.as_ptr().add(row * depth + group * GROUP).cast::<i32>().read_unaligned();
                *total = _mm512_dpbusd_epi32(*total, _mm512_set1_epi32(inputs), weights);
            }
        }
    }
    for (row, total) in totals.into_iter().enumerate() {
        // SAFETY: there is room for `R` rows of `LANES` sums.
        unsafe { _mm512_storeu_si512(sums.as_mut_ptr().add(row * LANES).cast(), total) };
    }
}
