//! Bytes are widened and multiplied as 16 bits: AVX2 multiplies bytes too, but its sums of them saturate.

use super::{GROUP, LANES};
use std::arch::x86_64::{
    _mm_loadu_si128, _mm_set1_epi32, _mm_storeu_si128, _mm256_add_epi32, _mm256_castsi256_si128,
    _mm256_cvtepi8_epi16, _mm256_cvtepu8_epi16, _mm256_hadd_epi32, _mm256_madd_epi16,
    _mm256_permute4x64_epi64, _mm256_setzero_si256,
};

/// Rows at a time: their sums, inputs and one part of the weights fill the sixteen registers.
const ROWS: usize = 2;
/// A panel's group fills this many registers once it is widened.
const PARTS: usize = 4;
/// Columns in each of them.
const PART: usize = LANES / PARTS;

/// # Safety
/// The CPU has these instructions, and the lengths are as `Cpu::dot_panel` asserts.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn dot_panel(rows: &[u8], depth: usize, panel: &[i8], sums: &mut [i32]) {
    for (rows, sums) in rows.chunks(ROWS * depth).zip(sums.chunks_mut(ROWS * LANES)) {
        // SAFETY: each tile is given as many rows, and room for as many sums, as it says.
        unsafe {
            match rows.len() / depth {
                2 => tile::<2>(rows, depth, panel, sums),
                _ => tile::<1>(rows, depth, panel, sums),
            }
        }
    }
}

/// # Safety
/// `rows` holds `R` times `depth` bytes, `panel` `LANES` times as many, `sums` has room for `R` times `LANES`.
#[target_feature(enable = "avx2")]
unsafe fn tile<const R: usize>(rows: &[u8], depth: usize, panel: &[i8], sums: &mut [i32]) {
    let mut totals = [[_mm256_setzero_si256(); PARTS]; R];
    for group in 0..depth / GROUP {
        let mut inputs = [_mm256_setzero_si256(); R];
        for (row, inputs) in inputs.iter_mut().enumerate() {
            // SAFETY: `group` is below `depth / GROUP`, so the read ends within the row.
            let bytes =
                unsafe { rows.as_ptr().add(row * depth + group * GROUP).cast::<i32>().read_unaligned() };
            *inputs = _mm256_cvtepu8_epi16(_mm_set1_epi32(bytes));
        }
        for part in 0..PARTS {
            // SAFETY: the same bound for the panel, which has `GROUP * LANES` bytes per group.
            let bytes =
                unsafe { _mm_loadu_si128(panel.as_ptr().add((group * LANES + part * PART) * GROUP).cast()) };
            let weights = _mm256_cvtepi8_epi16(bytes);
            for (totals, inputs) in totals.iter_mut().zip(inputs) {
                totals[part] = _mm256_add_epi32(totals[part], _mm256_madd_epi16(inputs, weights));
            }
        }
    }
    for (row, totals) in totals.into_iter().enumerate() {
        for (part, halves) in totals.into_iter().enumerate() {
            // Each column's sum is still in two halves, next to each other; the pairs' sums come out in doubles.
            let sum = _mm256_permute4x64_epi64::<0b10_00>(_mm256_hadd_epi32(halves, halves));
            // SAFETY: there is room for `R` rows of `LANES` sums.
            unsafe {
                _mm_storeu_si128(
                    sums.as_mut_ptr().add(row * LANES + part * PART).cast(),
                    _mm256_castsi256_si128(sum),
                )
            };
        }
    }
}
