//! Bytes become seconds: the parts of a step, rank by rank.

use super::classes::Collectives;
use super::dense;
use super::ledger::{Ledger, Placed};
use super::load::{Channel, Load};
use super::options::{BACKWARD_PART, Overlap};
use super::volume::Traffic;
use super::{Estimate, LevelBytes, Parts, PeakBytes, RankEstimate, ReplicaWay};
use crate::{Bytes, Id, Level, Mesh, Rank};

/// What of a rank's traffic is paid for.
#[derive(Clone, Copy)]
pub(super) enum Priced {
    /// The busier direction, at the bandwidth of so many bytes.
    Busiest,
    /// Half of both directions, at the best bandwidth of any number of bytes: bytes may be spread
    /// over the ranks in any other way, and this remains a lower bound of the mean.
    Least,
}

/// Seconds by part of the slowest rank in each.
pub(super) fn parts(ledger: &Ledger<'_>) -> Parts {
    let slowest = ledger
        .ranks()
        .map(|rank| of_rank(ledger, rank, Priced::Busiest))
        .fold(Parts::default(), Parts::max);
    overlapped(ledger, slowest)
}

/// The parts of a step, and the sum of the squares of what the ranks are busy with: among plans of
/// equal steps the one with fewer busy ranks has the better chance of becoming faster.
pub(super) fn parts_and_squares(ledger: &Ledger<'_>) -> (Parts, f64) {
    let (mut slowest, mut squares) = (Parts::default(), 0.0);
    for rank in ledger.ranks() {
        let parts = of_rank(ledger, rank, Priced::Busiest);
        squares += parts.tables() * parts.tables();
        slowest = slowest.max(parts);
    }
    (overlapped(ledger, slowest), squares)
}

/// Parts and bytes at every position of the groups of `mesh`: of the slowest and of the fullest
/// rank there, as [`PeakBytes::table_room`] counts.
pub(super) fn by_position(ledger: &Ledger<'_>, mesh: Mesh, beside: f64) -> Vec<(Parts, f64)> {
    let mut positions = vec![(Parts::default(), 0.0); mesh.group_ranks() as usize];
    for rank in ledger.ranks() {
        let (_, set) = mesh.place_of(Rank::new(rank));
        let at = &mut positions[set.index()];
        at.0 = at.0.max(of_rank(ledger, rank, Priced::Busiest));
        at.1 = f64::max(at.1, peak_of(ledger, rank).table_room(beside));
    }
    positions
}

/// Mean over the ranks of what the tables take, each rank busy with the half of what it sends and
/// receives: no plan of the same tables is faster than the mean of its ranks, and over all ranks as
/// much is sent as is received.
pub(super) fn mean(ledger: &Ledger<'_>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for rank in ledger.ranks() {
        sum += of_rank(ledger, rank, Priced::Least).tables();
        count += 1.0;
    }
    sum / count
}

/// Bytes of the fullest rank.
pub(super) fn peak(ledger: &Ledger<'_>) -> Bytes {
    let peaks = ledger.ranks().map(|rank| peak_of(ledger, rank).total());
    Bytes::new(peaks.fold(0.0, f64::max).ceil() as u64)
}

/// Bytes of the fullest rank, as [`PeakBytes::table_room`] counts.
pub(super) fn table_room(ledger: &Ledger<'_>, beside: f64) -> f64 {
    let ranks = ledger.ranks().map(|rank| peak_of(ledger, rank).table_room(beside));
    ranks.fold(0.0, f64::max)
}

/// Bytes that the mean rank sends outside its node: what the network between nodes carries, by
/// ranks.
pub(super) fn inter_node(ledger: &Ledger<'_>) -> f64 {
    let outside = ledger.ranks().map(|rank| {
        let levels = 1..ledger.topology.levels().len();
        let sent = |level| exchanged(ledger, rank, level).sent + synced(ledger, rank, level).sent;
        (levels.map(sent).sum::<f64>(), 1.0)
    });
    let (bytes, ranks) = outside.fold((0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    bytes / ranks
}

/// Everything, rank by rank.
pub(super) fn estimate(ledger: &Ledger<'_>) -> Estimate {
    let levels = 0..ledger.topology.levels().len();
    let ranks = ledger.ranks().map(|rank| RankEstimate {
        rank,
        parts: of_rank(ledger, rank, Priced::Busiest),
        exchanged: levels.clone().map(|level| exchanged(ledger, rank, level)).collect(),
        synced: levels.clone().map(|level| synced(ledger, rank, level)).collect(),
        dense: dense::bytes(ledger, rank),
        peak: peak_of(ledger, rank),
    });
    let ranks: Vec<RankEstimate> = ranks.collect();
    let slowest = ranks.iter().map(|rank| rank.parts).fold(Parts::default(), Parts::max);
    Estimate { parts: overlapped(ledger, slowest), ranks }
}

/// What is left of parts that run behind the dense model.
fn overlapped(ledger: &Ledger<'_>, parts: Parts) -> Parts {
    match ledger.model.options.overlap {
        Overlap::None => parts,
        Overlap::Pipelined => Parts {
            id_exchange: (parts.id_exchange - parts.dense).max(0.0),
            dense_sync: (parts.dense_sync - BACKWARD_PART * parts.dense).max(0.0),
            ..parts
        },
    }
}

fn of_rank(ledger: &Ledger<'_>, rank: u32, priced: Priced) -> Parts {
    let topology = ledger.topology;
    let options = &ledger.model.options;
    // Whoever computes may be the slowest of all.
    let slowest = options.slowest(topology.world());
    let memory = topology.memory_bandwidth() * options.memory_efficiency / slowest;
    let flops = topology.flops() * options.compute_efficiency;
    let mut parts = Parts {
        dense: slowest * ledger.workload.dense().seconds_of(ledger.samples, flops),
        dense_sync: dense::seconds(ledger, rank),
        ..Parts::default()
    };
    for placed in &ledger.meshes {
        let (place, position) = placed.shape.place(rank);
        let (own, each) = (&placed.loads.positions[position], &placed.loads.each);
        parts.lookup += (own.lookup + each.lookup) / memory;
        parts.update += (own.update + each.update) / memory;
        let [ids, outputs, gradients] = exchange(ledger, placed, place, own, priced);
        parts.id_exchange += ids;
        parts.output_exchange += outputs;
        // Gradients take the way of the outputs back.
        parts.backward_exchange += gradients + statistics(ledger, placed, place, priced);
        parts.replica_sync += sync(ledger, placed, place, own, priced);
    }
    parts
}

/// Seconds of the exchange of ids, of outputs and of their gradients over one mesh.
fn exchange(
    ledger: &Ledger<'_>,
    placed: &Placed,
    place: usize,
    own: &Load,
    priced: Priced,
) -> [f64; 3] {
    let topology = ledger.topology;
    let (mut ids, mut outputs, mut gradients) = (0.0, 0.0, 0.0);
    for (scope, runs) in placed.collectives.used() {
        let channel = scope.channel(own);
        let (mut latency, mut talks) = (0.0, false);
        for level in 0..topology.levels().len() {
            let volume = placed.volumes.of(&placed.shape, scope, level, place, channel);
            ids += seconds(ledger, level, volume.ids, priced);
            outputs += seconds(ledger, level, volume.outputs, priced);
            gradients += seconds(ledger, level, volume.gradients, priced);
            if volume.ids.peers > 0 {
                (latency, talks) = (topology.levels()[level].latency(), true);
            }
        }
        if talks {
            ids += runs.ids * latency;
            outputs += runs.outputs * latency;
            gradients += runs.outputs * latency;
        }
    }
    [ids, outputs, gradients]
}

/// Seconds in which owners of columns tell each other statistics of rows.
fn statistics(ledger: &Ledger<'_>, placed: &Placed, place: usize, priced: Priced) -> f64 {
    let runs = placed.collectives.statistics;
    if runs == 0.0 {
        return 0.0;
    }
    let (mut all, mut latency) = (0.0, 0.0);
    for (number, level) in ledger.topology.levels().iter().enumerate() {
        let traffic = placed.loads.statistics.of(&placed.shape, number, place);
        all += seconds(ledger, number, traffic, priced);
        if traffic.peers > 0 {
            latency = level.latency();
        }
    }
    all + runs * latency
}

fn seconds(ledger: &Ledger<'_>, level: usize, traffic: Traffic, priced: Priced) -> f64 {
    if traffic.peers == 0 {
        return 0.0;
    }
    let level = &ledger.topology.levels()[level];
    let (bytes, bandwidth) = match priced {
        Priced::Busiest => {
            let bytes = traffic.busiest();
            (bytes, level.bandwidth_of(traffic.peers, bytes))
        }
        Priced::Least => (traffic.mean(), level.best_bandwidth(traffic.peers)),
    };
    bytes / (bandwidth * ledger.model.options.link_efficiency)
}

/// Bytes that a rank exchanges over one level: ids, outputs, their gradients, statistics of rows.
fn exchanged(ledger: &Ledger<'_>, rank: u32, level: usize) -> LevelBytes {
    let mut bytes = LevelBytes::default();
    for placed in &ledger.meshes {
        let (place, position) = placed.shape.place(rank);
        for (scope, runs) in placed.collectives.used() {
            let counts = runs.counts * f64::from(ledger.model.options.count_bytes);
            let own = scope.channel(&placed.loads.positions[position]);
            let volume = placed.volumes.of(&placed.shape, scope, level, place, own);
            let counts = counts * f64::from(volume.ids.peers);
            let (outputs, gradients) = (volume.outputs, volume.gradients);
            bytes.sent += volume.ids.sent + (outputs.sent + gradients.received + counts);
            bytes.received += volume.ids.received + (outputs.received + gradients.sent + counts);
        }
        if placed.collectives.statistics > 0.0 {
            let told = placed.loads.statistics.of(&placed.shape, level, place);
            bytes.sent += told.sent;
            bytes.received += told.received;
        }
    }
    bytes
}

/// Bytes that a rank sends to make replicas equal over one level, and as many that it receives.
fn synced(ledger: &Ledger<'_>, rank: u32, level: usize) -> LevelBytes {
    let mut bytes = LevelBytes::default();
    for placed in &ledger.meshes {
        let (place, position) = placed.shape.place(rank);
        let own = &placed.loads.positions[position];
        let way = ledger.model.options.replica_way;
        let moved: f64 = replica_bytes(way, placed, place, level, own).iter().sum();
        bytes.sent += moved;
        bytes.received += moved;
    }
    bytes
}

/// What is summed level by level, and what is told to all other replicas.
fn replica_bytes(
    way: ReplicaWay,
    placed: &Placed,
    place: usize,
    level: usize,
    own: &Load,
) -> [f64; 2] {
    let copies = placed.shape.copies(level, place);
    let summed = way.part(copies, placed.shape.mesh.replicas()) * own.reduced;
    [summed, f64::from(copies.others()) * own.gathered]
}

fn sync(ledger: &Ledger<'_>, placed: &Placed, place: usize, own: &Load, priced: Priced) -> f64 {
    let Collectives { sums, syncs, .. } = placed.collectives;
    if sums == 0.0 {
        return 0.0;
    }
    let way = ledger.model.options.replica_way;
    let mut all = 0.0;
    for (number, level) in ledger.topology.levels().iter().enumerate() {
        let copies = placed.shape.copies(number, place);
        if copies.others() == 0 {
            continue;
        }
        let [summed, told] = replica_bytes(way, placed, place, number, own);
        all += in_messages(ledger, level, summed, syncs * way.messages(copies), priced);
        all += in_messages(ledger, level, told, syncs, priced);
        all += sums * 2.0 * f64::from(copies.units).log2().ceil() * level.latency();
    }
    all
}

/// Seconds of so many bytes in so many messages, their latencies apart.
pub(super) fn in_messages(
    ledger: &Ledger<'_>,
    level: &Level,
    bytes: f64,
    messages: f64,
    priced: Priced,
) -> f64 {
    if bytes <= 0.0 {
        return 0.0;
    }
    let bandwidth = match priced {
        Priced::Busiest => level.bandwidth_at(bytes / messages),
        Priced::Least => level.best_bandwidth_at(),
    };
    bytes / (bandwidth * ledger.model.options.link_efficiency)
}

fn peak_of(ledger: &Ledger<'_>, rank: u32) -> PeakBytes {
    let dense = ledger.workload.dense_model();
    let activations = dense.memory_bytes_per_sample as f64 * ledger.samples;
    let mut peak =
        PeakBytes { dense: dense.memory_bytes as f64 + activations, ..PeakBytes::default() };
    for placed in &ledger.meshes {
        let (place, position) = placed.shape.place(rank);
        let own = &placed.loads.positions[position];
        peak.weights += own.weights;
        peak.state += own.state;
        peak.buffers += own.staged;
        for (scope, _) in placed.collectives.used() {
            let channel: Channel = scope.channel(own);
            peak.buffers += placed.volumes.buffers(&placed.shape, scope, place, channel);
        }
    }
    peak
}
