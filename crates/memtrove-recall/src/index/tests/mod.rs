//! Partitions against a model that keeps everything as it was given.

mod cache;
mod limits;
mod model;
mod properties;
mod segment;
