//! Tuning.
use emb_shard::*;
fn env(n: &str, d: f64) -> f64 { std::env::var(n).map_or(d, |t| t.parse().unwrap()) }
fn model() -> StepModel {
    let mut m = Preset::model();
    m.options.memory_efficiency = env("MEM", m.options.memory_efficiency);
    m.options.link_efficiency = env("LINK", m.options.link_efficiency);
    m.options.compute_efficiency = env("COMP", m.options.compute_efficiency);
    m.options.straggling = env("STRAG", m.options.straggling);
    m
}
fn machines(gpus: u32) -> Topology {
    let mut s = TopologySpec::from(Preset::machines(gpus).unwrap());
    if s.levels.len() > 1 { s.levels[1].all_to_all = vec![(env("P0",7.) as u32, env("PP", 1.0)), (1023, env("A2A", 0.4))]; }
    Topology::new(s).unwrap()
}
fn show(name: &str, spec: &WorkloadSpec, p: &Preset, gpus: u32, m: u32, planner: &dyn Planner, keep: bool) -> (f64, Estimate) {
    let w = Workload::new(spec.clone()).unwrap();
    let t = machines(gpus);
    let mut c = p.constraints(m);
    if !keep { c.replicas = None; }
    let task = Task { workload: &w, topology: &t, constraints: c, objective: Objective::StepSeconds };
    let start = std::time::Instant::now();
    let plan = match planner.plan(&task) { Ok(p) => p, Err(e) => { println!("{name} {gpus} M={m} {e}"); return (f64::NAN, Estimate::default()) } };
    let el = start.elapsed().as_secs_f64();
    let e = model().estimate(&plan, &w, &t).unwrap();
    let b = w.batch().global(gpus).unwrap() as f64;
    let s = e.step_seconds();
    let pk = e.fullest().unwrap().peak;
    let kinds: std::collections::BTreeMap<String, u32> = plan.placed().iter().fold(Default::default(), |mut k, (_, t)| { *k.entry(format!("{}/{:?}", t.tiers[0].kind(), t.tiers[0].exchange)).or_insert(0) += 1; k });
    println!("{name:8} {:8} {gpus:5} M={m} step {:.2}ms qps {:.3e} comm {:.3} sync {:.3} imb {:.2} peak {:.1}GB (w {:.1} b {:.1}) plan {el:.1}s", planner.name(), s*1e3, b/s, e.parts.exchange()/s, e.parts.replica_sync/s, e.max_over_mean(), pk.total()/1e9, (pk.weights+pk.state)/1e9, pk.buffers/1e9);
    if std::env::var("V").is_ok() { for (n, x) in e.parts.named() { print!("  {n} {:.3}", x*1e3); } println!("\n  {kinds:?}"); }
    (b / s, e)
}
fn main() {
    let what: Vec<String> = std::env::args().skip(1).collect();
    for w in &what { match w.as_str() {
        "embark" => {
            let mut sums = [0.0; 6];
            let only = std::env::var("ONLY").ok();
            for n in ["dcnv2", "t180", "t200", "t510"] {
                if only.as_ref().is_some_and(|o| o != n) { continue; }
                let mut p = Preset::named(&format!("embark-{n}")).unwrap(); p.spec.dense_model.gradient_bytes = (p.spec.dense_model.gradient_bytes as f64 * env("GRAD", 1.0)) as u64;
                let trw8 = show(n, &p.spec, &p, 8, 1, &TableRowWise, true);
                let trw = show(n, &p.spec, &p, 128, 1, &TableRowWise, true);
                let e = show(n, &p.spec, &p, 128, 1, &EmbarkPlanner::default(), true);
                sums[0] += trw8.1.parts.exchange() / trw8.1.step_seconds();
                sums[1] += trw.1.parts.exchange() / trw.1.step_seconds();
                sums[2] += e.0 / trw.0; sums[4] += (trw.1.parts.exchange() + trw.1.parts.dense_sync) / trw.1.step_seconds();
                if std::env::var("NOLAT").is_err() {
                let l = show(n, &p.spec, &p, 128, 1, &Lattice { model: model(), tries: Some(2000) }, false);
                sums[3] += l.0 / trw.0;
                println!("  lattice {:.3}", l.0 / trw.0);
                }
                println!("  embark {:.3} ", e.0 / trw.0);
            }
            println!("with dense sync {:.3} ", sums[4]/4.); println!("mean share8 {:.3} share128 {:.3} embark {:.3} lattice {:.3}", sums[0]/4., sums[1]/4., sums[2]/4., sums[3]/4.);
        }
        "exfm" => {
            let p = Preset::named("exfm").unwrap();
            let mut s = p.spec.clone();
            s.batch = Batch::PerRank(env("B", 1024.) as u64);
            s.dense = DenseTime::SecondsPerSample(env("DENSE", 1.2e-3));
            s.dense_model.memory_bytes = env("DM", 56e9) as u64;
            let n = env("N", 16.0) as usize;
            let rows = (1.7e12 / (n as f64 * 512.)) as u64;
            s.tables = (0..n).map(|k| TableSpec { pooling_factor: env("POOL", 10.0), ..TableSpec::new(k.to_string(), rows, 128) }).collect();
            let (b, _) = show("exfm", &s, &p, 256, 1, &TorchRec::default(), true);
            for g in [512, 1024, 2048] { let (q, _) = show("exfm1D", &s, &p, g, 1, &TorchRec::default(), true); println!("   ratio {:.3}", q / b); }
            for g in [512, 1024, 2048, 4096, 8192, 16384, 32768] { let (q, _) = show("exfm2D", &s, &p, g, g/256, &TorchRec::default(), true); println!("   ratio {:.3} per gpu {:.3}", q / b, q / b / (g as f64 / 256.)); }
            for (g, m) in [(1024, 8), (2048, 4)] { show("exfm", &s, &p, g, m, &TorchRec::default(), true); }
        }
        "ctr" => {
            let p = Preset::named("ctr-256").unwrap();
            let mut s = p.spec.clone();
            s.batch = Batch::PerRank(env("B", 8192.) as u64);
            s.dense = DenseTime::SecondsPerSample(env("DENSE", 6e-5));
            s.dense_model.memory_bytes = env("DM", 20e9) as u64;
            let n = env("N", 41.0) as usize;
            let rows = (env("S", 8e9) / 512.) as u64;
            s.tables = (0..n).map(|k| TableSpec { pooling_factor: env("POOL", 10.0), features: Some((0..env("K", 6.) as usize).map(|f| format!("{k}/{f}")).collect()), ..TableSpec::new(k.to_string(), rows, 128) }).collect();
            let mut base = (0.0, 0.0);
            for m in [1, 2, 4, 8] { let (q, e) = show("ctr", &s, &p, 256, m, &TorchRec::default(), true); if m == 1 { base = (q, e.fullest().unwrap().peak.total()); } println!("   x {:.3} peak {:.1} % fall {:.1}", q / base.0, e.fullest().unwrap().peak.total() / 80e7, (base.1 - e.fullest().unwrap().peak.total()) / 80e7); }
        }
        _ => {} } }
}
