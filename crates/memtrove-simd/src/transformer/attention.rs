//! Self-attention: every token of a text looks at every other.

use super::floats::{Lanes, exp, per_cpu, reduce};
use super::{Cpu, Isa, LANES};

per_cpu! {
    /// What one text's tokens take from each other. A row of `projected` holds a token's query, key and value, each as wide
    /// as a row of `outputs`; every head has an equal part of them.
    fn attend(projected: &[f32], heads: usize, width: usize, outputs: &mut [f32]) {
        let tokens = outputs.len() / width;
        let blocks = tokens.div_ceil(LANES);
        let head_width = width / heads;
        let scale = 1.0 / (head_width as f32).sqrt();
        // A head's keys in blocks of tokens, a row for each dimension; its values in blocks of dimensions, a row for each
        // token. So both can be summed up side by side. Where there are no more tokens, there are zeros.
        let mut keys = vec![[0.0; LANES]; blocks * head_width];
        let mut values = vec![[0.0; LANES]; blocks * head_width];
        let mut shares = vec![[0.0; LANES]; blocks];
        for head in 0..heads {
            let own = head * head_width..(head + 1) * head_width;
            for (token, row) in projected.chunks_exact(3 * width).enumerate() {
                let block = &mut keys[token / LANES * head_width..];
                for (key, number) in block.iter_mut().zip(&row[width..][own.clone()]) {
                    key[token % LANES] = number * scale;
                }
                for (block, value) in row[2 * width..][own.clone()].as_chunks().0.iter().enumerate() {
                    values[block * blocks * LANES + token] = *value;
                }
            }
            for (row, output) in projected.chunks_exact(3 * width).zip(outputs.chunks_exact_mut(width)) {
                sum_up(&row[own.clone()], &keys, &mut shares);
                softmax(&mut shares, tokens);
                sum_up(shares.as_flattened(), &values, output[own.clone()].as_chunks_mut().0);
            }
        }
    }
}

/// For each block, the sum of its rows by their factors.
#[inline(always)]
fn sum_up(factors: &[f32], blocks: &[Lanes], sums: &mut [Lanes]) {
    for (sums, rows) in sums.iter_mut().zip(blocks.chunks_exact(factors.len())) {
        let mut sum = [0.0; LANES];
        for (factor, row) in factors.iter().zip(rows) {
            for lane in 0..LANES {
                sum[lane] += factor * row[lane];
            }
        }
        *sums = sum;
    }
}

/// Makes shares of the first `tokens` scores that add up to one. The others get next to nothing.
#[inline(always)]
fn softmax(scores: &mut [Lanes], tokens: usize) {
    scores.as_flattened_mut()[tokens..].fill(f32::MIN);
    let largest = reduce(scores, |a, b| if b > a { b } else { a });
    scores.as_flattened_mut().iter_mut().for_each(|score| *score = exp(*score - largest));
    let sum = reduce(scores, |a, b| a + b);
    scores.as_flattened_mut().iter_mut().for_each(|score| *score /= sum);
}
