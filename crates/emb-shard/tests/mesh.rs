//! The rank arithmetic of both layouts.

use emb_shard::{GroupId, Layout, Mesh, Rank, ReplicaId};
use proptest::prelude::*;

fn groups(mesh: &Mesh) -> Vec<Vec<u32>> {
    let members = |group| mesh.group_members(GroupId::new(group)).expect("group exists");
    (0..mesh.replicas()).map(|group| members(group).map(Rank::get).collect()).collect()
}

fn replica_sets(mesh: &Mesh) -> Vec<Vec<u32>> {
    let members = |set| mesh.replica_members(ReplicaId::new(set)).expect("set exists");
    (0..mesh.group_ranks()).map(|set| members(set).map(Rank::get).collect()).collect()
}

#[test]
fn eight_ranks_in_groups_of_four_strided() {
    let mesh = Mesh::new(8, 4, Layout::Strided).expect("valid");
    assert_eq!(groups(&mesh), [[0, 2, 4, 6], [1, 3, 5, 7]]);
    assert_eq!(replica_sets(&mesh), [[0, 1], [2, 3], [4, 5], [6, 7]]);
}

#[test]
fn eight_ranks_in_groups_of_four_contiguous() {
    let mesh = Mesh::new(8, 4, Layout::Contiguous).expect("valid");
    assert_eq!(groups(&mesh), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    assert_eq!(replica_sets(&mesh), [[0, 4], [1, 5], [2, 6], [3, 7]]);
}

#[test]
fn one_group_and_groups_of_one_are_the_two_ends() {
    for layout in [Layout::Strided, Layout::Contiguous] {
        let one_group = Mesh::new(6, 6, layout).expect("valid");
        assert_eq!(groups(&one_group), [[0, 1, 2, 3, 4, 5]]);
        assert_eq!(one_group.replicas(), 1);
        let data_parallel = Mesh::new(6, 1, layout).expect("valid");
        assert_eq!(replica_sets(&data_parallel), [[0, 1, 2, 3, 4, 5]]);
    }
}

#[test]
fn worlds_that_do_not_split_are_refused() {
    for (world, group_ranks) in [(8, 3), (0, 1), (4, 0), (4, 8)] {
        let error = Mesh::new(world, group_ranks, Layout::Strided).expect_err("must not split");
        assert_eq!(
            error.to_string(),
            format!("{world} ranks do not split into sharding groups of {group_ranks}")
        );
    }
}

#[test]
fn ranks_groups_and_sets_outside_are_refused_by_kind() {
    let mesh = Mesh::new(8, 4, Layout::Strided).expect("valid");
    let rank = mesh.group_of(Rank::new(8)).expect_err("8 ranks");
    assert_eq!(rank.to_string(), "rank 8 does not exist: there are 8");
    let group = mesh.rank_of(GroupId::new(2), ReplicaId::new(0)).expect_err("2 groups");
    assert_eq!(group.to_string(), "group 2 does not exist: there are 2");
    let set = mesh.replica_members(ReplicaId::new(4)).err().expect("4 sets");
    assert_eq!(set.to_string(), "replica set 4 does not exist: there are 4");
}

proptest! {
    #[test]
    fn a_rank_is_its_group_and_replica_set(
        group_ranks in 1u32..=512,
        replicas in 1u32..=64,
        contiguous in any::<bool>(),
    ) {
        let layout = if contiguous { Layout::Contiguous } else { Layout::Strided };
        let mesh = Mesh::new(group_ranks * replicas, group_ranks, layout).expect("divides");
        for rank in (0..mesh.world()).map(Rank::new) {
            let group = mesh.group_of(rank).expect("in range");
            let set = mesh.replica_set_of(rank).expect("in range");
            prop_assert_eq!(mesh.rank_of(group, set).expect("in range"), rank);
        }
        // Groups, like replica sets, share the ranks out: each exactly once, ascending.
        for parts in [groups(&mesh), replica_sets(&mesh)] {
            prop_assert!(parts.iter().all(|part| part.is_sorted()));
            let mut ranks: Vec<u32> = parts.into_iter().flatten().collect();
            ranks.sort_unstable();
            prop_assert_eq!(ranks, (0..mesh.world()).collect::<Vec<_>>());
        }
    }
}
