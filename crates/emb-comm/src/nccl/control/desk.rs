//! What rank 0 keeps for all ranks: who is about to leave, and where ranks are: [`Desk`].

use super::message::{Late, Left, Message, Place};
use super::missed::{Answer, missed};
use super::{Shared, lock};
use std::time::{Duration, Instant};

/// How long a departure is kept back. Most are those of all ranks of a set, which nobody needs to
/// hear of; of the others, the reason may follow.
const HOLD: Duration = Duration::from_millis(50);

/// How long ranks may take to say where they are. A thread of theirs answers at once, unless the
/// process is stopped; more threads than cores take longer to get there.
const ANSWER: Duration = Duration::from_secs(1);

/// Kept for all.
#[derive(Default)]
pub(super) struct Desk {
    held: Vec<Held>,
    inquiries: Vec<Inquiry>,
    number: u64,
}

/// A departure.
struct Held {
    rank: usize,
    left: Left,
    /// When the others are told; never again once they are.
    due: Option<Instant>,
}

/// A question to all where they are.
struct Inquiry {
    number: u64,
    late: Late,
    answers: Vec<Option<Answer>>,
    until: Instant,
}

impl Desk {
    /// A rank has left a set; whether others are to be told, of this rank at once. Where all have,
    /// nobody is.
    pub(super) fn leave(&mut self, rank: usize, left: Left, world: usize) -> bool {
        let of = |held: &Held| held.left.set == left.set;
        let size = usize::try_from(left.size).unwrap_or(usize::MAX).min(world);
        if self.held.iter().filter(|held| of(held)).count() + 1 >= size {
            self.held.retain(|held| !of(held));
            return false;
        }
        let own = rank == 0;
        let due = (!own).then(|| Instant::now() + HOLD);
        self.held.push(Held { rank, left, due });
        own
    }

    /// Departures that others are to be told of by `now`, or all.
    pub(super) fn overdue(&mut self, now: Option<Instant>) -> Vec<(usize, Left)> {
        let is_due = |due: &mut Instant| now.is_none_or(|now| *due <= now);
        let mut overdue = Vec::new();
        for held in &mut self.held {
            if held.due.take_if(is_due).is_some() {
                overdue.push((held.rank, held.left));
            }
        }
        overdue
    }

    /// When there is something to do without a message.
    pub(super) fn due(&self) -> Option<Instant> {
        let held = self.held.iter().filter_map(|held| held.due);
        held.chain(self.inquiries.iter().map(|inquiry| inquiry.until)).min()
    }
}

impl Shared {
    /// The time of an operation is over on some rank: asks all where they are, unless that is asked
    /// already of this copy.
    pub(super) fn inquire(&self, late: Late) {
        if self.root.has_failed() {
            return;
        }
        let own = Answer::Place(self.place(late.copy));
        let mut desk = lock(&self.desk);
        if desk.inquiries.iter().any(|inquiry| inquiry.late.copy == late.copy) {
            return;
        }
        desk.number += 1;
        let (number, copy) = (desk.number, late.copy);
        let mut answers: Vec<Option<Answer>> = vec![None; self.size];
        answers[0] = Some(own);
        for line in self.lines.iter().filter(|line| !line.is_open()) {
            answers[line.rank] = Some(Answer::Ended);
        }
        let until = Instant::now() + ANSWER;
        desk.inquiries.push(Inquiry { number, late, answers, until });
        drop(desk);
        self.send(0, &Message::Asks { number, copy }, 0);
    }

    /// A rank has said where it is.
    pub(super) fn answered(&self, rank: usize, number: u64, place: Place) {
        let mut desk = lock(&self.desk);
        let asked = desk.inquiries.iter_mut().find(|inquiry| inquiry.number == number);
        if let Some(answer) = asked.and_then(|inquiry| inquiry.answers.get_mut(rank)) {
            *answer = Some(Answer::Place(place));
        }
    }

    /// Ends inquiries that all have answered, or whose time is over, in a failure that names who is
    /// to blame.
    pub(super) fn conclude(&self) {
        let mut desk = lock(&self.desk);
        let now = Instant::now();
        let is_over =
            |inquiry: &Inquiry| now >= inquiry.until || inquiry.answers.iter().all(Option::is_some);
        let Some(over) = desk.inquiries.iter().position(is_over) else { return };
        let inquiry = desk.inquiries.swap_remove(over);
        drop(desk);
        let silent = |answer: Option<Answer>| answer.unwrap_or(Answer::Silent);
        let answers: Vec<Answer> = inquiry.answers.into_iter().map(silent).collect();
        self.fails(missed(&inquiry.late, &answers), 0);
    }

    /// Tells of departures that were kept back long enough.
    pub(super) fn tell_of_departures(&self) {
        let overdue = lock(&self.desk).overdue(Some(Instant::now()));
        for (rank, left) in overdue {
            self.send(rank, &Message::Left(left), rank);
        }
    }
}
