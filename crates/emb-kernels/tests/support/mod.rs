//! A small group of tables on one thread, for tests that state numbers.
#![allow(dead_code, reason = "every test file uses its own part")]

use emb_kernels::cpu::{Cpu, CpuOptions, CpuTables};
use emb_kernels::{
    Backend, Feature, FeatureMap, Gradients, Init, Jagged, Mat, Pooling, Result, TableSpec,
};
use emb_optim::{Optimizer, OptimizerConfig, RuleKind};

/// Tables and features with a backend.
pub struct Group {
    pub cpu: Cpu,
    pub tables: CpuTables,
    pub map: FeatureMap,
    pub lr: f64,
    pub step: u64,
}

impl Group {
    /// Feature `f` of `pooling[f]` looks up table `f`.
    pub fn new(specs: &[TableSpec], pooling: Pooling) -> Self {
        let features: Vec<Feature> = specs
            .iter()
            .enumerate()
            .map(|(table, spec)| Feature { name: spec.name.clone(), table, pooling })
            .collect();
        Self::with_features(specs, features)
    }

    pub fn with_features(specs: &[TableSpec], features: Vec<Feature>) -> Self {
        let mut cpu = Cpu::new(CpuOptions { threads: 1 }).expect("threads");
        let tables = cpu.create_tables(specs, 7).expect("tables");
        let map = FeatureMap::new(features, specs, 0).expect("features of these tables");
        Self { cpu, tables, map, lr: 1.0, step: 1 }
    }

    /// Gives row `i`, column `j` of a table the value `value(i, j)`.
    pub fn fill(&mut self, table: usize, value: impl Fn(u64, usize) -> f32) {
        let spec = &Cpu::specs(&self.tables)[table];
        let (rows, dim, slots) = (spec.rows, spec.dim, spec.optimizer.slots().len());
        let weights: Vec<f32> = (0..rows)
            .flat_map(|i| (0..dim).map(move |j| (i, j)))
            .map(|(i, j)| value(i, j))
            .collect();
        let (_, state) = self.rows(table);
        assert_eq!(state.len(), slots);
        self.cpu.write_rows(&mut self.tables, table, 0, &weights, &state).expect("rows");
    }

    /// All weights of a table, and its state slot by slot.
    pub fn rows(&mut self, table: usize) -> (Vec<f32>, Vec<Vec<f32>>) {
        let spec = &Cpu::specs(&self.tables)[table];
        let mut weights = vec![0.0; spec.rows as usize * spec.dim];
        let mut state = vec![Vec::new(); spec.optimizer.slots().len()];
        self.cpu.read_rows(&mut self.tables, table, 0, &mut weights, &mut state).expect("rows");
        (weights, state)
    }

    pub fn pool(&mut self, batch: &Jagged) -> Result<Vec<f32>> {
        let width = self.map.width();
        let mut out = vec![f32::NAN; batch.batch() * width];
        let matrix = Mat::new(&mut out[..], batch.batch(), width);
        self.cpu.pool(&mut self.tables, &self.map, batch.as_ref().view(), matrix)?;
        Ok(out)
    }

    pub fn weight_gradients(&mut self, batch: &Jagged, gradient: &[f32]) -> Vec<f32> {
        let mut out = vec![f32::NAN; batch.as_ref().values.len()];
        let gradient = Mat::new(gradient, batch.batch(), self.map.width());
        let view = batch.as_ref().view();
        self.cpu
            .weight_gradients(&mut self.tables, &self.map, view, gradient, &mut out)
            .expect("gradients of weights");
        out
    }

    pub fn update(&mut self, batch: &Jagged, gradient: &[f32]) -> Result<()> {
        let pooled = Mat::new(gradient, batch.batch(), self.map.width());
        let specs = Cpu::specs(&self.tables);
        let rules: Vec<_> =
            specs.iter().map(|spec| spec.optimizer.rule(self.lr, self.step)).collect();
        let gradients = Gradients { pooled, sequences: &[] };
        let view = batch.as_ref().view();
        self.cpu.scatter_update(&mut self.tables, &self.map, view, &gradients, &rules, self.step)
    }
}

/// A table of zeros.
pub fn table(name: &str, rows: u64, dim: usize, kind: RuleKind) -> TableSpec {
    let init = Init::Constant(0.0);
    TableSpec { init, ..TableSpec::new(name, rows, dim, Optimizer::new(kind)) }
}

/// An optimizer with `eps = 0`.
pub fn without_eps(kind: RuleKind) -> Optimizer {
    OptimizerConfig { eps: Some(0.0), ..OptimizerConfig::new(kind) }.build().expect("valid options")
}

/// A batch from lengths.
pub fn batch(names: &[&str], samples: usize, lengths: &[i64], values: &[i64]) -> Jagged {
    Jagged::from_lengths(names, samples, lengths, values.to_vec(), None).expect("a batch")
}
