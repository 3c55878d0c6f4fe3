//! Routing operations of a backend against the specification.

use super::case::{Random, cases};
use super::host::{download, upload};
use crate::reference::embedding as reference;
use crate::{Backend, Bucketized, Error, Mat, RowMapView, Unique};

/// Batches split by owner, with uneven, empty and modulo row maps.
///
/// # Panics
/// When the backend differs from the specification.
pub fn bucketize<B: Backend>(make: impl Fn() -> B) {
    let mut backend = make();
    for case in cases() {
        let batch = case.batch.as_ref();
        let rows = |f: usize| case.specs[case.features[f].table].rows;
        let features = 0..case.features.len();
        // Of three owners the second has nothing, and the first one row where there are more.
        let starts: Vec<[u64; 4]> =
            features.clone().map(|f| [0, rows(f).min(1), rows(f).min(1), rows(f)]).collect();
        let ranges: Vec<_> = starts.iter().map(|starts| RowMapView::Range(starts)).collect();
        let modulo: Vec<_> = features.map(|_| RowMapView::Modulo { owners: 3 }).collect();
        for maps in [ranges, modulo] {
            let expected = reference::bucketize(batch, &maps, 3);
            let (mut lengths, mut ids, mut positions) =
                (vec![9; expected.0.len()], vec![9; expected.1.len()], vec![9; expected.2.len()]);
            let mut out =
                Bucketized { lengths: &mut lengths, ids: &mut ids, positions: &mut positions };
            backend.bucketize(batch, &maps, &mut out).expect("owners for all ids");
            assert_eq!((lengths, ids, positions), expected, "case {}", case.seed);
        }
    }
    refuses_ids_without_owner(&mut backend);
}

fn refuses_ids_without_owner<B: Backend>(backend: &mut B) {
    let batch = crate::Jagged::from_lengths(&["f"], 2, &[1, 2], vec![0, 1, 9], None);
    let batch = batch.expect("consistent lengths");
    let (mut lengths, mut ids, mut positions) = ([7; 4], [7; 3], [7; 3]);
    let mut out = Bucketized { lengths: &mut lengths, ids: &mut ids, positions: &mut positions };
    let refused = backend.bucketize(batch.as_ref(), &[RowMapView::Range(&[0, 4, 9])], &mut out);
    let feature = "f".to_owned();
    assert_eq!(refused, Err(Error::NoOwner { feature, sample: 1, position: 1, id: 9 }));
    assert_eq!((lengths, ids, positions), ([7; 4], [7; 3], [7; 3]), "nothing is written");
}

/// Distinct ids in ascending order and the way back, also for ids that fill 63 bits.
///
/// # Panics
/// When the backend differs from the specification.
pub fn unique<B: Backend>(make: impl Fn() -> B) {
    let mut backend = make();
    let mut random = Random(5);
    for n in [0, 1, 2, 100, 5000] {
        for end in [1, 3, 1000, 1 << 40, i64::MAX as u64] {
            let given: Vec<i64> = (0..n).map(|_| random.below(end) as i64).collect();
            let expected = reference::unique(&given);
            let (mut ids, mut inverse) = (vec![0; n], vec![0; n]);
            let mut out = Unique { ids: &mut ids, inverse: &mut inverse };
            let count = backend.unique(&given, &mut out).expect("no negative id");
            ids.truncate(count);
            assert_eq!((ids, inverse), expected, "{n} ids below {end}");
        }
    }
    let mut out = Unique { ids: &mut [0; 2], inverse: &mut [0; 2] };
    let refused = backend.unique(&[3, -1], &mut out);
    assert_eq!(refused, Err(Error::NegativeId { position: 1, id: -1 }));
}

/// Rows added by their index, in order.
///
/// # Panics
/// When the backend differs from the specification.
pub fn segment_sum<B: Backend>(make: impl Fn() -> B) {
    let mut backend = make();
    let mut random = Random(6);
    for dim in [1, 5, 16, 33, 128] {
        for (n, count) in [(0, 3), (1, 1), (500, 7), (500, 400)] {
            let values = random.values(n * dim);
            let inverse: Vec<u32> = (0..n).map(|_| random.below(count as u64) as u32).collect();
            let mut expected = vec![0.0_f32; count * dim];
            for (k, &row) in inverse.iter().enumerate() {
                for c in 0..dim {
                    expected[row as usize * dim + c] += values[k * dim + c];
                }
            }
            let device = upload(&mut backend, &values);
            let mut out = upload(&mut backend, &vec![f32::NAN; count * dim]);
            let matrix = Mat::new(B::view(&device, 0..n * dim), n, dim);
            let to = Mat::new(B::view_mut(&mut out, 0..count * dim), count, dim);
            backend.segment_sum(matrix, &inverse, to).expect("shapes that fit");
            assert_eq!(download(&mut backend, &out), expected, "{n} rows of {dim} into {count}");
        }
    }
}
