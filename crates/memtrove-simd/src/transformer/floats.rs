//! What a transformer does besides multiplying matrices: functions over many floats.
//!
//! Each is written once, in loops that the compiler turns into vector instructions, and compiled for each instruction set.
//! How wide the vectors are changes nothing: sums are taken in [`LANES`] parts everywhere, and no product is fused with a sum.

use super::{Cpu, Isa, LANES};

/// Compiles a function for each instruction set, and makes one of it that takes the [`Cpu`] to run on.
macro_rules! per_cpu {
    ($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$doc])*
        pub fn $name(cpu: Cpu, $($argument: $type),*) {
            #[inline(always)]
            fn portable($($argument: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512($($argument: $type),*) {
                portable($($argument),*);
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2($($argument: $type),*) {
                portable($($argument),*);
            }

            match cpu.isa() {
                // SAFETY: `Cpu::ways` saw the instructions.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512Vnni => unsafe { avx512($($argument),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => unsafe { avx2($($argument),*) },
                // Every 64-bit ARM has NEON, so the portable code uses it too.
                #[cfg(target_arch = "aarch64")]
                Isa::Neon => portable($($argument),*),
                Isa::Scalar => portable($($argument),*),
            }
        }
    };
}

pub(super) use per_cpu;

/// What the bytes of a row stand for: 0 is the smallest of its numbers, each one more is a step up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range {
    pub smallest: f32,
    pub step: f32,
}

/// What the weights of a panel's columns stand for.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    /// What a weight of one is.
    pub steps: &'a [f32],
    /// The sum of a column's weights, in steps.
    pub sums: &'a [f32],
    /// What is added to its output.
    pub bias: &'a [f32],
}

per_cpu! {
    /// Writes rows as bytes, each row in steps of its own.
    fn quantise(rows: &[f32], width: usize, bytes: &mut [u8], ranges: &mut [Range]) {
        for ((row, bytes), range) in rows.chunks_exact(width).zip(bytes.chunks_exact_mut(width)).zip(ranges) {
            let smallest = reduce(lanes(row), |a, b| if b < a { b } else { a });
            let largest = reduce(lanes(row), |a, b| if b > a { b } else { a });
            let step = (largest - smallest) / 255.0;
            // A row that is one number all through has no steps: its bytes are 0.
            let steps = if step > 0.0 { 1.0 / step } else { 0.0 };
            for (byte, number) in bytes.iter_mut().zip(row) {
                *byte = round((number - smallest) * steps).bits as u8;
            }
            *range = Range { smallest, step };
        }
    }
}

per_cpu! {
    /// What a panel's sums of products stand for: [`LANES`] outputs of each row, at `first` in rows of `width`.
    fn dequantise(
        sums: &[i32], ranges: &[Range], columns: Columns<'_>, outputs: &mut [f32], first: usize, width: usize,
    ) {
        let (steps, weights, bias) = (&columns.steps[..LANES], &columns.sums[..LANES], &columns.bias[..LANES]);
        for ((sums, range), row) in sums.chunks_exact(LANES).zip(ranges).zip(outputs.chunks_exact_mut(width)) {
            let row = &mut row[first..first + LANES];
            for lane in 0..LANES {
                // An input was `smallest + step * byte`: what is the same for all of a row has been left to here.
                let product = range.step * sums[lane] as f32 + range.smallest * weights[lane];
                row[lane] = steps[lane] * product + bias[lane];
            }
        }
    }
}

per_cpu! {
    /// BERT's activation: each number times the probability that a normally distributed one is below it.
    fn gelu(numbers: &mut [f32]) {
        // The error function after Abramowitz and Stegun, 7.1.28: 3e-7 off at most, and without a branch.
        const TERMS: [f32; 7] =
            [1.0, 0.070_523_08, 0.042_282_01, 0.009_270_527, 0.000_152_014_3, 0.000_276_567_2, 0.000_043_063_8];
        for number in numbers {
            let z = number.abs() * std::f32::consts::FRAC_1_SQRT_2;
            let sum = polynomial(z, TERMS);
            let square = sum * sum;
            let fourth = square * square;
            let eighth = fourth * fourth;
            let erf = 1.0 - 1.0 / (eighth * eighth);
            *number = 0.5 * *number * (1.0 + erf.copysign(*number));
        }
    }
}

per_cpu! {
    /// Brings each row to mean 0 and variance 1, then to the scale and the shift that were learnt.
    fn normalise(rows: &mut [f32], scale: &[f32], shift: &[f32], epsilon: f32) {
        let width = scale.len();
        for row in rows.chunks_exact_mut(width) {
            let mean = reduce(lanes(row), |a, b| a + b) / width as f32;
            row.iter_mut().for_each(|number| *number -= mean);
            let deviation = (squares(lanes(row)) / width as f32 + epsilon).sqrt();
            for ((number, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
                *number = *number / deviation * scale + shift;
            }
        }
    }
}

per_cpu! {
    /// Adds to each number its counterpart.
    fn add(numbers: &mut [f32], more: &[f32]) {
        numbers.iter_mut().zip(more).for_each(|(number, more)| *number += more);
    }
}

/// Numbers that are computed with side by side.
pub(super) type Lanes = [f32; LANES];

/// A row, whose width is a multiple of [`LANES`], in parts of that.
#[inline(always)]
fn lanes(row: &[f32]) -> &[Lanes] {
    row.as_chunks().0
}

/// All numbers combined, lane by lane first.
#[inline(always)]
pub(super) fn reduce(row: &[Lanes], combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut all = row[0];
    for numbers in &row[1..] {
        for lane in 0..LANES {
            all[lane] = combine(all[lane], numbers[lane]);
        }
    }
    all[1..].iter().fold(all[0], |a, b| combine(a, *b))
}

/// The sum of the numbers' squares, lane by lane first.
#[inline(always)]
fn squares(row: &[Lanes]) -> f32 {
    let mut sums = [0.0; LANES];
    for numbers in row {
        for lane in 0..LANES {
            sums[lane] += numbers[lane] * numbers[lane];
        }
    }
    sums.iter().sum()
}

/// e to the power of a number that is not above 88; what is too small to be told from nothing becomes 1e-38.
#[inline(always)]
pub(super) fn exp(number: f32) -> f32 {
    /// The series, its later terms bent so that the largest error is smallest (Cephes).
    const TERMS: [f32; 8] =
        [1.0, 1.0, 0.5, 0.166_666_65, 0.041_665_796, 0.008_333_452, 0.001_398_2, 0.000_198_756_91];
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -0.000_212_194_44;
    let number = if number > -87.0 { number } else { -87.0 };
    let Rounded { number: power, bits } = round(number * std::f32::consts::LOG2_E);
    let rest = number - power * LN_2_HIGH - power * LN_2_LOW;
    // The power of two goes straight into the exponent.
    let two_to_power = f32::from_bits((bits << 23).wrapping_add(1.0_f32.to_bits()));
    polynomial(rest, TERMS) * two_to_power
}

/// A number of less than 2²² rounded to a whole one.
struct Rounded {
    number: f32,
    /// Its lower bits are the whole number's, negative or not.
    bits: u32,
}

/// Rounds by adding a number so large that no place is left behind the point. `f32::round` is a call into a library on CPUs
/// without an instruction for it, and a cast to an integer checks its bounds: neither can be vectorised.
#[inline(always)]
fn round(number: f32) -> Rounded {
    const LARGE: f32 = 12_582_912.0; // 1.5 * 2²³
    let large = number + LARGE;
    Rounded { number: large - LARGE, bits: large.to_bits() }
}

/// The first term, plus `x` times the second, and so on.
#[inline(always)]
fn polynomial<const TERMS: usize>(x: f32, terms: [f32; TERMS]) -> f32 {
    terms.into_iter().rev().reduce(|sum, term| sum * x + term).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs it on every CPU there is, asserts that all agree to the last bit, and gives what comes out.
    fn everywhere(numbers: &[f32], run: impl Fn(Cpu, &mut [f32])) -> Vec<f32> {
        let mut results = Cpu::ways().into_iter().map(|cpu| {
            let mut numbers = numbers.to_vec();
            run(cpu, &mut numbers);
            (cpu, numbers)
        });
        let (_, first) = results.next().unwrap_or_else(|| unreachable!("there is a way"));
        for (cpu, other) in results {
            let bits = |numbers: &[f32]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&other), bits(&first), "{cpu:?}");
        }
        first
    }

    /// By the definition: the integral of the normal distribution up to the number.
    fn exact_gelu(number: f64) -> f64 {
        let step = number / 2000.0;
        let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        number * (0.5 + (0..2000).map(|index| density((f64::from(index) + 0.5) * step) * step).sum::<f64>())
    }

    fn numbers() -> impl Strategy<Value = Vec<f32>> {
        (1usize..6).prop_flat_map(|lanes| prop::collection::vec(-20.0_f32..20.0, lanes * LANES))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn gelu_is_what_its_definition_says(numbers in numbers()) {
            for (result, number) in everywhere(&numbers, gelu).into_iter().zip(numbers) {
                let expected = exact_gelu(f64::from(number));
                prop_assert!((f64::from(result) - expected).abs() < 1e-5, "{number}: {result} instead of {expected}");
            }
        }

        #[test]
        fn exp_is_right_in_all_but_the_last_digit(number in -87.0_f32..88.0) {
            let expected = f64::from(number).exp();
            prop_assert!((f64::from(exp(number)) / expected - 1.0).abs() < 3e-7, "{number}: {}", exp(number));
        }

        #[test]
        fn a_normalised_row_has_mean_0_and_variance_1(numbers in numbers()) {
            let width = numbers.len();
            let (scale, shift) = (vec![1.0; width], vec![0.0; width]);
            let row = everywhere(&numbers, |cpu, row| normalise(cpu, row, &scale, &shift, 1e-12));
            let mean = row.iter().sum::<f32>() / width as f32;
            let variance = row.iter().map(|number| number * number).sum::<f32>() / width as f32;
            prop_assert!(mean.abs() < 1e-4 && (variance - 1.0).abs() < 1e-3, "{mean} {variance}");
        }

        #[test]
        fn a_byte_is_less_than_a_step_off(numbers in numbers()) {
            let width = numbers.len();
            let back = everywhere(&numbers, |cpu, row| {
                let (mut bytes, mut ranges) = (vec![0; width], [Range::default()]);
                quantise(cpu, row, width, &mut bytes, &mut ranges);
                let [Range { smallest, step }] = ranges;
                row.iter_mut().zip(bytes).for_each(|(number, byte)| *number = smallest + step * f32::from(byte));
            });
            let step = (reduce(lanes(&numbers), f32::max) - reduce(lanes(&numbers), f32::min)) / 255.0;
            for (back, number) in back.into_iter().zip(numbers) {
                prop_assert!((back - number).abs() <= 0.501 * step, "{number} became {back} in steps of {step}");
            }
        }
    }

    #[test]
    fn a_row_of_one_number_stays_that() {
        let (mut bytes, mut ranges) = ([9; LANES], [Range::default()]);
        quantise(Cpu::detect(), &[0.7; LANES], LANES, &mut bytes, &mut ranges);
        let [Range { smallest, step }] = ranges;
        assert_eq!((smallest, step, bytes), (0.7, 0.0, [0; LANES]));
    }
}
