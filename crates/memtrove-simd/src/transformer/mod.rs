//! What a transformer computes: sums of products of bytes, where nearly all the time goes ([`Cpu::dot_panel`]), functions over
//! many floats, and [attention](attend).
//!
//! Every CPU gives the same bits: sums of products of integers are exact, and the functions of floats are one text, compiled
//! several times. To add an instruction set: a file with a `dot_panel`, a variant of [`Isa`], an arm wherever the compiler then
//! asks for one.

mod attention;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod floats;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

pub use attention::attend;
pub use floats::{Columns, Range, add, dequantise, gelu, normalise, quantise};

/// How many outputs a panel of weights is wide.
pub const LANES: usize = 16;
/// How many inputs one instruction takes from a row: weights lie in groups of as many.
pub const GROUP: usize = 4;

/// A set of instructions that this CPU has. Only [`Cpu::ways`] makes one: who holds it may execute them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu(Isa);

/// The sets there is code for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Scalar,
}

impl Cpu {
    /// The quickest way.
    pub fn detect() -> Self {
        Self::ways()[0]
    }

    /// Every way this CPU knows, the quickest first.
    pub fn ways() -> Vec<Self> {
        let mut ways = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx512f")
                && has!("avx512bw")
                && has!("avx512dq")
                && has!("avx512vl")
                && has!("avx512vnni")
            {
                ways.push(Self(Isa::Avx512Vnni));
            }
            if has!("avx2") {
                ways.push(Self(Isa::Avx2));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            ways.push(Self(Isa::Neon));
        }
        ways.push(Self(Isa::Scalar));
        ways
    }

    pub(crate) fn isa(self) -> Isa {
        self.0
    }

    /// The product of `rows`, one after the other with `depth` bytes each, and a panel of [`LANES`] columns.
    ///
    /// The panel holds the weight of input `k` and column `c` at `k / GROUP * GROUP * LANES + c * GROUP + k % GROUP`; `sums`
    /// gets [`LANES`] sums per row. `depth` is a multiple of [`GROUP`], and no sum may leave an `i32`: up to 60,000 inputs
    /// cannot.
    #[inline]
    pub fn dot_panel(self, rows: &[u8], depth: usize, panel: &[i8], sums: &mut [i32]) {
        assert!(depth > 0 && depth.is_multiple_of(GROUP), "{depth} inputs are not whole groups of {GROUP}");
        assert_eq!(panel.len(), depth * LANES, "a panel has {LANES} weights for each of {depth} inputs");
        assert!(rows.len().is_multiple_of(depth), "{} bytes are not whole rows of {depth}", rows.len());
        assert_eq!(sums.len(), rows.len() / depth * LANES, "there are {LANES} sums for each row");
        match self.0 {
            // SAFETY: `Cpu::ways` saw the instructions, and the lengths are as the kernels want them.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => unsafe { avx512::dot_panel(rows, depth, panel, sums) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::dot_panel(rows, depth, panel, sums) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { neon::dot_panel(rows, depth, panel, sums) },
            Isa::Scalar => scalar::dot_panel(rows, depth, panel, sums),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(rows: &[u8], depth: usize, panel: &[i8]) -> Vec<i32> {
        let weight = |input: usize, column: usize| {
            i32::from(panel[input / GROUP * GROUP * LANES + column * GROUP + input % GROUP])
        };
        rows.chunks_exact(depth)
            .flat_map(|row| {
                (0..LANES).map(move |column| (0..depth).map(|k| i32::from(row[k]) * weight(k, column)).sum())
            })
            .collect()
    }

    fn check(rows: &[u8], depth: usize, panel: &[i8]) {
        let expected = naive(rows, depth, panel);
        for cpu in Cpu::ways() {
            let mut sums = vec![i32::MAX; expected.len()];
            cpu.dot_panel(rows, depth, panel, &mut sums);
            assert_eq!(sums, expected, "{cpu:?}, {} rows of {depth}", rows.len() / depth);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_instruction_set_computes_the_same_sums(
            (depth, rows, panel) in (1usize..40, 0usize..20).prop_flat_map(|(groups, rows)| {
                let depth = groups * GROUP;
                (
                    Just(depth),
                    prop::collection::vec(any::<u8>(), rows * depth),
                    prop::collection::vec(any::<i8>(), depth * LANES),
                )
            })
        ) {
            check(&rows, depth, &panel);
        }
    }

    #[test]
    fn the_largest_products_do_not_saturate() {
        for weight in [i8::MIN, i8::MAX] {
            check(&[u8::MAX; 3 * 1536], 1536, &[weight; 1536 * LANES]);
        }
    }
}
