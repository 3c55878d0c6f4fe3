//! Who reaches whom how fast: [`Pairs`].

use crate::Result;
use crate::calibrate::{Places, Progress, Sampler, median};
use emb_comm::Collective;
use serde::Serialize;
use std::time::Duration;

/// Most ranks of which all pairs are measured.
const MOST_RANKS: usize = 16;

/// Bytes that two ranks send to each other.
const BYTES: usize = 1 << 20;

/// Bytes a second between two ranks, each way, while the others are idle.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pairs {
    /// `[world][world]`, 0 for a rank with itself; empty where there are too many ranks.
    pub rates: Vec<Vec<f64>>,
    /// The median of two ranks of one host.
    pub same_host: Option<f64>,
    /// The median of two ranks of different hosts.
    pub other_host: Option<f64>,
}

pub(super) fn measure<C: Collective>(
    ranks: &mut C,
    places: &Places,
    budget: Duration,
    progress: Progress<'_>,
) -> Result<Pairs> {
    let (world, rank) = (ranks.world(), ranks.rank());
    if !(2..=MOST_RANKS).contains(&world) {
        return Ok(Pairs::default());
    }
    let pairs: Vec<(usize, usize)> =
        (0..world).flat_map(|a| (a + 1..world).map(move |b| (a, b))).collect();
    let (send, mut recv) = (vec![1_u8; BYTES], vec![0_u8; BYTES]);
    let mut counts = vec![0; world];
    let told = |done| progress("pairs of ranks", done);
    let sampler = Sampler::run(ranks, pairs.len(), budget, &told, |ranks, at| {
        let (a, b) = pairs[at];
        counts.fill(0);
        let other = if rank == a { Some(b) } else { (rank == b).then_some(a) };
        let bytes = other.map_or(0, |other| {
            counts[other] = BYTES;
            BYTES
        });
        ranks.all_to_all_v(&send[..bytes], &counts, &mut recv[..bytes], &counts)?;
        Ok(())
    })?;
    let mut rates = vec![vec![0.0; world]; world];
    let (mut same, mut other) = (Vec::new(), Vec::new());
    for (&(a, b), seconds) in pairs.iter().zip(sampler.medians()) {
        let rate = BYTES as f64 / seconds;
        (rates[a][b], rates[b][a]) = (rate, rate);
        let kind = if places.node_of(a) == places.node_of(b) { &mut same } else { &mut other };
        kind.push(rate);
    }
    let of = |rates: &[f64]| (!rates.is_empty()).then(|| median(rates));
    Ok(Pairs { rates, same_host: of(&same), other_host: of(&other) })
}

impl Pairs {
    /// Ranks that reach all others of their host, or of other hosts, at less than 60 % of the typical
    /// rate of such pairs, each in words.
    pub(super) fn slow(&self, places: &Places) -> Vec<String> {
        let mut slow = Vec::new();
        for (kind, typical) in [(true, self.same_host), (false, self.other_host)] {
            let Some(typical) = typical else { continue };
            for (rank, rates) in self.rates.iter().enumerate() {
                let of_kind = |&(other, _): &(usize, &f64)| {
                    other != rank && (places.node_of(other) == places.node_of(rank)) == kind
                };
                let own: Vec<f64> =
                    rates.iter().enumerate().filter(of_kind).map(|(_, &rate)| rate).collect();
                // With one pair there is nothing to compare with.
                if own.len() > 1 && median(&own) < 0.6 * typical {
                    slow.push(format!(
                        "rank {rank} on {} reaches {} at {:.2} GB/s, others do at {:.2} GB/s",
                        places.host(rank),
                        if kind { "its host's ranks" } else { "other hosts" },
                        median(&own) / 1e9,
                        typical / 1e9
                    ));
                }
            }
        }
        slow
    }
}
