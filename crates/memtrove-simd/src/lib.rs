//! The inner loops of recall, written for the vector instructions of the CPU at hand: those of a [`search`] and those of a
//! [`transformer`].
//!
//! This crate is the only one with `unsafe` code, and knows only slices of numbers. Its functions are safe: they assert
//! lengths, and a kernel is handed out only where its instructions were detected. Instructions are chosen at run time, so one
//! binary serves every machine.

#![allow(
    unsafe_code,
    reason = "vector loads go through pointers, and kernels are compiled for instructions that only some CPUs have; \
              without them a search is four to ten times slower, a transformer twenty to a hundred times"
)]

pub mod search;
pub mod transformer;
