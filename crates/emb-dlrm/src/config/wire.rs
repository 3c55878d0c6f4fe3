//! Formats of what ranks tell each other, as a person writes them: [`WireOptions`].

use super::nearest::explain;
use crate::sharded::Wires;
use crate::{Error, Result};
use emb_comm::Wire;
use emb_shard::{Plan, ReplicaSync};
#[cfg(feature = "data")]
use emb_shard::{ValueType, WorkloadSpec};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One format for rows and gradients (`f16`), or some by what they are for
/// (`forward=bf16,backward=int8`); what is left out is `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WireOptions {
    /// In the order of [`KEYS`].
    formats: [Option<Wire>; 4],
}

/// What there is a format for: rows and sums to the samples, their gradients to the owners, weights
/// and gradients between replicas, dense gradients.
const KEYS: [&str; 4] = ["forward", "backward", "sync", "dense"];

impl WireOptions {
    /// The formats of a run whose steps have `batch` samples.
    ///
    /// # Errors
    /// A format that can't be had for what it is for.
    pub fn wires(self, batch: usize) -> Result<Wires> {
        let [forward, backward, sync, dense] = self.formats.map(Option::unwrap_or_default);
        let wires = Wires { forward, backward, sync, dense, batch };
        match wires.refusal() {
            Some(why) => Err(Error::Config(format!("--wire {why}"))),
            None => Ok(wires),
        }
    }

    /// Refuses formats that nothing of the plan travels in.
    pub(super) fn refuse_unused(self, plan: &Plan) -> Result<()> {
        let tiers = || plan.placed().iter().flat_map(|(_, placed)| &placed.tiers);
        // What would be sent as it is anyway is refused nowhere.
        let [forward, backward, sync, _] =
            self.formats.map(|format| format.filter(|wire| *wire != Wire::F32));
        let synced = |sync| !matches!(sync, ReplicaSync::None);
        let (what, why) = if sync.is_some() && !tiers().any(|tier| synced(tier.sync)) {
            ("sync", "no table has replicas")
        } else if forward.or(backward).is_some() && tiers().all(|tier| tier.mesh.group_ranks() == 1)
        {
            let what = if forward.is_some() { "forward" } else { "backward" };
            let why = "every rank has every table, nothing is exchanged: leave it out, or give \
                       another --plan, as row-wise";
            (what, why)
        } else {
            return Ok(());
        };
        Err(Error::Config(format!("--wire {what}={} has no effect: {why}", self.of(what))))
    }

    /// Says it to the cost model; dense gradients of the workload are `f32`.
    #[cfg(feature = "data")]
    pub(crate) fn price(self, spec: &mut WorkloadSpec) {
        let [forward, backward, sync, dense] =
            self.formats.map(|wire| value_type(wire.unwrap_or_default()));
        (spec.outputs, spec.gradients, spec.synced) = (forward, Some(backward), Some(sync));
        let parameters = spec.dense_model.gradient_bytes / ValueType::F32.row_bytes(1);
        if dense != ValueType::F32 {
            spec.dense_model.gradient_bytes = parameters * dense.row_bytes(1);
        }
    }

    /// Whether dense gradients have a format of their own.
    #[cfg(feature = "cli")]
    pub(crate) fn says_dense(self) -> bool {
        self.formats[3].is_some()
    }

    fn of(self, key: &str) -> Wire {
        let at = KEYS.iter().position(|known| *known == key);
        at.and_then(|at| self.formats[at]).unwrap_or_default()
    }
}

#[cfg(feature = "data")]
fn value_type(wire: Wire) -> ValueType {
    match wire {
        Wire::F32 => ValueType::F32,
        Wire::F16 => ValueType::F16,
        Wire::Bf16 => ValueType::Bf16,
        Wire::Int8Rowwise => ValueType::Int8Rowwise,
        Wire::Fp8E4m3 => ValueType::Fp8E4m3,
        Wire::Fp8E5m2 => ValueType::Fp8E5m2,
        Wire::Int4 => ValueType::Int4,
    }
}

fn format(word: &str) -> Result<Wire, String> {
    word.parse().map_err(|_| explain(word, &Wire::NAMES))
}

impl FromStr for WireOptions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut formats = [None; 4];
        for part in text.split(',') {
            let (slots, word) = match part.split_once('=') {
                None => (0..2, part.trim()),
                Some((key, word)) => {
                    let (key, word) = (key.trim(), word.trim());
                    let known = KEYS.iter().position(|known| *known == key);
                    let at = known.ok_or_else(|| explain(key, &KEYS))?;
                    (at..at + 1, word)
                }
            };
            let wire = format(word)?;
            for slot in slots {
                if let Some(other) = formats[slot].replace(wire) {
                    return Err(format!("{} is {other} and {wire}: give one", KEYS[slot]));
                }
            }
        }
        Ok(Self { formats })
    }
}

impl fmt::Display for WireOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (key, wire) in KEYS.iter().zip(self.formats) {
            let Some(wire) = wire else { continue };
            write!(f, "{}{key}={wire}", if first { "" } else { "," })?;
            first = false;
        }
        Ok(())
    }
}

impl TryFrom<String> for WireOptions {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|error| format!("wire {text:?}: {error}"))
    }
}

impl From<WireOptions> for String {
    fn from(options: WireOptions) -> Self {
        options.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<WireOptions>().expect_err("no format")
    }

    #[test]
    fn one_word_is_for_both_directions_and_others_are_by_name() {
        let read = |text: &str| text.parse::<WireOptions>().map(|options| options.to_string());
        assert_eq!(read("f16"), Ok("forward=f16,backward=f16".into()));
        assert_eq!(read("dense=bf16,forward=int4"), Ok("forward=int4,dense=bf16".into()));
        assert_eq!(
            read("fp8-e4m3,sync=f16"),
            Ok("forward=fp8-e4m3,backward=fp8-e4m3,sync=f16".into())
        );
        assert_eq!(read(" forward = int4 , dense=bf16"), Ok("forward=int4,dense=bf16".into()));
    }

    #[test]
    fn other_words_are_refused_with_the_nearest() {
        assert!(refused("fp16").contains("did you mean \"f16\"?"), "{}", refused("fp16"));
        assert!(refused("fp8-e4m2").contains("did you mean \"fp8-e4m3\"?"));
        assert!(refused("fp8").contains("did you mean \"fp8-e4m3\"?"));
        assert!(refused("f61").contains("did you mean \"f16\"?"));
        assert!(refused("BF16").contains("did you mean \"bf16\"?"));
        assert!(refused("int8-rowwise").contains("did you mean \"int8\"?"));
        assert!(refused("foward=f16").contains("did you mean \"forward\"?"));
        assert_eq!(refused("f16,backward=int8"), "backward is f16 and int8: give one");
        let wires = "sync=int8".parse::<WireOptions>().expect("a format").wires(128);
        let error = wires.expect_err("replicas would differ from what they were").to_string();
        assert!(error.starts_with("--wire sync=int8: weights that"), "{error}");
        assert!(error.ends_with("one of f32, f16, bf16"), "{error}");
    }
}
