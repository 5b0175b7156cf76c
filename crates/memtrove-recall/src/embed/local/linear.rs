//! A layer that multiplies by a matrix and adds a vector, in bytes.

use memtrove_simd::transformer::{Columns, Cpu, GROUP, LANES, Range, dequantise, quantise};

/// Weights and biases, a byte per weight. Each output's weights have steps of their own, 127 to each side of zero.
pub(super) struct Linear {
    inputs: usize,
    /// One after the other, each with [`LANES`] outputs; within, as [`Cpu::dot_panel`] wants them.
    panels: Vec<i8>,
    steps: Vec<f32>,
    sums: Vec<f32>,
    bias: Vec<f32>,
}

/// Rows of numbers as bytes, each in steps of its own.
#[derive(Default)]
pub(super) struct Rows {
    bytes: Vec<u8>,
    ranges: Vec<Range>,
}

impl Rows {
    /// Takes the rows in place of those it held.
    pub(super) fn fill(&mut self, cpu: Cpu, numbers: &[f32], width: usize) {
        self.bytes.resize(numbers.len(), 0);
        self.ranges.resize(numbers.len() / width, Range::default());
        quantise(cpu, numbers, width, &mut self.bytes, &mut self.ranges);
    }
}

impl Linear {
    /// From the weights of each output, one output after the other. There are whole panels of outputs, and whole groups of
    /// inputs.
    pub(super) fn new(weights: &[f32], bias: Vec<f32>) -> Self {
        let outputs = bias.len();
        let inputs = weights.len() / outputs;
        let mut linear = Self {
            inputs,
            panels: vec![0; weights.len()],
            steps: Vec::with_capacity(outputs),
            sums: Vec::with_capacity(outputs),
            bias,
        };
        for (output, weights) in weights.chunks_exact(inputs).enumerate() {
            let (step, bytes) = quantise_symmetric(weights);
            let panel = &mut linear.panels[output / LANES * LANES * inputs..][..LANES * inputs];
            let mut sum = 0;
            for (input, byte) in bytes.enumerate() {
                panel[(input / GROUP * LANES + output % LANES) * GROUP + input % GROUP] = byte;
                sum += i32::from(byte);
            }
            linear.steps.push(step);
            linear.sums.push(sum as f32);
        }
        linear
    }

    /// How many numbers a row of its output has.
    pub(super) fn outputs(&self) -> usize {
        self.bias.len()
    }

    /// Computes a row of outputs for each row of inputs.
    pub(super) fn apply(&self, cpu: Cpu, rows: &Rows, outputs: &mut Vec<f32>) {
        let width = self.outputs();
        outputs.resize(rows.ranges.len() * width, 0.0);
        let mut sums = vec![0; rows.ranges.len() * LANES];
        for (index, panel) in self.panels.chunks_exact(LANES * self.inputs).enumerate() {
            cpu.dot_panel(&rows.bytes, self.inputs, panel, &mut sums);
            let first = index * LANES;
            let own = first..first + LANES;
            let columns = Columns {
                steps: &self.steps[own.clone()],
                sums: &self.sums[own.clone()],
                bias: &self.bias[own],
            };
            dequantise(cpu, &sums, &rows.ranges, columns, outputs, first, width);
        }
    }
}

/// Numbers as multiples of a step, none beyond 127, and the step.
pub(super) fn quantise_symmetric(numbers: &[f32]) -> (f32, impl Iterator<Item = i8>) {
    let largest = numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let step = largest / 127.0;
    let steps = if step > 0.0 { 1.0 / step } else { 0.0 };
    (step, numbers.iter().map(move |number| (number * steps).round() as i8))
}
