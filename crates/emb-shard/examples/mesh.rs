//! Draws the groups and replica sets of a mesh: `mesh [world] [group ranks]`.

use emb_shard::{GroupId, Layout, Mesh, Rank, ReplicaId};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let world = arguments.next().map_or(Ok(8), |text| text.parse())?;
    let group_ranks = arguments.next().map_or(Ok(4), |text| text.parse())?;
    let mut out = std::io::stdout().lock();
    for layout in [Layout::Strided, Layout::Contiguous] {
        let mesh = Mesh::new(world, group_ranks, layout)?;
        writeln!(out, "{layout:?}: {world} ranks, {} replicas of every shard", mesh.replicas())?;
        for group in (0..mesh.replicas()).map(GroupId::new) {
            let ranks: Vec<u32> = mesh.group_members(group)?.map(Rank::get).collect();
            writeln!(out, "  {group}: ranks {ranks:?}")?;
        }
        for set in (0..mesh.group_ranks()).map(ReplicaId::new) {
            let ranks: Vec<u32> = mesh.replica_members(set)?.map(Rank::get).collect();
            writeln!(out, "  {set}: ranks {ranks:?}")?;
        }
    }
    Ok(())
}
