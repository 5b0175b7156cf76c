//! The crates know only what they are meant to know. `ARCHITECTURE.md` says why; this says so in red.

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};

fn metadata() -> Metadata {
    MetadataCommand::new().manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).exec().unwrap()
}

/// The direct dependencies of each workspace crate, without those of its tests.
fn direct(metadata: &Metadata) -> BTreeMap<String, BTreeSet<String>> {
    metadata
        .workspace_packages()
        .iter()
        .map(|package| {
            let names = package
                .dependencies
                .iter()
                .filter(|d| d.kind == DependencyKind::Normal)
                .map(|d| d.name.clone())
                .collect();
            (package.name.to_string(), names)
        })
        .collect()
}

/// Everything a crate pulls in, directly or not.
fn everything_below(metadata: &Metadata, name: &str) -> BTreeSet<String> {
    let resolve = metadata.resolve.as_ref().unwrap();
    let name_of = |id: &cargo_metadata::PackageId| metadata[id].name.to_string();
    let mut seen = BTreeSet::new();
    let mut open: Vec<_> = metadata
        .workspace_packages()
        .iter()
        .filter(|p| p.name.as_str() == name)
        .map(|p| p.id.clone())
        .collect();
    while let Some(id) = open.pop() {
        let node = resolve.nodes.iter().find(|node| node.id == id).unwrap();
        for dependency in &node.deps {
            let normal = dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
            if normal && seen.insert(name_of(&dependency.pkg)) {
                open.push(dependency.pkg.clone());
            }
        }
    }
    seen
}

#[test]
fn the_domain_knows_no_transport_no_driver_and_no_runtime() {
    let below = everything_below(&metadata(), "memtrove-core");
    for forbidden in ["axum", "hyper", "http", "tonic", "rusqlite", "postgres", "tokio", "reqwest", "tracing"]
    {
        assert!(!below.contains(forbidden), "memtrove-core must not depend on {forbidden}");
    }
}

#[test]
fn the_store_knows_no_transport_and_no_use_case() {
    let below = everything_below(&metadata(), "memtrove-store");
    for forbidden in
        ["axum", "hyper", "http", "tonic", "reqwest", "memtrove-service", "memtrove-wire", "memtrove-server"]
    {
        assert!(!below.contains(forbidden), "memtrove-store must not depend on {forbidden}");
    }
}

#[test]
fn the_use_cases_know_no_transport() {
    let metadata = metadata();
    let below = everything_below(&metadata, "memtrove-service");
    for forbidden in ["axum", "tonic", "utoipa", "memtrove-wire", "memtrove-server"] {
        assert!(!below.contains(forbidden), "memtrove-service must not depend on {forbidden}");
    }
    // Below it an embedder asks a server over HTTP; that is a driver, which use cases do not name.
    let direct_of = |name: &str| direct(&metadata)[name].clone();
    for forbidden in ["hyper", "http", "reqwest"] {
        assert!(
            !direct_of("memtrove-service").contains(forbidden),
            "memtrove-service must not name {forbidden}"
        );
    }
    assert!(
        !direct(&metadata)["memtrove-service"].contains("rusqlite"),
        "SQL and drivers stay in memtrove-store"
    );
}

#[test]
fn the_wire_types_could_be_used_by_a_client() {
    let below = everything_below(&metadata(), "memtrove-wire");
    for forbidden in ["axum", "tokio", "rusqlite", "memtrove-store", "memtrove-service", "memtrove-server"] {
        assert!(!below.contains(forbidden), "memtrove-wire must not depend on {forbidden}");
    }
}

#[test]
fn what_agents_link_against_knows_nothing_of_the_server() {
    let metadata = metadata();
    for name in ["memtrove-client", "memtrove-agent"] {
        let below = everything_below(&metadata, name);
        for forbidden in ["axum", "rusqlite", "memtrove-store", "memtrove-service", "memtrove-server"] {
            assert!(!below.contains(forbidden), "{name} must not depend on {forbidden}");
        }
    }
}

#[test]
fn drivers_are_known_to_the_store_alone() {
    // The testkit and the benchmark look at what is stored from outside.
    let may = ["memtrove-store", "memtrove-bench", "memtrove-testkit"];
    for (name, dependencies) in direct(&metadata()) {
        for driver in ["rusqlite", "tokio-postgres"] {
            let through = !dependencies.contains(driver) || may.contains(&name.as_str());
            assert!(through, "{name} must go through memtrove-store and not use {driver}");
        }
    }
}

#[test]
fn no_crate_of_the_product_depends_on_the_testkit() {
    for (name, dependencies) in direct(&metadata()) {
        assert!(!dependencies.contains("memtrove-testkit"), "{name} must use memtrove-testkit in tests only");
    }
}
