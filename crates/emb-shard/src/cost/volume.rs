//! How many bytes every rank sends and receives over each level: [`Volumes`].

use super::load::{Channel, Load};
use super::shape::{MeshShape, Run};
use super::shard::Loads;

/// Bytes that a rank sends and receives over one level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Traffic {
    pub(super) sent: f64,
    pub(super) received: f64,
    /// Ranks that it talks to.
    pub(super) peers: u32,
}

impl Traffic {
    /// Links carry both directions at once.
    pub(super) fn busiest(self) -> f64 {
        self.sent.max(self.received)
    }

    pub(super) fn mean(self) -> f64 {
        f64::midpoint(self.sent, self.received)
    }
}

/// Sums of loads up to every position, of one scope.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// `[S + 1]`
    ids: Vec<f64>,
    outputs: Vec<f64>,
    gradients: Vec<f64>,
}

/// The loads of a group, ready to be asked for any rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Volumes {
    flat: Sums,
    node: Sums,
    /// Positions by index in their node, then node.
    rail: Sums,
}

/// The ranks among which something travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Flat,
    Node,
    Rail,
}

pub(super) const SCOPES: [Scope; 3] = [Scope::Flat, Scope::Node, Scope::Rail];

/// One scope of one rank over one level: ids go to owners, outputs come from them. Gradients go the
/// way of ids, and are counted the way of outputs: what is sent here is received then.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Volume {
    pub(super) ids: Traffic,
    pub(super) outputs: Traffic,
    pub(super) gradients: Traffic,
}

impl Scope {
    pub(super) fn channel(self, load: &Load) -> Channel {
        match self {
            Self::Flat => load.flat,
            Self::Node => load.node,
            Self::Rail => load.rail,
        }
    }
}

impl Sums {
    fn fill(&mut self, channels: impl Iterator<Item = Channel>) {
        self.ids.clear();
        self.outputs.clear();
        self.gradients.clear();
        self.ids.push(0.0);
        self.outputs.push(0.0);
        self.gradients.push(0.0);
        let (mut ids, mut outputs, mut gradients) = (0.0, 0.0, 0.0);
        for channel in channels {
            ids += channel.ids;
            outputs += channel.outputs;
            gradients += channel.gradients;
            self.ids.push(ids);
            self.outputs.push(outputs);
            self.gradients.push(gradients);
        }
    }

    fn of(&self, run: Run) -> Channel {
        let (start, end) = (run.start as usize, run.end as usize);
        Channel {
            ids: self.ids[end] - self.ids[start],
            outputs: self.outputs[end] - self.outputs[start],
            gradients: self.gradients[end] - self.gradients[start],
        }
    }
}

impl Volumes {
    /// Sums the loads of a group in one scope.
    pub(super) fn fill(&mut self, scope: Scope, shape: &MeshShape, loads: &Loads) {
        let positions = &loads.positions;
        let part = shape.part as usize;
        match scope {
            Scope::Flat => self.flat.fill(positions.iter().map(|load| load.flat)),
            Scope::Node => self.node.fill(positions.iter().map(|load| load.node)),
            Scope::Rail => {
                let by_rail = (0..part).flat_map(|index| positions[index..].iter().step_by(part));
                self.rail.fill(by_rail.map(|load| load.rail));
            }
        }
    }

    /// What the rank at `place` sends and receives over `level` in one scope; `own` is its load.
    pub(super) fn of(
        &self,
        shape: &MeshShape,
        scope: Scope,
        level: usize,
        place: usize,
        own: Channel,
    ) -> Volume {
        let run = |level| run(shape, scope, level, place);
        let (sums, outer) = (self.sums(scope), run(level));
        let all = sums.of(outer);
        let (inside, inner) = match level.checked_sub(1).map(run) {
            Some(run) => (sums.of(run), run.count()),
            None => (own, 1),
        };
        let peers = outer.count() - inner;
        if peers == 0 {
            return Volume::default();
        }
        let many = f64::from(peers);
        // What is left of a sum of which parts were taken away again may be a little below zero.
        let others = Channel {
            ids: (all.ids - inside.ids).max(0.0),
            outputs: (all.outputs - inside.outputs).max(0.0),
            gradients: (all.gradients - inside.gradients).max(0.0),
        };
        Volume {
            ids: Traffic { sent: others.ids, received: own.ids * many, peers },
            outputs: Traffic { sent: own.outputs * many, received: others.outputs, peers },
            gradients: Traffic { sent: own.gradients * many, received: others.gradients, peers },
        }
    }

    /// Bytes that a rank keeps for what it sends and receives in a scope, itself included.
    pub(super) fn buffers(
        &self,
        shape: &MeshShape,
        scope: Scope,
        place: usize,
        own: Channel,
    ) -> f64 {
        let run = run_of_scope(shape, scope, place);
        let (all, ranks) = (self.sums(scope).of(run), f64::from(run.count()));
        // All of it as sent and as received.
        let outputs = all.outputs + own.outputs * ranks;
        let gradients = all.gradients + own.gradients * ranks;
        all.ids + own.ids * ranks + (outputs + gradients)
    }

    fn sums(&self, scope: Scope) -> &Sums {
        match scope {
            Scope::Flat => &self.flat,
            Scope::Node => &self.node,
            Scope::Rail => &self.rail,
        }
    }
}

/// The ranks of a scope that are in one unit of `level` with the rank at `place`.
pub(super) fn run(shape: &MeshShape, scope: Scope, level: usize, place: usize) -> Run {
    let near = shape.run(level, place);
    let whole = run_of_scope(shape, scope, place);
    match scope {
        Scope::Flat => near,
        // A node of the plan lies inside a unit of every level, or the unit inside the node.
        Scope::Node => Run { start: near.start.max(whole.start), end: near.end.min(whole.end) },
        Scope::Rail => {
            let part = shape.part;
            let group = shape.mesh.group_ranks();
            let index = place as u32 % group % part;
            let own = place as u32 % group / part;
            // Nodes with all of their ranks in the unit; the own one always counts.
            let (first, last) = (near.start.div_ceil(part), near.end / part);
            let (first, last) = (first.min(own), last.max(own + 1));
            Run { start: index * shape.parts() + first, end: index * shape.parts() + last }
        }
    }
}

fn run_of_scope(shape: &MeshShape, scope: Scope, place: usize) -> Run {
    let group = shape.mesh.group_ranks();
    let position = place as u32 % group;
    match scope {
        Scope::Flat => Run { start: 0, end: group },
        Scope::Node => {
            let start = position / shape.part * shape.part;
            Run { start, end: start + shape.part }
        }
        Scope::Rail => {
            let start = position % shape.part * shape.parts();
            Run { start, end: start + shape.parts() }
        }
    }
}
