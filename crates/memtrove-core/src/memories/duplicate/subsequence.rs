//! The longest common subsequence, 64 columns at a time.

/// Longer texts are compared window by window: then the cost grows with their length, not its square. That can only find
/// less in common, never more.
const WINDOW: usize = 4096;

/// How long the longest common subsequence of two sequences of small numbers is; in long sequences, at least that long.
pub(super) fn length(a: &[u32], b: &[u32]) -> usize {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[..a.len() - end], &b[..b.len() - end]);
    let symbols = a.iter().chain(b).max().map_or(0, |symbol| *symbol as usize + 1);
    let mut places = vec![0; symbols];
    let within = |(a, b): (&[u32], &[u32])| window(a, b, &mut places);
    start + end + a.chunks(WINDOW).zip(b.chunks(WINDOW)).map(within).sum::<usize>()
}

/// The bit-parallel way (Crochemore and others, 2001): a zero bit of `row` stands where the length of the common subsequence
/// grows by one. Each block of 64 columns runs down all rows; the carry of its additions goes to the block on its right.
///
/// `places` is scratch, zero before and after: where in the block each symbol stands.
fn window(a: &[u32], b: &[u32], places: &mut [u64]) -> usize {
    let mut carries = vec![false; b.len()];
    let mut length = 0;
    for block in a.chunks(64) {
        for (bit, symbol) in block.iter().enumerate() {
            places[*symbol as usize] |= 1 << bit;
        }
        let mut row = u64::MAX;
        for (symbol, carry) in b.iter().zip(&mut carries) {
            let here = row & places[*symbol as usize];
            let (sum, over) = row.overflowing_add(here);
            let (sum, over_by_carry) = sum.overflowing_add(u64::from(*carry));
            row = sum | (row & !here);
            *carry = over || over_by_carry;
        }
        let used = u64::MAX >> (64 - block.len());
        length += (!row & used).count_ones() as usize;
        block.iter().for_each(|symbol| places[*symbol as usize] = 0);
    }
    length
}
