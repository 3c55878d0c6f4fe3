//! Rows in the order of their tables, whatever the plan: written, gathered, read, compared.

use crate::lattice::Case;
use crate::support::{Model, Random, bits, cpu, seeds};
use emb_comm::{Collective, Options, run};
use emb_dlrm::sharded::{Error, WholeTable};
use emb_optim::Extent;
use emb_shard::{GroupId, Plan, Rank, ReplicaSync, TableId};

/// Random weights and state of so many rows of a table.
fn rows(random: &mut Random, model: &Model, table: usize, rows: usize) -> WholeTable {
    let spec = &model.specs[table];
    let mut values = |len: usize| (0..len).map(|_| random.unit()).collect::<Vec<f32>>();
    let state = spec.optimizer.slots().iter().map(|slot| match slot.extent {
        Extent::Row => values(rows),
        Extent::Element => values(rows * spec.dim),
    });
    let state = state.collect();
    WholeTable { state, weights: values(rows * spec.dim) }
}

/// Rows `first..first + count` of a table.
fn part(model: &Model, table: usize, whole: &WholeTable, first: usize, count: usize) -> WholeTable {
    let spec = &model.specs[table];
    let of = |values: &[f32], each: usize| values[first * each..(first + count) * each].to_vec();
    let slots = spec.optimizer.slots().iter().zip(&whole.state);
    let state = slots.map(|(slot, values)| match slot.extent {
        Extent::Row => of(values, 1),
        Extent::Element => of(values, spec.dim),
    });
    WholeTable { state: state.collect(), weights: of(&whole.weights, spec.dim) }
}

#[test]
fn any_plan_gives_back_what_it_was_given() {
    for seed in seeds(20) {
        let Case { model, plan, .. } = Case::new(seed);
        let mut random = Random::new(seed);
        let tables: Vec<WholeTable> = (0..model.specs.len())
            .map(|t| rows(&mut random, &model, t, model.specs[t].rows as usize))
            .collect();
        let spans: Vec<(usize, usize)> = (model.specs.iter())
            .map(|spec| {
                let first = random.below(spec.rows as usize);
                (first, 1 + random.below(spec.rows as usize - first))
            })
            .collect();
        let results = run(plan.world() as usize, &Options::default(), |world| {
            let mut cpu = cpu();
            let mut sharded = model.shard(world, &mut cpu, &plan)?;
            for (t, table) in tables.iter().enumerate() {
                sharded.load_table(&mut cpu, t, table)?;
            }
            for (t, (table, &(first, count))) in tables.iter().zip(&spans).enumerate() {
                let gathered = sharded.gather_table(&mut cpu, t)?;
                assert!(bits(&gathered) == bits(table), "table {t}, gathered");
                let expected = part(&model, t, table, first, count);
                let mut read = expected.clone();
                read.weights.fill(-1.0);
                read.state.iter_mut().for_each(|slot| slot.fill(-1.0));
                let WholeTable { weights, state } = &mut read;
                sharded.read_rows(&mut cpu, t, first as u64, weights, state)?;
                if world.rank() == 0 {
                    assert!(bits(&read) == bits(&expected), "table {t}, {count} from {first}");
                }
            }
            sharded.check_replicas(&mut cpu)
        });
        results.unwrap_or_else(|failure| panic!("seed {seed}: {failure}\n{plan}"));
    }
}

/// A row with replicas, and a rank that stores its first column in the last group.
fn replicated_row(random: &mut Random, model: &Model, plan: &Plan) -> Option<(usize, u64, Rank)> {
    let table = random.below(model.specs.len());
    let (id, row) = (TableId::new(table as u32), random.below(model.specs[table].rows as usize));
    let cell = plan.cell(id, row as u64, 0).expect("a cell");
    let tier = plan.tier(id, cell.tier).expect("a tier");
    let last = tier.mesh.replicas() - 1;
    let replicated = tier.sync != ReplicaSync::None;
    let owner = plan.owner(id, row as u64, 0, GroupId::new(last)).expect("an owner");
    replicated.then_some((table, row as u64, owner))
}

#[test]
fn a_replica_that_differs_is_named_with_its_row() {
    let mut found = 0;
    for seed in seeds(20) {
        let Case { model, plan, .. } = Case::new(seed);
        let mut random = Random::new(seed);
        let Some((table, row, owner)) = replicated_row(&mut random, &model, &plan) else {
            continue;
        };
        let other = rows(&mut random, &model, table, 1);
        let results = run(plan.world() as usize, &Options::default(), |world| {
            let mut cpu = cpu();
            let mut sharded = model.shard(world, &mut cpu, &plan)?;
            if world.rank() == owner.get() as usize {
                let (weights, state) = (&other.weights, &other.state);
                sharded.write_rows(&mut cpu, table, row, weights, state)?;
            }
            sharded.check_replicas(&mut cpu)?;
            Ok::<_, Error>(())
        });
        let said = results.expect_err("replicas differ").to_string();
        let name = &model.specs[table].name;
        let expected = format!("table {name:?}: row {row} differs between its replicas on ranks ");
        assert!(said.contains(&expected), "seed {seed}: {said}, not {expected}\n{plan}");
        assert!(said.contains(&owner.get().to_string()), "seed {seed}: {said}\n{plan}");
        found += 1;
    }
    assert!(found > 0 || std::env::var("EMB_SEED").is_ok(), "no plan has replicas");
}
