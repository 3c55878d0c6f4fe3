//! Whole tables anywhere: [`Random`].

use super::given::{Assigned, Given};
use crate::{Exchange, Per, Plan, Planner, Result, Table, Task};

/// Whole tables, each on one of the positions that have room for it, all equally likely.
///
/// What every learned planner is first compared with (`AutoShard`, `DreamShard`, NeuroShard).
/// Large tables are placed first, so that room is seldom missing; where it is, all tables are
/// drawn again, up to 32 times. The same seed gives the same plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Random {
    /// Chooses among plans.
    pub seed: u64,
}

/// Draws of all tables before a task is refused.
const TRIES: u64 = 32;

impl Planner for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn plan(&self, task: &Task<'_>) -> Result<Plan> {
        let given = Given::new(task)?;
        let mut drawn = self.draw(&given, 0);
        for attempt in 1..TRIES {
            if drawn.is_ok() {
                break;
            }
            drawn = self.draw(&given, attempt);
        }
        let whole = |(table, position): (&Table, u32)| Assigned::whole(table.dim(), position);
        let assigned: Vec<Assigned> = given.tables().iter().zip(drawn?).map(whole).collect();
        given.plan(&assigned, Exchange::Unique { per: Per::Rank })
    }
}

impl Random {
    /// A position for every table.
    fn draw(self, given: &Given<'_>, attempt: u64) -> Result<Vec<u32>> {
        let mut loads = given.loads();
        let mut positions = vec![0; given.tables().len()];
        for number in given.order(|_| 0.0) {
            let (mesh, bytes) = (given.mesh, given.bytes(number));
            let has_room = |&position: &u32| loads.room(mesh, position) >= bytes;
            let open: Vec<u32> = (0..mesh.group_ranks()).filter(has_room).collect();
            let drawn = number_at(self.seed, attempt, number as u64);
            positions[number] = if given.pinned(number).is_some() || open.is_empty() {
                // Without room it is refused there, with the numbers.
                given.place_whole(number, 0.0, &mut loads)?
            } else {
                let position = open[(drawn % open.len() as u64) as usize];
                given.put_whole(number, position, 0.0, &mut loads)?;
                position
            };
        }
        Ok(positions)
    }
}

/// A number that looks random, for each counter: `SplitMix64`, whose output function takes any
/// state (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
fn number_at(seed: u64, attempt: u64, number: u64) -> u64 {
    mix(mix(mix(seed) ^ attempt) ^ number)
}

fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
