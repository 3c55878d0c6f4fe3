//! What a rank does while it waits: it looks out for failures, and finds out whom it waits for.

use super::control::Place;
use super::wire::Wire;
use crate::failure::{Failure, FailureKind, list};
use crate::local::Turn;
use crate::{Error, Host, Result};
use std::time::{Duration, Instant};

/// How long a rank whose time is over waits for the others to say where they are. Those that wait
/// look for questions at least every millisecond; more ranks than cores take longer to get there.
const GRACE: Duration = Duration::from_millis(300);

/// How long a rank waits for the reason why another has gone, or for what it sent before.
const REASON: Duration = Duration::from_millis(100);

/// How long after a failure data may still arrive. Ranks whose headers agree move the data whatever
/// happens elsewhere, so that nobody is left with a message that no one takes.
pub(super) const PATIENCE: Duration = Duration::from_millis(200);

/// How long after a failure headers may still arrive: some ranks may have them all, and move data.
const HEADERS: Duration = Duration::from_millis(20);

/// Since when a rank knows that what it waits for may not come.
#[derive(Default)]
pub(super) struct Since {
    failed: Option<Instant>,
    left: Option<Instant>,
}

/// What a rank waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// That all say what they call.
    Headers,
    /// That data arrive.
    Data,
}

impl Wire {
    /// Called now and then while this rank waits: fails where the world has, or it is too late.
    pub(super) fn watch(
        &mut self,
        turn: &Turn<'_, Host>,
        what: Waiting,
        since: &mut Since,
    ) -> Result<()> {
        self.control.look()?;
        if let Some(failure) = turn.shared().failure() {
            return self.after(&failure, turn, what, &mut since.failed);
        }
        let questions = self.control.questions();
        if questions != self.answered {
            self.answered = questions;
            self.say_where(turn, false);
        }
        if self.control.has_departures() {
            self.look_for_gone(turn, &mut since.left)?;
        }
        if turn.is_late() { self.find_out(turn, what) } else { Ok(()) }
    }

    /// Fails where the world has, unless what this rank waits for is likely to be on its way.
    fn after(
        &mut self,
        failure: &Failure,
        turn: &Turn<'_, Host>,
        what: Waiting,
        failed_since: &mut Option<Instant>,
    ) -> Result<()> {
        let patience = match what {
            Waiting::Data => PATIENCE,
            Waiting::Headers => {
                let missing = self.missing();
                let hopeless = |&peer: &usize| failure.ranks().contains(&turn.member(peer));
                if missing.iter().any(hopeless) { Duration::ZERO } else { HEADERS }
            }
        };
        let since = failed_since.get_or_insert_with(Instant::now);
        if since.elapsed() < patience { Ok(()) } else { turn.still_well() }
    }

    /// Tells all whom this rank waits for.
    fn say_where(&mut self, turn: &Turn<'_, Host>, asks: bool) {
        let Some(&first) = self.missing().first() else { return };
        let rank = turn.member(first);
        turn.waits_for(Some(rank));
        self.control.say_where(turn.operation(), turn.step(), [rank as u64, self.copy], asks);
    }

    /// Fails where this rank waits for one that has left the set, and has long enough.
    fn look_for_gone(
        &mut self,
        turn: &Turn<'_, Host>,
        left_since: &mut Option<Instant>,
    ) -> Result<()> {
        let gone = self.missing().into_iter().find_map(|peer| {
            let rank = turn.member(peer);
            self.control.left_in(rank, self.tag).map(|step| (rank, step))
        });
        let Some((rank, last)) = gone else {
            *left_since = None;
            return Ok(());
        };
        // What it sent before may still arrive, or a reason why it has gone.
        if left_since.get_or_insert_with(Instant::now).elapsed() < REASON {
            return Ok(());
        }
        let (operation, step) = (turn.operation(), turn.step());
        let message = format!(
            "rank {rank} ended in step {last}, without taking part in {operation} of step {step}"
        );
        Err(turn.without(FailureKind::Left, vec![rank], message))
    }

    /// The time is over: asks all where they are, and fails because of those that say nothing or
    /// that others wait for, unless what this rank waits for ends meanwhile.
    fn find_out(&mut self, turn: &Turn<'_, Host>, what: Waiting) -> Result<()> {
        let asked = Instant::now();
        self.say_where(turn, true);
        while asked.elapsed() < GRACE {
            if self.has_ended()? {
                return Ok(());
            }
            self.control.look()?;
            if turn.shared().has_failed() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        let missing = self.missing();
        if missing.is_empty() {
            return Ok(());
        }
        // Others may have asked a little earlier, and said then where they are.
        let since = asked.checked_sub(GRACE).unwrap_or(asked);
        let mut places = self.control.places(since, self.copy);
        Err(missed(turn, what, &missing, &mut places))
    }
}

fn missed(
    turn: &Turn<'_, Host>,
    what: Waiting,
    missing: &[usize],
    places: &mut [Vec<Place>],
) -> Error {
    let is_missing = |peer: &usize| missing.contains(peer);
    let world = |peer: usize| turn.member(peer);
    let mut here: Vec<usize> =
        (0..turn.world()).filter(|peer| !is_missing(peer)).map(world).collect();
    let mut absent: Vec<usize> = missing.iter().copied().map(world).collect();
    here.sort_unstable();
    absent.sort_unstable();
    let (me, operation, step) = (turn.world_rank(), turn.operation(), turn.step());
    places[me] = Place::here(operation, step, absent.first().copied());
    // Those that wait for others are not to blame: those others are.
    let mut culprits: Vec<usize> = absent.iter().map(|&rank| culprit(rank, places)).collect();
    culprits.sort_unstable();
    culprits.dedup();
    let mut named = absent.clone();
    named.extend(culprits.iter().filter(|rank| !absent.contains(rank)));
    let whereabouts: Vec<String> =
        named.into_iter().map(|rank| whereabouts(rank, &places[rank])).collect();
    let among = if turn.world() == places.len() {
        String::new()
    } else {
        let mut members = turn.members().to_vec();
        members.sort_unstable();
        format!(" of {}", list(&members))
    };
    let message = format!(
        "{} did not {} {operation}{among} in step {step} within {:?}, {} did: {}",
        list(&absent),
        if what == Waiting::Headers { "arrive at" } else { "finish" },
        turn.shared().options.timeout,
        list(&here),
        whereabouts.join(", ")
    );
    turn.without(FailureKind::Missing, culprits, message)
}

/// The rank at the end of the chain of waiting that begins with `rank`; in a cycle, itself.
fn culprit(rank: usize, places: &[Vec<Place>]) -> usize {
    let mut last = rank;
    for _ in 0..places.len() {
        match places[last].last().and_then(|place| place.waits_for) {
            None => return last,
            Some(next) if next == rank => return rank,
            Some(next) => last = next,
        }
    }
    rank
}

/// Where a rank is, in words.
fn whereabouts(rank: usize, places: &[Place]) -> String {
    let Some(place) = places.last() else {
        return format!("rank {rank} does not answer: it is busy, hangs or is gone");
    };
    let Place { operation, step, .. } = place;
    let text = format!("rank {rank} is in {operation} in step {step}");
    match place.waits_for {
        Some(other) => format!("{text} and waits for rank {other}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, culprit, whereabouts};
    use crate::Operation;

    fn places(waits_for: &[Option<usize>]) -> Vec<Vec<Place>> {
        let place = |&rank: &Option<usize>| match rank {
            Some(_) => Place::here(Operation::Barrier, 3, rank),
            None => Vec::new(),
        };
        waits_for.iter().map(place).collect()
    }

    #[test]
    fn who_waits_is_not_to_blame_but_whoever_says_nothing_is() {
        let chain = places(&[Some(1), Some(2), Some(3), None]);
        assert_eq!([0, 1, 2, 3].map(|rank| culprit(rank, &chain)), [3; 4]);
        let cycle = places(&[Some(1), Some(0), Some(0)]);
        assert_eq!([0, 1].map(|rank| culprit(rank, &cycle)), [0, 1]);
        assert_eq!(culprit(2, &cycle), 2, "it leads into a cycle");
    }

    #[test]
    fn whereabouts_say_operation_step_and_who_is_waited_for() {
        let [waits, silent] = [Some(1), None].map(|rank| places(&[rank]).remove(0));
        let text = "rank 0 is in barrier in step 3 and waits for rank 1";
        assert_eq!(whereabouts(0, &waits), text);
        assert_eq!(whereabouts(1, &silent), "rank 1 does not answer: it is busy, hangs or is gone");
    }
}
