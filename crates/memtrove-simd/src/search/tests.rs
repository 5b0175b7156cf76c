use super::*;
use proptest::prelude::*;

/// Lengths around every lane width, and those of real models.
fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![0..200usize, Just(256), Just(384), Just(1536), Just(3072)]
}

fn bytes(length: usize) -> impl Strategy<Value = Vec<i8>> {
    // The extremes are where products overflow if they can.
    prop::collection::vec(prop_oneof![3 => any::<i8>(), 1 => Just(i8::MIN), 1 => Just(i8::MAX)], length)
}

proptest! {
    #[test]
    fn every_set_gives_the_same_dot_products_of_bytes(
        (query, rows) in (lengths(), 0..5usize).prop_flat_map(|(length, rows)| (bytes(length), bytes(length * rows)))
    ) {
        let count = rows.len().checked_div(query.len()).unwrap_or(3);
        let expected: Vec<i32> = (0..count)
            .map(|n| {
                let row = &rows[n * query.len()..][..query.len()];
                query.iter().zip(row).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum()
            })
            .collect();
        for set in Kernels::available() {
            let mut out = vec![-1; count];
            set.dots_i8(&query, &rows, &mut out);
            prop_assert_eq!(&out, &expected, "{}", set.name());
        }
    }

    #[test]
    fn every_set_gives_nearly_the_same_dot_products_of_floats(
        pairs in lengths().prop_flat_map(|length| prop::collection::vec((-1.0..1.0f32, -1.0..1.0f32), length))
    ) {
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let expected: f64 = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
        for set in Kernels::available() {
            let error = (f64::from(set.dot_f32(&a, &b)) - expected).abs();
            prop_assert!(error <= 1e-6 * a.len() as f64, "{}: off by {error}", set.name());
        }
    }

    #[test]
    fn every_set_gives_the_same_sums_from_tables(
        (tables, blocks) in (0..40usize, 0..4usize).prop_flat_map(|(columns, blocks)| (
            prop::collection::vec(0..=MAX_ENTRY, columns * TABLE_BYTES),
            prop::collection::vec(any::<u8>(), columns * blocks * BLOCK_ROWS),
        ))
    ) {
        let columns = tables.len() / TABLE_BYTES;
        let rows = blocks.len().checked_div(columns).unwrap_or(BLOCK_ROWS);
        let expected: Vec<i16> = (0..rows)
            .map(|row| {
                let block = &blocks[row / BLOCK_ROWS * BLOCK_ROWS * columns..];
                (0..columns)
                    .map(|column| {
                        let byte = block[column * BLOCK_ROWS + row % BLOCK_ROWS];
                        let table = &tables[column * TABLE_BYTES..][..TABLE_BYTES];
                        i16::from(table[usize::from(byte & 15)]) + i16::from(table[16 + usize::from(byte >> 4)])
                    })
                    .sum()
            })
            .collect();
        for set in Kernels::available() {
            let mut out = vec![-1; rows];
            set.table_sums(&tables, &blocks, &mut out);
            prop_assert_eq!(&out, &expected, "{}", set.name());
        }
    }
}

#[test]
fn the_best_set_is_the_first() {
    assert_eq!(Kernels::best().name(), Kernels::available()[0].name());
    assert_eq!(Kernels::available().last().map(|set| set.name()), Some("scalar"));
}

#[test]
fn single_products_use_the_best_set() {
    assert_eq!(dot_i8(&[1, -2, 3], &[4, 5, -6]), -24);
    assert_eq!(dot_f32(&[1.0, -2.0], &[0.5, 0.25]), 0.0);
}
