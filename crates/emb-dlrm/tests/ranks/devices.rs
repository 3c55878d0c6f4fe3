//! Trainings on memory that the host can't look into, as that of a device.

use crate::opaque::Opaque;
use crate::support::{feature, options, table, trained, trained_on};
use emb_dlrm::config::{ModelKind, Options, PoolingKind, SyncKind};

/// Three tables of synthetic data, bags of any length, some weighted.
fn synthetic(model: ModelKind) -> Options {
    let features = [("a", "a", PoolingKind::Sum), ("b", "b", PoolingKind::Mean)];
    let features = features.into_iter().chain([("c", "a", PoolingKind::Mean)]);
    let with_bags = |(name, table, pooling): (&str, &str, PoolingKind)| {
        let mut feature = feature(name, table, pooling);
        (feature.bag, feature.weighted) = (Some(2.5), (name != "b").then_some(true));
        feature
    };
    Options {
        table: vec![table("a", 60, 4), table("b", 90, 4)],
        feature: features.map(with_bags).collect(),
        steps: Some(4),
        batch_size: Some(9),
        ..options("synthetic".as_ref(), model)
    }
}

#[test]
fn memory_that_nobody_can_look_into_trains_to_the_same_bits() {
    for model in [ModelKind::Dlrm, ModelKind::DlrmDcn] {
        let alone = synthetic(model);
        let over = |world, plan: &str| Options {
            world: Some(world),
            plan: Some(plan.into()),
            ..alone.clone()
        };
        let replicas =
            |sync| Options { replicas: Some(2), sync: Some(sync), ..over(4, "row-wise") };
        for options in [
            alone.clone(),
            over(2, "table-wise"),
            over(2, "column-wise"),
            replicas(SyncKind::TouchedRows),
            replicas(SyncKind::Gradients),
        ] {
            let case = format!("{model}, {:?} ranks, {:?}", options.world, options.plan);
            let expected = trained(options.clone());
            let got = trained_on(options, Opaque::new);
            assert!(got.bytes == expected.bytes, "{case}");
        }
    }
}
