//! Whether replicas are equal, bit by bit.

use super::ShardedEmbeddings;
use super::error::{Result, refuse};
use super::sync::{Piece, read};
use emb_comm::Collective;
use emb_kernels::Backend;
use emb_shard::Rank;
use std::hash::{DefaultHasher, Hasher};

/// Rows that share a checksum.
const CHUNK: usize = 1 << 14;

impl<B: Backend, C: Collective> ShardedEmbeddings<B, C> {
    /// Compares checksums of weights and optimizer state between the replicas of every table: after
    /// a [`sync`](Self::sync) they are bitwise equal. Every rank calls it. It reads all rows, and a
    /// checksum for 16,384 rows travels.
    ///
    /// # Errors
    /// The first row that differs: its table, the row, and two ranks that store it differently.
    /// A peer that fails.
    pub fn check_replicas(&mut self, backend: &mut B) -> Result<()> {
        let checked = self.compare(backend);
        checked.map_err(|error| self.give_up(error))
    }

    fn compare(&mut self, backend: &mut B) -> Result<()> {
        self.bring_back()?;
        for class in &mut self.classes {
            let stored = &mut *class.stored;
            let Some(replicas) = &mut stored.replicas else { continue };
            let mut chunks = Vec::new();
            for (table, &(rows, _)) in stored.sizes.iter().enumerate() {
                let starts = (0..rows).step_by(CHUNK);
                chunks.extend(starts.map(|first| Piece {
                    table,
                    first,
                    rows: CHUNK.min(rows - first),
                }));
            }
            let mut sums = Vec::with_capacity(chunks.len());
            for chunk in &chunks {
                sums.push(checksum(backend, &mut stored.tables, chunk)?);
            }
            let Some((at, other)) = first_difference(replicas, &sums)? else { continue };
            // All replicas see the same difference, and look closer together.
            let Piece { table, first, rows } = chunks[at];
            let mut sums = Vec::with_capacity(rows);
            for row in first..first + rows {
                let piece = Piece { table, first: row, rows: 1 };
                sums.push(checksum(backend, &mut stored.tables, &piece)?);
            }
            let (row, other) = first_difference(replicas, &sums)?.unwrap_or((0, other));
            let row = class.layout.table_row(&self.plan, table, (first + row) as u64)?;
            let mesh = class.members.mesh;
            let set = mesh.replica_set_of(Rank::new(self.everyone.rank() as u32))?;
            let ranks: Vec<u32> = mesh.replica_members(set)?.map(Rank::get).collect();
            let name = &self.specs[stored.table_of[table]].name;
            let (one, two) = (ranks[0], ranks[other]);
            let what = format!("row {row} differs between its replicas on ranks {one} and {two}");
            return refuse(name, what);
        }
        Ok(())
    }
}

/// A checksum of the weights and state of some rows.
fn checksum<B: Backend>(backend: &mut B, tables: &mut B::Tables, piece: &Piece) -> Result<u64> {
    let (weights, state) = read(backend, tables, piece)?;
    let mut hasher = DefaultHasher::new();
    for value in weights.iter().chain(state.iter().flatten()) {
        hasher.write_u32(value.to_bits());
    }
    Ok(hasher.finish())
}

/// The first checksum that differs from that of replica 0, and the replica that differs.
fn first_difference<C: Collective>(
    replicas: &mut C,
    sums: &[u64],
) -> Result<Option<(usize, usize)>> {
    let world = replicas.world();
    let mut all = vec![0; sums.len() * world];
    replicas.all_gather_v::<u64>(sums, &mut all, &vec![sums.len(); world])?;
    let of = |replica: usize, at: usize| all[replica * sums.len() + at];
    let differing = |at: usize| (1..world).find(|&replica| of(replica, at) != of(0, at));
    Ok((0..sums.len()).find_map(|at| differing(at).map(|replica| (at, replica))))
}
