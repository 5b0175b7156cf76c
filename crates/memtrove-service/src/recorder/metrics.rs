//! What is counted of recordings.

const LIVE: &str = "memtrove_recordings_live";
const DISK: &str = "memtrove_recordings_disk_bytes";
const RECORDED: &str = "memtrove_recorded_bytes_total";
const REPLAYS: &str = "memtrove_replays_total";
const UNKNOWN: &str = "memtrove_recording_locator_failures_total";

/// Describes the metrics of recordings.
pub fn announce_metrics() {
    metrics::describe_gauge!(LIVE, "Responses that are being recorded on this node.");
    metrics::describe_gauge!(DISK, "Bytes that recordings take on this node's disk.");
    metrics::describe_counter!(RECORDED, "Bytes that were recorded.");
    metrics::describe_counter!(REPLAYS, "Replays that this node served.");
    metrics::describe_counter!(UNKNOWN, "Times that nobody could be asked which node holds a recording.");
    live(0);
    disk(0);
    recorded(0);
    metrics::counter!(REPLAYS).absolute(0);
    metrics::counter!(UNKNOWN).absolute(0);
}

pub(super) fn live(count: usize) {
    metrics::gauge!(LIVE).set(count as f64);
}

pub(super) fn disk(bytes: u64) {
    metrics::gauge!(DISK).set(bytes as f64);
}

pub(super) fn recorded(bytes: u64) {
    metrics::counter!(RECORDED).increment(bytes);
}

pub(super) fn replayed() {
    metrics::counter!(REPLAYS).increment(1);
}

pub(super) fn locators_failed() {
    metrics::counter!(UNKNOWN).increment(1);
}
