//! Jumps are found, and two made-up hosts make two levels.

use super::*;
use crate::calibrate::{Machine, from_times};

#[test]
fn a_jump_is_looked_for_where_it_is() {
    let line = |bytes: usize| (bytes, 1e-6 + bytes as f64 * 1e-10);
    let mut points: Vec<(usize, f64)> = (4..20).map(|power| line(1 << power)).collect();
    assert!(jumps(&points).is_empty(), "a line has no jumps");
    for point in points.iter_mut().filter(|point| point.0 >= 4096) {
        point.1 += 3e-6;
    }
    assert_eq!(jumps(&points), [[2048, 2048 + 819, 4096]]);
}

#[test]
fn ranks_of_two_hosts_make_two_levels() {
    let names = ["a", "a", "b", "b"].map(str::to_owned);
    let places = Places::new(names.to_vec()).expect("neighbours");
    let budget = Duration::from_millis(40);
    let times = emb_comm::run(4, &emb_comm::Options::default(), |ranks| {
        measure(ranks, &places, budget, &|_, _| ())
    });
    let times = times.expect("an exchange");
    assert!(times.windows(2).all(|pair| pair[0] == pair[1]), "all ranks have the same");
    let (node, cluster) = (&times[0].levels[0], &times[0].levels[1]);
    assert_eq!((node.name.as_str(), node.peers), ("node", 1));
    assert_eq!((cluster.name.as_str(), cluster.peers), ("cluster", 2));
    for level in [node, cluster] {
        assert!(level.points.windows(2).all(|pair| pair[0].bytes < pair[1].bytes));
        assert!(level.points.iter().filter(|point| point.held_out).count() > 10);
    }
    let machine =
        Machine { name: "two".into(), memory_bytes: 1 << 30, memory_bandwidth: 1e10, flops: 1e11 };
    let made = from_times(&times[0], &places, &machine).expect("a topology");
    let checked = emb_shard::Topology::new(made.topology).expect("a topology");
    assert_eq!((checked.world(), checked.nodes()), (4, 2));
}
