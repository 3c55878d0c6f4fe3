//! Tables and an independent oracle of coverage, shared by the tests of plans.

use emb_shard::{GroupId, Mesh, Plan, Pooling, Rank, Shard, Table, TableOptions, Tables};

/// A table of pooled features with `pooling_factor` ids a bag.
pub(crate) fn table(name: &str, rows: u64, dim: usize, pooling_factor: f64) -> Table {
    let options = TableOptions { pooling_factor, ..TableOptions::default() };
    Table::new(name, rows, dim, options).expect("valid table")
}

/// A table of sequence features.
pub(crate) fn sequence(name: &str, rows: u64, dim: usize) -> Table {
    let options = TableOptions { pooling: Pooling::None, ..TableOptions::default() };
    Table::new(name, rows, dim, options).expect("valid table")
}

/// Tables in the order given.
pub(crate) fn tables(tables: Vec<Table>) -> Tables {
    Tables::new(tables).expect("valid tables")
}

/// Every cell (row, column) of the table that a shard stores, rows as the table numbers them.
pub(crate) fn cells(plan: &Plan, shard: &Shard) -> Vec<(u64, usize)> {
    let map = plan.row_map(shard.table, shard.tier, shard.block).expect("exists");
    let tier = plan.tier(shard.table, shard.tier).expect("exists");
    let order = plan.placed()[shard.table].order.as_ref();
    if let Some(range) = shard.range {
        let places: Vec<u64> = (0..shard.rows)
            .map(|local| tier.rows.start() + map.global(shard.part, local).expect("exists"))
            .collect();
        assert_eq!(places, (range.start()..range.end()).collect::<Vec<_>>());
    }
    let rows = (0..shard.rows).map(|local| {
        let place = tier.rows.start() + map.global(shard.part, local).expect("exists");
        match order {
            None => place,
            // Slow on purpose: the row whose place this is.
            Some(order) => {
                (0..order.rows()).find(|&row| order.place(row) == place).expect("is a place")
            }
        }
    });
    let columns = shard.columns.start()..shard.columns.end();
    rows.flat_map(|row| columns.clone().map(move |column| (row, column))).collect()
}

/// Checks, cell by cell and group by group, that a plan stores everything exactly once, where it
/// says, and that its bytes are those of the cells.
pub(crate) fn assert_covers(plan: &Plan) {
    for (id, table) in plan.tables().tables().iter() {
        let cell_count = table.rows() as usize * table.dim();
        // Per tier, its own groups: a cell of a tier of M groups is stored M times.
        let mut stored: Vec<Vec<(Rank, GroupId, Mesh)>> = vec![Vec::new(); cell_count];
        for rank in (0..plan.world()).map(Rank::new) {
            for shard in plan.shards_of(rank).expect("in range").filter(|s| s.table == id) {
                assert!(shard.rows > 0 && shard.columns.columns() > 0, "an empty shard");
                let mesh = plan.tier(id, shard.tier).expect("exists").mesh;
                for (row, column) in cells(plan, &shard) {
                    stored[row as usize * table.dim() + column].push((rank, shard.group, mesh));
                }
            }
        }
        for (cell, stored) in stored.iter().enumerate() {
            let (row, column) = ((cell / table.dim()) as u64, cell % table.dim());
            let mesh = stored.first().expect("a cell that nobody stores").2;
            let mut groups: Vec<u32> = stored.iter().map(|(_, group, _)| group.get()).collect();
            groups.sort_unstable();
            assert_eq!(groups, (0..mesh.replicas()).collect::<Vec<_>>(), "row {row} {column}");
            for &(rank, group, _) in stored {
                let members: Vec<Rank> = mesh.group_members(group).expect("exists").collect();
                assert!(members.contains(&rank));
                assert_eq!(plan.owner(id, row, column, group).expect("exists"), rank);
                for asker in members {
                    assert_eq!(plan.owner_for(asker, id, row, column).expect("exists"), rank);
                }
            }
        }
    }
    for rank in (0..plan.world()).map(Rank::new) {
        let mut bytes = (0, 0);
        for shard in plan.shards_of(rank).expect("in range") {
            let table = &plan.tables().tables()[shard.table];
            let cells = shard.rows * shard.columns.columns() as u64;
            bytes.0 += cells * u64::from(table.element_bytes());
            bytes.1 += cells * u64::from(table.state().per_element)
                + shard.rows * u64::from(table.state().per_row);
        }
        let said = plan.bytes_of(rank).expect("in range");
        assert_eq!((said.weights.get(), said.state.get()), bytes, "{rank}");
    }
}
