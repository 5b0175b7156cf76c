#![allow(warnings)]
#[path = "large_scopes/world.rs"]
mod world;
use memloom_core::memories::{Embedding, Memory};
use memloom_service::memories::provider::Write;
use memloom_testkit::postgres::Database;
use std::sync::Arc;
use std::time::Instant;
use world::*;
const M: &str = "openai:suite:256";
fn pct(mut v: Vec<f64>) -> String {
    v.sort_by(f64::total_cmp);
    let n = v.len();
    format!("p50 {:.2} ms p95 {:.2} ms", v[n / 2], v[n * 95 / 100])
}
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn measure() {
    let n: usize = 100_000;
    let database = Database::fresh();
    let mut dice = Dice(9);
    let node = Node::open(database.config(), 20_000).await;
    let topics: Vec<Vec<f32>> = (0..2000).map(|_| dice.direction(256)).collect();
    let words = |dice: &mut Dice, k: usize| {
        (0..k)
            .map(|_| format!("word{}", (dice.roll().powi(4) * 20000.0) as u32))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut made = Vec::new();
    for i in 0..n as u128 {
        let t = &topics[(dice.roll() * 2000.0) as usize];
        let v = dice.near(t, 0.9);
        let mut m = memory(i, &words(&mut dice, 15), v.clone());
        m.embedding = Some(Embedding { model: M.into(), vector: v });
        made.push(m);
    }
    let queries: Vec<(Vec<f32>, String)> = (0..300)
        .map(|i| {
            let m = &made[i * 331];
            let ws: Vec<&str> = m.content.split(' ').collect();
            (
                dice.near(&m.embedding.as_ref().unwrap().vector, 0.5),
                format!("{} {} {}", ws[0], ws[1], words(&mut dice, 2)),
            )
        })
        .collect();
    let t = Instant::now();
    node.pour(made.clone()).await;
    println!("poured in {:?}", t.elapsed());
    let wr = |base: u128, dice: &mut Dice| -> Vec<Memory> {
        (0..200)
            .map(|i| {
                let v = dice.direction(256);
                let mut m = memory(base + i, &words(dice, 15), v.clone());
                m.embedding = Some(Embedding { model: M.into(), vector: v });
                m
            })
            .collect()
    };
    let write = async |name: &str, ms: Vec<Memory>| {
        let mut v = Vec::new();
        for m in ms {
            let t = Instant::now();
            node.write(vec![Write::Insert(Arc::new(m))]).await;
            v.push(t.elapsed().as_secs_f64() * 1e3);
        }
        println!("write {name}: {}", pct(v));
    };
    for round in ["by database"] {
        if round == "by database" {
            let t = Instant::now();
            node.tend().await;
            println!("tended in {:?} {:?}", t.elapsed(), searched(&database));
        }
        write(round, wr(if round == "by nodes" { 1_000_000 } else { 2_000_000 }, &mut dice)).await;
        let t = Instant::now();
        node.nearest(like(M, &queries[0].0, &queries[0].1, 42)).await;
        println!("first search {round}: {:?}", t.elapsed());
        for (name, hybrid, thr) in
            [("hybrid 0.7", true, 0.7), ("semantic 0.7", false, 0.7), ("hybrid 0", true, 0.0)]
        {
            let mut v = Vec::new();
            for (q, w) in &queries {
                let mut query = like(M, q, if hybrid { w } else { "" }, 42);
                query.threshold = thr;
                let t = Instant::now();
                node.nearest(query).await;
                v.push(t.elapsed().as_secs_f64() * 1e3);
            }
            println!("search {round} {name}: {}", pct(v));
        }
    }
    {
        use memloom_store::vectors::*; use memloom_store::*; use memloom_core::recall::terms; use memloom_core::text::Analyzer;
        let an = Analyzer::new("english").unwrap();
        let mut names: std::collections::BTreeMap<&'static str, Vec<f64>> = Default::default();
        for (q, w) in &queries {
            let (q, ts) = (q.clone(), terms::query(&an, w));
            let times = node.store.read("m", move |tx| {
                let mut out = Vec::new();
                let f = VectorFilter { now: 1_800_000_000_000_000, ..Default::default() };
                let t = Instant::now(); let counts = tx.vectors().unwrap().term_counts(1, 100_000, &ts)?; out.push(("1 counts", t.elapsed().as_secs_f64()*1e3));
                let t = Instant::now(); let named = tx.vectors().unwrap().nearest(1, &q, &f, 128, Care::Quick)?; out.push(("2 nearest", t.elapsed().as_secs_f64()*1e3));
                let t = Instant::now(); let seqs: Vec<i64> = named.iter().map(|n| n.seq).collect(); memloom_store::memories::index::at(tx, memloom_store::memories::ScopeNo(1), &seqs)?; out.push(("3 load", t.elapsed().as_secs_f64()*1e3));
                let mut by: Vec<(i64, u64)> = counts.iter().copied().zip(ts.iter().copied()).collect(); by.sort();
                let mut cum = 0; let (rare, common): (Vec<_>, Vec<_>) = by.into_iter().partition(|(c, _)| { cum += c; cum <= 1024 });
                let rare: Vec<u64> = rare.into_iter().filter(|r| r.0 > 0).map(|r| r.1).collect(); let common: Vec<u64> = common.into_iter().map(|r| r.1).collect();
                let worth: Vec<(u64, f64)> = ts.iter().map(|t| (*t, 1.0)).collect();
                if !rare.is_empty() { let t = Instant::now(); tx.vectors().unwrap().with_terms(1, &WordQuery { some: &rare, worth: &worth, vector: Some(&q) }, &f, 128)?; out.push(("4 rare", t.elapsed().as_secs_f64()*1e3)); }
                if !common.is_empty() { let t = Instant::now(); tx.vectors().unwrap().nearest(1, &q, &VectorFilter { terms: &common, ..f }, 64, Care::Brief)?; out.push(("5 common all", t.elapsed().as_secs_f64()*1e3)); }
                if common.len() > 1 { let t = Instant::now(); tx.vectors().unwrap().nearest(1, &q, &VectorFilter { terms: &common[..1], ..f }, 64, Care::Brief)?; out.push(("6 common one", t.elapsed().as_secs_f64()*1e3)); }
                Ok::<_, StoreError>(out)
            }).await.unwrap();
            for (n, t) in times { names.entry(n).or_default().push(t); }
        }
        for (n, v) in names { println!("part {n} ({}): {}", v.len(), pct(v)); }
        println!("{}", database.url()); tokio::time::sleep(std::time::Duration::from_secs(100)).await;
    }
}
