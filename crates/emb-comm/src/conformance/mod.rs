//! The suite that every [`Collective`] passes, for transports of this crate and from outside.
//!
//! A [`Check`] runs on every rank of a world at the same time and panics where what arrives is
//! wrong. Those of [`checks`] leave the world usable and may follow each other; each of
//! [`refusals`] needs a new world of at least two ranks, because it makes it fail. A transport over
//! other memory than slices runs the same checks as [`Placed`].
//!
//! ```
//! use emb_comm::{Error, Local, Options, conformance, run};
//!
//! run(2, &Options::default(), |rank| {
//!     for check in conformance::checks::<Local>() {
//!         check.run(rank)?;
//!     }
//!     Ok::<_, Error>(())
//! })?;
//! # Ok::<(), emb_comm::Failure>(())
//! ```

pub mod contract;
mod exchanges;
mod groups;
mod placed;
mod reductions;
mod refusals;

pub use placed::{Memory, Placed};

use crate::{Collective, Result};
use std::fmt;

/// A claim about a transport.
pub struct Check<C> {
    name: &'static str,
    run: fn(&mut C) -> Result<()>,
}

impl<C> Check<C> {
    /// What is claimed.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Runs the check. Called on every rank.
    ///
    /// # Errors
    /// An operation that fails where it must not.
    ///
    /// # Panics
    /// Contents, or an error, that are not as claimed.
    pub fn run(&self, rank: &mut C) -> Result<()> {
        (self.run)(rank)
    }
}

impl<C> fmt::Debug for Check<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Check").field(&self.name).finish()
    }
}

/// Lists functions as checks of their names.
macro_rules! list {
    ($($path:path),* $(,)?) => {
        vec![$(Check { name: stringify!($path), run: $path }),*]
    };
}

/// The same for functions that end in a failed world, which is what they claim.
macro_rules! fails {
    ($($path:path),* $(,)?) => {
        vec![$(Check {
            name: stringify!($path),
            run: |rank| {
                $path(rank);
                Ok(())
            },
        }),*]
    };
}

/// What every transport does, in a world of any number of ranks.
pub fn checks<C: Collective>() -> Vec<Check<C>> {
    list![
        exchanges::all_to_all_moves_every_element_once,
        exchanges::u27_silent_ranks_and_zero_matrices,
        exchanges::u27_random_counts_half_of_them_zero,
        exchanges::u25_counts_are_exchanged_in_64_bits,
        exchanges::all_gather_orders_by_rank,
        exchanges::broadcast_from_every_root,
        exchanges::every_element_type_travels,
        reductions::sums_are_those_in_rank_order_on_every_rank,
        reductions::sums_of_16_bits_are_rounded_once_an_addition,
        reductions::sums_are_near_the_f64_oracle,
        reductions::repeated_sums_have_the_same_bits,
        reductions::integers_sum_exactly,
        reductions::maximum_and_not_a_number,
        reductions::reduce_scatter_has_the_bits_of_all_reduce,
        groups::u29_pairs_made_together_do_not_mix,
        groups::u29_left_out_ranks_go_on,
        groups::u29_order_of_the_list_is_the_order_of_ranks,
        groups::u29_impossible_lists_are_refused_on_every_rank,
        groups::u29_a_hundred_groups_in_turn,
        groups::split_orders_by_key,
        groups::groups_of_two_dimensions,
        groups::a_duplicate_works_at_the_same_time,
    ]
}

/// What every transport refuses, naming who differs. Each needs a world of its own.
pub fn refusals<C: Collective>() -> Vec<Check<C>> {
    fails![
        refusals::another_operation,
        refusals::another_element_type,
        refusals::another_length,
        refusals::another_root,
        refusals::another_step,
        refusals::other_counts,
        refusals::other_lists_of_groups,
        refusals::wrong_arguments_of_one_rank,
        refusals::one_rank_gives_up,
    ]
}

/// Numbers that look random and are the same on every rank (`splitmix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A count that is zero half of the time.
    fn count(&mut self) -> usize {
        if self.below(2) == 0 { 0 } else { self.below(40) }
    }

    /// Between -1 and 1, of very different magnitudes, so that the order of a sum shows.
    fn value(&mut self) -> f64 {
        let unit = self.next() as f64 / u64::MAX as f64 * 2.0 - 1.0;
        unit * 10f64.powi(-(self.below(6) as i32))
    }
}
