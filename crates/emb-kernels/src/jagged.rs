//! Jagged batches on the host: `[features, batch]` bags of ids, checked once at construction.

use crate::{Error, Result};

/// A jagged batch, feature-major: bag `f * batch + b` is feature `f` of sample `b`.
///
/// A value of this type is always consistent: offsets begin at 0, never decrease and end at the
/// number of values; there are `features * batch + 1` of them, so
/// `batch = lengths.len() / features`. Offsets are 64-bit.
///
/// Two features, six lengths: the batch is 3.
/// ```
/// use emb_kernels::Jagged;
/// let names = ["user", "item"];
/// let jagged = Jagged::from_lengths(&names, 3, &[1, 0, 2, 1, 1, 0], vec![7, 3, 3, 0, 5], None)?;
/// assert_eq!(jagged.batch(), 3);
/// assert_eq!(jagged.bag(0, 2), &[3, 3]);
/// # Ok::<(), emb_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Jagged {
    names: Vec<String>,
    batch: usize,
    offsets: Vec<u64>,
    values: Vec<i64>,
    weights: Option<Vec<f32>>,
}

/// A jagged batch borrowed from host memory, checked as [`Jagged`] is.
#[derive(Clone, Copy, Debug)]
pub struct JaggedRef<'a> {
    /// Feature names, for errors.
    pub names: &'a [String],
    /// Samples.
    pub batch: usize,
    /// `[features * batch + 1]`.
    pub offsets: &'a [u64],
    /// `[offsets.last()]` ids.
    pub values: &'a [i64],
    /// `[values]` per-sample weights, or `None` for all 1.
    pub weights: Option<&'a [f32]>,
}

impl Jagged {
    /// An empty batch of the given features: batch 0, no values.
    pub fn empty<S: AsRef<str>>(names: &[S]) -> Self {
        Self { names: owned(names), batch: 0, offsets: vec![0], values: Vec::new(), weights: None }
    }

    /// Builds a batch from `[features * batch]` lengths, feature-major.
    ///
    /// # Errors
    /// A count of lengths other than `features * batch`, a negative length, lengths that sum to
    /// another number than `values.len()`, weights of another count than values.
    pub fn from_lengths<S: AsRef<str>>(
        names: &[S],
        batch: usize,
        lengths: &[i64],
        values: Vec<i64>,
        weights: Option<Vec<f32>>,
    ) -> Result<Self> {
        let names = owned(names);
        let mut offsets = Vec::new();
        offsets_from_lengths(&names, batch, lengths, &mut offsets)?;
        check_values(&offsets, values.len(), weights.as_deref())?;
        Ok(Self { names, batch, offsets, values, weights })
    }

    /// As [`from_lengths`](Self::from_lengths), and checks a count of values for every feature.
    ///
    /// # Errors
    /// As `from_lengths`; and a count that its feature's lengths contradict, by name.
    pub fn from_lengths_and_counts<S: AsRef<str>>(
        names: &[S],
        batch: usize,
        lengths: &[i64],
        counts: &[u64],
        values: Vec<i64>,
        weights: Option<Vec<f32>>,
    ) -> Result<Self> {
        let jagged = Self::from_lengths(names, batch, lengths, values, weights)?;
        if counts.len() != jagged.names.len() {
            return Err(Error::Shape {
                operation: "jagged batch",
                what: "counts, one for each feature",
                expected: jagged.names.len(),
                got: counts.len(),
            });
        }
        for (f, &given) in counts.iter().enumerate() {
            let range = jagged.as_ref().feature_range(f);
            let lengths = (range.end - range.start) as u64;
            if given != lengths {
                return Err(Error::FeatureValues {
                    feature: jagged.names[f].clone(),
                    given,
                    lengths,
                });
            }
        }
        Ok(jagged)
    }

    /// Builds a batch from `[features * batch + 1]` offsets.
    ///
    /// # Errors
    /// A wrong count, a first offset other than 0, a decrease (with its index), a last offset
    /// other than `values.len()`, weights of another count than values.
    pub fn from_offsets<S: AsRef<str>>(
        names: &[S],
        batch: usize,
        offsets: &[i64],
        values: Vec<i64>,
        weights: Option<Vec<f32>>,
    ) -> Result<Self> {
        let names = owned(names);
        check_offsets(names.len(), batch, offsets, values.len())?;
        check_weights(values.len(), weights.as_deref())?;
        let offsets = offsets.iter().map(|&offset| offset as u64).collect();
        Ok(Self { names, batch, offsets, values, weights })
    }

    /// Refills the batch in place, keeping its memory; `fill` writes lengths (feature-major),
    /// values and, where the batch has weights, weights into cleared vectors.
    ///
    /// # Errors
    /// As [`from_lengths`](Self::from_lengths); the batch is then empty.
    pub fn refill(
        &mut self,
        batch: usize,
        lengths: &mut Vec<i64>,
        fill: impl FnOnce(&mut Vec<i64>, &mut Vec<i64>, Option<&mut Vec<f32>>),
    ) -> Result<()> {
        lengths.clear();
        self.values.clear();
        if let Some(weights) = &mut self.weights {
            weights.clear();
        }
        self.batch = 0;
        self.offsets.clear();
        self.offsets.push(0);
        fill(lengths, &mut self.values, self.weights.as_mut());
        let checked = offsets_from_lengths(&self.names, batch, lengths, &mut self.offsets)
            .and_then(|()| check_values(&self.offsets, self.values.len(), self.weights.as_deref()));
        if checked.is_err() {
            self.offsets.clear();
            self.offsets.push(0);
            self.values.clear();
            return checked;
        }
        self.batch = batch;
        Ok(())
    }

    /// Gives the batch (empty or not) per-sample weights of 1.
    #[must_use]
    pub fn with_unit_weights(mut self) -> Self {
        self.weights = Some(vec![1.0; self.values.len()]);
        self
    }

    /// Feature names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Samples.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Ids of feature `f`, sample `b`.
    pub fn bag(&self, f: usize, b: usize) -> &[i64] {
        self.as_ref().bag(f, b)
    }

    /// The batch as a borrowed view.
    pub fn as_ref(&self) -> JaggedRef<'_> {
        JaggedRef {
            names: &self.names,
            batch: self.batch,
            offsets: &self.offsets,
            values: &self.values,
            weights: self.weights.as_deref(),
        }
    }
}

impl<'a> JaggedRef<'a> {
    /// Number of features.
    pub fn features(&self) -> usize {
        self.names.len()
    }

    /// Positions in `values` of bag `(f, b)`.
    pub fn bag_range(&self, f: usize, b: usize) -> std::ops::Range<usize> {
        let bag = f * self.batch + b;
        self.offsets[bag] as usize..self.offsets[bag + 1] as usize
    }

    /// Ids of bag `(f, b)`.
    pub fn bag(&self, f: usize, b: usize) -> &'a [i64] {
        &self.values[self.bag_range(f, b)]
    }

    /// Positions in `values` of all bags of feature `f`.
    pub fn feature_range(&self, f: usize) -> std::ops::Range<usize> {
        self.offsets[f * self.batch] as usize..self.offsets[(f + 1) * self.batch] as usize
    }
}

impl<'a> JaggedRef<'a> {
    /// The batch as the CPU backend reads it.
    pub fn view<B>(self) -> crate::JaggedView<'a, B>
    where
        B: crate::Backend<View<'a, u64> = &'a [u64], View<'a, i64> = &'a [i64]>
            + crate::Backend<View<'a, f32> = &'a [f32]>,
    {
        crate::JaggedView {
            names: self.names,
            batch: self.batch,
            len: self.values.len(),
            offsets: self.offsets,
            values: self.values,
            weights: self.weights,
        }
    }
}

fn owned<S: AsRef<str>>(names: &[S]) -> Vec<String> {
    names.iter().map(|name| name.as_ref().to_owned()).collect()
}

/// Prefix sums of the lengths of `features x batch` bags in 64 bits, without any values: `offsets`
/// becomes `[features * batch + 1]`.
///
/// # Errors
/// A count of lengths other than `features * batch`, a negative length; `offsets` is then as it was
/// or partly filled.
pub fn offsets_from_lengths(
    names: &[String],
    batch: usize,
    lengths: &[i64],
    offsets: &mut Vec<u64>,
) -> Result<()> {
    let features = names.len();
    let expected = features * batch;
    if lengths.len() != expected {
        return Err(Error::LengthsCount { features, batch, expected, got: lengths.len() });
    }
    offsets.clear();
    offsets.reserve(expected + 1);
    let mut total = 0_u64;
    offsets.push(0);
    for (bag, &length) in lengths.iter().enumerate() {
        let Ok(length) = u64::try_from(length) else {
            let (feature, sample) = (names[bag / batch].clone(), bag % batch);
            return Err(Error::NegativeLength { feature, sample, length });
        };
        total += length;
        offsets.push(total);
    }
    Ok(())
}

fn check_values(offsets: &[u64], values: usize, weights: Option<&[f32]>) -> Result<()> {
    let lengths = offsets.last().copied().unwrap_or(0);
    if lengths != values as u64 {
        return Err(Error::LengthsSum { lengths, values });
    }
    check_weights(values, weights)
}

fn check_weights(values: usize, weights: Option<&[f32]>) -> Result<()> {
    match weights {
        Some(weights) if weights.len() != values => {
            Err(Error::WeightsCount { values, weights: weights.len() })
        }
        _ => Ok(()),
    }
}

fn check_offsets(features: usize, batch: usize, offsets: &[i64], values: usize) -> Result<()> {
    let expected = features * batch + 1;
    if offsets.len() != expected {
        return Err(Error::OffsetsCount { features, batch, expected, got: offsets.len() });
    }
    if offsets[0] != 0 {
        return Err(Error::OffsetsStart { first: offsets[0] });
    }
    if let Some(at) = offsets.windows(2).position(|pair| pair[1] < pair[0]) {
        return Err(Error::OffsetsDecrease {
            index: at + 1,
            previous: offsets[at],
            next: offsets[at + 1],
        });
    }
    let last = offsets[expected - 1];
    if last != values as i64 {
        return Err(Error::OffsetsEnd { last, values });
    }
    Ok(())
}
