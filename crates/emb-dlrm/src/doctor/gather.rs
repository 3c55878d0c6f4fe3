//! What the hosts of all ranks have and lack: [`gather`].

use super::Check;
use crate::calibrate::Places;
use crate::{Error, Result};
use emb_comm::Collective;

/// The checks of every host, with its name, by its first rank. Called by every rank, each with what
/// it found on its host.
///
/// # Errors
/// A collective that fails.
pub fn gather<C: Collective>(
    ranks: &mut C,
    places: &Places,
    own: &[Check],
) -> Result<Vec<(String, Vec<Check>)>> {
    let (world, rank) = (ranks.world(), ranks.rank());
    let first = places.nodes().iter().any(|node| node.start == rank);
    let told = if first { serde_json::to_vec(own) } else { Ok(Vec::new()) };
    let bad = |error: serde_json::Error| Error::Config(format!("checks as JSON: {error}"));
    let told = told.map_err(bad)?;
    let mut lengths = vec![0_u64; world];
    ranks.all_gather_v(&[told.len() as u64], &mut lengths, &vec![1; world])?;
    let counts: Vec<usize> = lengths.iter().map(|&length| length as usize).collect();
    let mut all = vec![0_u8; counts.iter().sum()];
    ranks.all_gather_v(&told, &mut all, &counts)?;
    let mut hosts = Vec::new();
    let mut rest = &all[..];
    for (rank, count) in counts.into_iter().enumerate() {
        let (part, behind) = rest.split_at(count);
        if count > 0 {
            hosts.push((places.host(rank).to_owned(), serde_json::from_slice(part).map_err(bad)?));
        }
        rest = behind;
    }
    Ok(hosts)
}
