//! What a world knows of its ranks, and what it tells them.

use super::super::Error;
use super::super::children::{ended, killed};
use super::super::ending::{End, How};
use super::super::frames::{FINISH, KILL, Keeper, TERMINATE};
use super::super::line::{Event, Silent};
use super::super::meet::list;
use super::super::start::Start;
use super::{Phase, Starter, World};
use std::io::Write;
use std::net::TcpStream;
use std::process::Child;
use std::time::Instant;

/// Lines of `mpirun` that are kept after a failure.
const ASIDE: usize = 100;

/// A rank whose keeper called.
pub(super) struct Live {
    pub(super) orders: TcpStream,
    keeper: Keeper,
    pub(super) silent: Silent,
    since: Instant,
    step: u64,
}

impl World<'_> {
    /// Whether a rank of these has nobody left who would start it.
    pub(super) fn cannot_come(&self, missing: &[usize], children: &mut [Child]) -> bool {
        match &self.launch.start {
            Start::MpiRun(_) => children.iter_mut().all(|child| ended(child).is_some()),
            // Keepers are children themselves, by rank.
            Start::Here => missing.iter().any(|&rank| ended(&mut children[rank]).is_some()),
        }
    }

    /// Ranks that have not been heard of.
    pub(super) fn missing(&self) -> Vec<usize> {
        let known = |rank: &usize| {
            self.ranks[*rank].is_some() || self.ends.iter().any(|end| end.rank == *rank)
        };
        (0..self.launch.world).filter(|rank| !known(rank)).collect()
    }

    /// Ranks by name, with the hosts they are meant for where these are known: "ranks 2 and 3 on b".
    pub(super) fn named(&self, ranks: &[usize]) -> String {
        let hosts = match &self.launch.start {
            Start::MpiRun(run) => run.hosts.as_ref(),
            Start::Here => None,
        };
        let Some(hosts) = hosts else { return list(ranks) };
        let of_host = ranks.chunk_by(|&a, &b| hosts.of(a) == hosts.of(b));
        let named = of_host
            .map(|ranks| format!("{} on {}", list(ranks), hosts.of(ranks[0]).unwrap_or("no host")));
        named.collect::<Vec<_>>().join(", ")
    }

    /// Notices an `mpirun` that ended before its ranks. These end by themselves then, with codes that say
    /// nothing of it, or never.
    pub(super) fn look_at_starter(&mut self, children: &mut [Child], now: Instant) {
        let living = matches!(self.phase, Phase::Running | Phase::Grace(_));
        if !living || self.starter.is_some() || !matches!(self.launch.start, Start::MpiRun(_)) {
            return;
        }
        let Some(code) = children.iter_mut().find_map(ended) else { return };
        let signal = children.iter_mut().find_map(killed);
        let code = u8::try_from(code.max(1)).unwrap_or(1);
        self.starter = Some(Starter { code, killed: signal.is_some() });
        if let Some(signal) = signal {
            self.voice.note(&format!("mpirun was killed by signal {signal}"));
        }
        if self.phase == Phase::Running {
            self.phase = Phase::Grace(now + self.launch.grace);
        }
    }

    pub(super) fn take(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Came { keeper, orders, silent } => self.welcome(keeper, orders, silent),
            Event::Other(keeper) => {
                return Err(Error::Start(format!(
                    "rank {} on {} runs emb {}, this is emb {}",
                    keeper.rank,
                    keeper.host,
                    keeper.version,
                    env!("CARGO_PKG_VERSION")
                )));
            }
            Event::Beat { rank, step } => {
                if let Some(Some(live)) = self.ranks.get_mut(rank) {
                    live.step = step;
                }
            }
            Event::Said(line) if self.phase == Phase::Running => self.voice.aside(&line),
            Event::Said(line) if self.aside.len() < ASIDE => self.aside.push(line),
            Event::Said(_) => {}
            Event::Ended(end) => self.end(end),
            Event::Lost { rank } => self.lose(rank),
        }
        Ok(())
    }

    fn welcome(&mut self, keeper: Keeper, mut orders: TcpStream, silent: Silent) {
        let place = self.ranks.get(keeper.rank);
        if keeper.world != self.launch.world || !matches!(place, Some(None)) {
            self.voice.note(&format!(
                "a process of {} says that it is rank {} of {}: it is none of {} and is ended",
                keeper.host, keeper.rank, keeper.world, self.launch.world
            ));
            drop(orders.write_all(&[KILL, FINISH]));
            return;
        }
        // Who comes while all are ended is ended too.
        match self.phase {
            Phase::Running | Phase::Grace(_) => {}
            Phase::Told(_) | Phase::Killed(_) => drop(orders.write_all(&[TERMINATE])),
        }
        let rank = keeper.rank;
        let since = Instant::now();
        self.ranks[rank] = Some(Live { orders, keeper, silent, since, step: 0 });
    }

    fn end(&mut self, end: End) {
        if self.ends.iter().any(|known| known.rank == end.rank) {
            return;
        }
        let bad = !end.is_good();
        if bad && end.is_news() && self.told_of.is_none() && self.phase == Phase::Running {
            self.told_of = Some(end.rank);
            self.voice.note(&end.to_string());
        }
        self.ends.push(end);
        if bad && self.phase == Phase::Running {
            self.phase = Phase::Grace(Instant::now() + self.launch.grace);
        }
    }

    /// A connection broke: after the end of its rank that is in order.
    pub(super) fn lose(&mut self, rank: usize) {
        let Some(Some(live)) = self.ranks.get(rank) else { return };
        let Keeper { host, pid, .. } = live.keeper.clone();
        let seconds = live.since.elapsed().as_secs_f64();
        let told = matches!(self.phase, Phase::Told(_) | Phase::Killed(_));
        let (step, missing) = (live.step, Vec::new());
        let (how, orphaned) = (How::Gone, false);
        self.end(End { rank, host, pid, how, seconds, step, missing, told, orphaned });
    }

    pub(super) fn has_ended(&self, rank: usize) -> bool {
        self.ends.iter().any(|end| end.rank == rank)
    }

    /// Gives an order to those that have not ended.
    pub(super) fn tell(&mut self, order: u8) {
        for rank in 0..self.ranks.len() {
            if !self.has_ended(rank)
                && let Some(live) = &mut self.ranks[rank]
            {
                drop(live.orders.write_all(&[order]));
            }
        }
    }

    /// Gives an order to all.
    pub(super) fn order(&mut self, order: u8) {
        for live in self.ranks.iter_mut().flatten() {
            drop(live.orders.write_all(&[order]));
        }
    }
}
