//! AVX2 and AVX-512.

use super::{BLOCK_ROWS, Kernels, TABLE_BYTES, scalar};
use std::arch::x86_64::*;

/// For machines with AVX2 and FMA.
pub(super) static AVX2: Kernels =
    Kernels { name: "avx2", dot_f32: dot_f32_avx2, dots_i8: dots_i8_avx2, table_sums: table_sums_avx2 };

/// For machines with AVX-512 (F, BW, VNNI). Sums from tables are as fast as memory with AVX2 already.
pub(super) static AVX512: Kernels =
    Kernels { name: "avx512", dot_f32: dot_f32_avx512, dots_i8: dots_i8_avx512, table_sums: table_sums_avx2 };

#[target_feature(enable = "avx2,fma")]
fn dot_f32_avx2(a: &[f32], b: &[f32]) -> f32 {
    let (a_parts, a_rest) = a.as_chunks::<8>();
    let (b_parts, b_rest) = b.as_chunks::<8>();
    let mut sum = _mm256_setzero_ps();
    for (a, b) in a_parts.iter().zip(b_parts) {
        // SAFETY: each part has the eight floats that are read.
        let (a, b) = unsafe { (_mm256_loadu_ps(a.as_ptr()), _mm256_loadu_ps(b.as_ptr())) };
        sum = _mm256_fmadd_ps(a, b, sum);
    }
    let halves = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
    let pairs = _mm_add_ps(halves, _mm_movehl_ps(halves, halves));
    let one = _mm_add_ss(pairs, _mm_movehdup_ps(pairs));
    _mm_cvtss_f32(one) + scalar::dot_f32(a_rest, b_rest)
}

#[target_feature(enable = "avx512f")]
fn dot_f32_avx512(a: &[f32], b: &[f32]) -> f32 {
    let mut sum = _mm512_setzero_ps();
    for (a, b) in a.chunks(16).zip(b.chunks(16)) {
        let mask = u16::MAX >> (16 - a.len());
        // SAFETY: the mask has a bit for each float of the part, and only those are read.
        let (a, b) =
            unsafe { (_mm512_maskz_loadu_ps(mask, a.as_ptr()), _mm512_maskz_loadu_ps(mask, b.as_ptr())) };
        sum = _mm512_fmadd_ps(a, b, sum);
    }
    _mm512_reduce_add_ps(sum)
}

#[target_feature(enable = "avx2")]
fn dots_i8_avx2(query: &[i8], rows: &[i8], out: &mut [i32]) {
    let (query_parts, query_rest) = query.as_chunks::<16>();
    for (n, out) in out.iter_mut().enumerate() {
        let (parts, rest) = rows[n * query.len()..][..query.len()].as_chunks::<16>();
        let mut sum = _mm256_setzero_si256();
        for (a, b) in query_parts.iter().zip(parts) {
            // SAFETY: each part has the sixteen bytes that are read.
            let (a, b) = unsafe { (_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast())) };
            let products = _mm256_madd_epi16(_mm256_cvtepi8_epi16(a), _mm256_cvtepi8_epi16(b));
            sum = _mm256_add_epi32(sum, products);
        }
        let halves = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        let pairs = _mm_add_epi32(halves, _mm_unpackhi_epi64(halves, halves));
        let one = _mm_add_epi32(pairs, _mm_shuffle_epi32::<1>(pairs));
        *out = _mm_cvtsi128_si32(one) + scalar::dot_i8(query_rest, rest);
    }
}

/// VNNI multiplies unsigned by signed bytes, so rows are moved up by 128, and what the query makes of that is taken off.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dots_i8_avx512(query: &[i8], rows: &[i8], out: &mut [i32]) {
    let up = _mm512_set1_epi8(i8::MIN);
    let too_much = 128 * query.iter().map(|&q| i32::from(q)).sum::<i32>();
    for (n, out) in out.iter_mut().enumerate() {
        let row = &rows[n * query.len()..][..query.len()];
        let mut sum = _mm512_setzero_si512();
        for (q, r) in query.chunks(64).zip(row.chunks(64)) {
            let mask = u64::MAX >> (64 - q.len());
            // SAFETY: the mask has a bit for each byte of the part, and only those are read.
            let (q, r) = unsafe {
                (_mm512_maskz_loadu_epi8(mask, q.as_ptr()), _mm512_maskz_loadu_epi8(mask, r.as_ptr()))
            };
            sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(r, up), q);
        }
        *out = _mm512_reduce_add_epi32(sum) - too_much;
    }
}

#[target_feature(enable = "avx2")]
fn table_sums_avx2(tables: &[u8], blocks: &[u8], out: &mut [i16]) {
    let (tables, _) = tables.as_chunks::<TABLE_BYTES>();
    let (out, _) = out.as_chunks_mut::<BLOCK_ROWS>();
    let low_bits = _mm256_set1_epi8(15);
    let low_bytes = _mm256_set1_epi16(255);
    for (n, out) in out.iter_mut().enumerate() {
        let (columns, _) =
            blocks[n * BLOCK_ROWS * tables.len()..][..BLOCK_ROWS * tables.len()].as_chunks::<BLOCK_ROWS>();
        // Two registers of rows, each with the sums of its even and of its odd rows.
        let mut sums = [[_mm256_setzero_si256(); 2]; 2];
        for (table, column) in tables.iter().zip(columns) {
            // SAFETY: a table has two times sixteen bytes.
            let (low, high) = unsafe {
                (_mm_loadu_si128(table.as_ptr().cast()), _mm_loadu_si128(table.as_ptr().add(16).cast()))
            };
            let (low, high) = (_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high));
            for (half, [even, odd]) in sums.iter_mut().enumerate() {
                // SAFETY: a column has two times thirty-two bytes.
                let rows = unsafe { _mm256_loadu_si256(column.as_ptr().add(32 * half).cast()) };
                let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(rows, low_bits));
                let high_bits = _mm256_and_si256(_mm256_srli_epi16::<4>(rows), low_bits);
                let both = _mm256_add_epi8(of_low, _mm256_shuffle_epi8(high, high_bits));
                *even = _mm256_add_epi16(*even, _mm256_and_si256(both, low_bytes));
                *odd = _mm256_add_epi16(*odd, _mm256_srli_epi16::<8>(both));
            }
        }
        for (half, [even, odd]) in sums.into_iter().enumerate() {
            let (a, b) = (_mm256_unpacklo_epi16(even, odd), _mm256_unpackhi_epi16(even, odd));
            // SAFETY: a block has two times thirty-two results.
            unsafe {
                let out = out.as_mut_ptr().add(32 * half);
                _mm256_storeu_si256(out.cast(), _mm256_permute2x128_si256::<0x20>(a, b));
                _mm256_storeu_si256(out.add(16).cast(), _mm256_permute2x128_si256::<0x31>(a, b));
            }
        }
    }
}
