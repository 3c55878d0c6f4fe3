//! Bits of an id and ids per second of packed lists, on one thread. `--json` prints one object;
//! `--quick` measures for a shorter time.

use emb_comm::ids;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

/// Ids of every list.
const IDS: usize = 1 << 17;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flag = |name: &str| std::env::args().any(|argument| argument == name);
    let seconds = if flag("--quick") { 0.05 } else { 0.4 };
    let mut figures = Vec::new();
    for (name, list) in lists() {
        figures.push((name, measure(&list, seconds)?));
    }
    let mut text = String::new();
    if flag("--json") {
        text.push_str("{\"bench\":\"ids\"");
        for (name, Figures { bits, pack, unpack }) in figures {
            write!(text, ",\"{name}\":{{\"bits\":{bits:.3},\"pack_per_second\":{pack:.0},")?;
            write!(text, "\"unpack_per_second\":{unpack:.0}}}")?;
        }
        text.push_str("}\n");
    } else {
        text.push_str("list                      bits an id  pack, million/s  unpack, million/s\n");
        for (name, Figures { bits, pack, unpack }) in figures {
            let (pack, unpack) = (pack / 1e6, unpack / 1e6);
            writeln!(text, "{name:<24}  {bits:>10.2}  {pack:>15.0}  {unpack:>17.0}")?;
        }
    }
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

struct Figures {
    bits: f64,
    /// Ids a second, of the fastest round.
    pack: f64,
    unpack: f64,
}

fn measure(list: &[u64], seconds: f64) -> emb_comm::Result<Figures> {
    let (mut scratch, mut words) = (ids::Scratch::default(), Vec::new());
    let mut out = vec![0; list.len()];
    let (mut pack, mut unpack) = (f64::MAX, f64::MAX);
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < seconds || unpack == f64::MAX {
        words.clear();
        let start = Instant::now();
        if list.is_sorted() {
            ids::pack_sorted(list, &mut words)?;
        } else {
            ids::pack(list, &mut scratch, &mut words)?;
        }
        pack = pack.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        ids::unpack(&words, &mut scratch, &mut out)?;
        unpack = unpack.min(start.elapsed().as_secs_f64());
        assert!(out == list, "ids came back as others");
    }
    let count = list.len() as f64;
    let bits = words.len() as f64 * 64.0 / count;
    Ok(Figures { bits, pack: count / pack, unpack: count / unpack })
}

fn lists() -> Vec<(&'static str, Vec<u64>)> {
    let mut random = Random(1);
    let sorted = |mut ids: Vec<u64>| {
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    let mut uniform = |rows: u64| (0..IDS).map(|_| random.below(rows)).collect::<Vec<_>>();
    let (dense, sparse, hashed) = (uniform(1 << 18), uniform(1 << 30), uniform(u64::MAX));
    let unsorted = [uniform(1 << 18), uniform(u64::MAX)];
    let varied = uniform(21);
    let mut zipf = |rows| (0..IDS).map(|_| random.zipf(rows)).collect::<Vec<_>>();
    let (popular, spread) = (zipf(1_000_000_000), zipf(10_000_000));
    let lengths = (0..IDS as u64).map(|sample| u64::from(sample % 1000 != 7));
    let [unsorted, unsorted_hashed] = unsorted;
    vec![
        ("sorted_dense", sorted(dense)),
        ("sorted_sparse", sorted(sparse)),
        ("sorted_hashed", sorted(hashed)),
        ("sorted_zipf", sorted(popular.clone())),
        ("sorted_zipf_permuted", sorted(spread.iter().map(|id| permute(*id)).collect())),
        ("uniform", unsorted),
        ("uniform_hashed", unsorted_hashed),
        ("zipf", popular),
        ("zipf_permuted", spread.into_iter().map(permute).collect()),
        ("lengths", lengths.collect()),
        ("lengths_varied", varied),
        ("lengths_equal", vec![1; IDS]),
    ]
}

/// A permutation of 10 million rows, by a number that shares no factor with it.
fn permute(id: u64) -> u64 {
    id * 6_180_339_887 % 10_000_000
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % end
    }

    /// A row by Zipf's law of exponent 1, approximately: the inverse of its continuous twin.
    fn zipf(&mut self, rows: u64) -> u64 {
        let unit = self.below(1 << 53) as f64 / (1_u64 << 53) as f64;
        ((rows as f64).powf(unit) as u64).min(rows) - 1
    }
}
