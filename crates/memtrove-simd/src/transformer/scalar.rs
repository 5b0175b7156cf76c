//! For every CPU, and what the others must agree with.

use super::{GROUP, LANES};

pub(super) fn dot_panel(rows: &[u8], depth: usize, panel: &[i8], sums: &mut [i32]) {
    for (row, sums) in rows.chunks_exact(depth).zip(sums.chunks_exact_mut(LANES)) {
        sums.fill(0);
        for (inputs, weights) in row.chunks_exact(GROUP).zip(panel.chunks_exact(GROUP * LANES)) {
            for (sum, weights) in sums.iter_mut().zip(weights.chunks_exact(GROUP)) {
                let products =
                    inputs.iter().zip(weights).map(|(input, weight)| i32::from(*input) * i32::from(*weight));
                *sum += products.sum::<i32>();
            }
        }
    }
}
