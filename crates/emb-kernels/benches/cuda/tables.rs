//! Tables on the device, with a batch.

use crate::Result;
use crate::ids;
use crate::sizes::Shape;
use emb_cuda::{Buffer, Device, Stream};
use emb_kernels::cuda::CudaTables;
use emb_kernels::{
    Backend, Cuda, CudaOptions, Feature, FeatureMap, Gradients, JaggedView, Mat, Pooling, TableSpec,
};
use emb_optim::{Extent, Optimizer, Rule, RuleKind};

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Lookup,
    Update,
    /// Both.
    Step,
}

/// Tables of one shape, ids, outputs and gradients.
pub(crate) struct Tables {
    cuda: Cuda,
    group: CudaTables,
    map: FeatureMap,
    names: Vec<String>,
    shape: Shape,
    optimizer: Optimizer,
    rules: Vec<Rule>,
    offsets: Buffer<u64>,
    values: Buffer<i64>,
    out: Buffer<f32>,
    gradient: Buffer<f32>,
    distinct: u64,
    step: u64,
}

impl Tables {
    pub(crate) fn new(
        device: &Device,
        shape: Shape,
        rule: RuleKind,
        draw: impl Fn(&Shape) -> Vec<i64>,
    ) -> Result<Self> {
        let mut cuda = Cuda::new(device, CudaOptions::default())?;
        let optimizer = Optimizer::new(rule);
        let spec = |table| TableSpec {
            dtype: shape.dtype,
            ..TableSpec::new(format!("table {table}"), shape.rows, shape.dim, optimizer)
        };
        let specs: Vec<TableSpec> = (0..shape.tables).map(spec).collect();
        let group = cuda.create_tables(&specs, 1)?;
        let names: Vec<String> =
            (0..shape.tables).map(|table| format!("feature {table}")).collect();
        let features = names.iter().enumerate().map(|(table, name)| Feature {
            name: name.clone(),
            table,
            pooling: Pooling::Sum,
        });
        let map = FeatureMap::new(features.collect(), &specs, 0)?;
        let ids = draw(&shape);
        let bags = shape.tables * shape.batch;
        let starts: Vec<u64> = (0..=bags).map(|bag| (bag * shape.ids) as u64).collect();
        let width = shape.batch * map.width();
        let offsets = upload(&mut cuda, &starts)?;
        let values = upload(&mut cuda, &ids)?;
        let gradient = upload(&mut cuda, &vec![1e-3; width])?;
        let out = cuda.zeros(width)?;
        let distinct = ids::distinct(&shape, &ids);
        let rules = vec![optimizer.rule(0.01, 1); shape.tables];
        Ok(Self {
            cuda,
            group,
            map,
            names,
            shape,
            optimizer,
            rules,
            offsets,
            values,
            out,
            gradient,
            distinct,
            step: 0,
        })
    }

    pub(crate) fn stream(&self) -> Stream {
        self.cuda.stream().clone()
    }

    /// Rows that the batch touches.
    pub(crate) fn distinct(&self) -> u64 {
        self.distinct
    }

    /// Optimizer state of a row.
    pub(crate) fn state_bytes(&self) -> u64 {
        let bytes = |extent| match extent {
            Extent::Row => 4,
            Extent::Element => 4 * self.shape.dim as u64,
        };
        self.optimizer.slots().iter().map(|slot| bytes(slot.extent)).sum()
    }

    /// Queues one pass.
    pub(crate) fn run(&mut self, pass: Pass) -> Result<()> {
        let Self { cuda, group, map, names, shape, offsets, values, out, gradient, .. } = self;
        let batch = JaggedView {
            names,
            batch: shape.batch,
            len: values.len(),
            offsets: offsets.view(0..offsets.len()),
            values: values.view(0..values.len()),
            weights: None,
        };
        let len = out.len();
        if pass != Pass::Update {
            let out = Mat::new(out.view_mut(0..len), shape.batch, map.width());
            cuda.pool(group, map, batch, out)?;
        }
        if pass != Pass::Lookup {
            let pooled = Mat::new(gradient.view(0..len), shape.batch, map.width());
            let gradients = Gradients { pooled, sequences: &[] };
            self.step += 1;
            cuda.scatter_update(group, map, batch, &gradients, &self.rules, self.step)?;
        }
        Ok(())
    }
}

fn upload<T: emb_kernels::Scalar>(cuda: &mut Cuda, from: &[T]) -> Result<Buffer<T>> {
    let mut buffer = cuda.zeros(from.len())?;
    cuda.upload(from, buffer.view_mut(0..from.len()))?;
    Ok(buffer)
}
