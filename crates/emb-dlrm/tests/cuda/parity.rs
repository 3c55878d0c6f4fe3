//! A run on GPUs against the same on the processor.

use crate::support::{
    assert_near, criteo, devices, furthest, on_gpus, on_the_processor, options, outcome, over,
    whole_model,
};
use emb_dlrm::config::{DeviceKind, ModelKind, Options, PrecisionKind, SyncKind, TransportKind};

/// Norm-wise, as between plans.
const LIMIT: f64 = 1e-5;
/// Of 64 samples each, more than two epochs.
const STEPS: u64 = 300;
/// More than one epoch: ranks over NCCL go the whole way, those in one process share its code but for
/// the transport.
const SHORTER: u64 = 120;

/// The whole run: training on the sample, evaluation, checkpoint.
fn check(options: &Options, transport: Option<TransportKind>, case: &str) {
    let expected = outcome(&on_the_processor(options));
    let got = outcome(&on_gpus(options, transport));
    assert_eq!(got.report.device, DeviceKind::Cuda, "{case}");
    assert_near(&got, &expected, LIMIT, case);
}

/// All columns of the sample, [`STEPS`] steps.
fn whole() -> Option<Options> {
    let (data, eval) = (criteo("train")?, criteo("dev")?);
    Some(Options { eval: vec![eval], steps: Some(STEPS), ..whole_model(&data) })
}

/// A small model, for what has to be run in many ways.
fn sample(steps: u64) -> Option<Options> {
    let (data, eval) = (criteo("train")?, criteo("dev")?);
    Some(Options { eval: vec![eval], steps: Some(steps), ..options(&data) })
}

#[test]
fn one_gpu_equals_the_processor() {
    let Some(alone) = whole().filter(|_| devices(1)) else { return };
    check(&alone, None, "one rank");
}

#[test]
fn two_ranks_on_gpus_equal_two_on_the_processor() {
    let Some(alone) = whole().filter(|_| devices(2)) else { return };
    for (transport, steps) in [(TransportKind::Local, SHORTER), (TransportKind::Nccl, STEPS)] {
        let two = Options { steps: Some(steps), ..over(&alone, 2, 1) };
        let expected = outcome(&on_the_processor(&two));
        let got = outcome(&on_gpus(&two, Some(transport)));
        assert_eq!(got.report.transport, Some(transport));
        assert_near(&got, &expected, LIMIT, &format!("two ranks over {transport}"));
    }
}

#[test]
fn four_ranks_with_two_replicas_on_gpus_equal_four_on_the_processor() {
    let Some(alone) = whole().filter(|_| devices(4)) else { return };
    for (transport, steps) in [(TransportKind::Local, SHORTER), (TransportKind::Nccl, STEPS)] {
        let four = Options { steps: Some(steps), ..over(&alone, 4, 2) };
        let expected = outcome(&on_the_processor(&four));
        let got = outcome(&on_gpus(&four, Some(transport)));
        assert_near(&got, &expected, LIMIT, &format!("four ranks over {transport}"));
    }
}

#[test]
fn ranks_share_a_gpu_where_there_are_fewer() {
    let Some(alone) = sample(20).filter(|_| devices(1)) else { return };
    check(&over(&alone, 8, 1), Some(TransportKind::Local), "eight ranks");
}

#[test]
fn every_plan_model_and_way_to_sync_is_the_same_on_gpus() {
    let Some(alone) = sample(12).filter(|_| devices(2)) else { return };
    for plan in ["table-wise", "column-wise", "data-parallel"] {
        let cross = ModelKind::DlrmDcn;
        let options = Options {
            model: Some(cross),
            dcn_layers: Some(2),
            dcn_rank: Some(3),
            plan: Some(plan.into()),
            replicas: None,
            ..over(&alone, 2, 1)
        };
        let transport = Some(TransportKind::Nccl);
        check(&options, transport, &format!("{cross}, {plan}"));
    }
    for sync in [SyncKind::Weights, SyncKind::TouchedRows, SyncKind::Gradients] {
        let options = Options { sync: Some(sync), ..over(&alone, 2, 2) };
        check(&options, Some(TransportKind::Local), &format!("{sync}"));
    }
}

#[test]
fn a_repeated_run_has_the_same_bits() {
    let Some(alone) = sample(20).filter(|_| devices(2)) else { return };
    let options = on_gpus(&over(&alone, 2, 1), Some(TransportKind::Nccl));
    assert!(outcome(&options).bytes == outcome(&options).bytes);
}

/// Factors of 8 or 11 bits: near, and not the same.
#[test]
fn products_of_fewer_bits_train_near_the_same() {
    let Some(alone) = sample(20).filter(|_| devices(1)) else { return };
    let whole = outcome(&on_gpus(&alone, None));
    for (precision, limit) in [(PrecisionKind::Tf32, 2e-3), (PrecisionKind::Bf16, 5e-2)] {
        let options = Options { precision: Some(precision), ..on_gpus(&alone, None) };
        let got = outcome(&options);
        assert!(got.report.device_name.to_lowercase().contains(&precision.to_string()));
        let (apart, name) = furthest(&got, &whole);
        eprintln!("{precision}: {apart:.1e} apart at most, {name}");
        assert!(apart > 1e-6 && apart < limit, "{precision}: {name}: {apart:e} apart");
    }
}
