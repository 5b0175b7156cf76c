//! Much at a time, but not too much.

/// The items in their order, in slices that weigh no more than `limit`. What weighs more alone is a slice of its own.
pub(super) fn batches<T>(
    mut items: &[T],
    limit: usize,
    weight: impl Fn(&T) -> usize,
) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let mut total = 0;
        let fitting = items.iter().take_while(|item| {
            total += weight(item);
            total <= limit
        });
        let (batch, rest) = items.split_at_checked(fitting.count().max(1))?;
        items = rest;
        Some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_as_large_as_it_may_be() {
        let check = |weights: &[usize], expected: &[&[usize]]| {
            assert_eq!(batches(weights, 10, |weight| *weight).collect::<Vec<_>>(), expected);
        };
        check(&[], &[]);
        check(&[0], &[&[0]]);
        check(&[4, 6, 0, 1, 9, 1], &[&[4, 6, 0], &[1, 9], &[1]]);
        check(&[0, 11, 12, 3], &[&[0], &[11], &[12], &[3]]);
    }
}
