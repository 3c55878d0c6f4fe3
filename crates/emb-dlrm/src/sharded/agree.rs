//! Whether all ranks were given the same: [`agree`].

use super::error::{Error, Result};
use emb_comm::Collective;
use emb_kernels::{FeatureMap, TableSpec};
use emb_shard::Plan;
use std::fmt::{Result as Written, Write};
use std::hash::{DefaultHasher, Hasher};

/// Checks that all ranks place the same tables by the same plan: ranks of other plans may exchange
/// lists of the same lengths, and look up each other's rows without a notice. One collective.
///
/// # Errors
/// Two ranks that differ; a peer that fails.
pub(super) fn agree<C: Collective>(
    everyone: &mut C,
    plan: &Plan,
    specs: &[TableSpec],
    map: &FeatureMap,
    (rates, seed): (&[f64], u64),
) -> Result<()> {
    let given = (plan.node_ranks(), plan.placed(), specs, map, rates, seed);
    same(everyone, &given, "plans, tables, features, rates or seeds")
}

/// Checks that all ranks were given the same `given`, which errors call `what`. One collective.
///
/// # Errors
/// Two ranks that differ; a peer that fails.
pub(super) fn same<C: Collective>(
    everyone: &mut C,
    given: &impl std::fmt::Debug,
    what: &str,
) -> Result<()> {
    let mut digest = Digest(DefaultHasher::new());
    write!(digest, "{given:?}").expect("invariant: hashing does not fail");
    let world = everyone.world();
    let mut all = vec![0; world];
    everyone.all_gather_v::<u64>(&[digest.0.finish()], &mut all, &vec![1; world])?;
    match all.iter().position(|other| *other != all[0]) {
        None => Ok(()),
        Some(rank) => {
            Err(Error::Mismatch(format!("ranks 0 and {rank} were given different {what}")))
        }
    }
}

/// Hashes a text as it is written, without keeping it.
struct Digest(DefaultHasher);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> Written {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
