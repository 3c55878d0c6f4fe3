//! The register tiles of the matrix product.
//!
//! A tile of `MR x NR` outputs lives in registers while `k` runs; per step it takes `NR / lanes`
//! vector loads and `MR` broadcasts for `2 * MR * NR` flops. Each output is one chain
//! `c = fma(a[k], b[k], c)` with `k` ascending, so neither the tile size nor the instruction set
//! (AVX2 or AVX-512) nor the cut of `k` into blocks changes a bit of it.

/// `NR` columns of the second operand: element `(k, j)` is at `k * stride + j`.
#[derive(Clone, Copy, Debug)]
pub(in crate::cpu) struct Panel<'a> {
    data: &'a [f32],
    stride: usize,
    depth: usize,
}

impl<'a> Panel<'a> {
    /// A panel that was packed: `data` is `[depth][NR]`.
    pub(in crate::cpu) fn packed<const NR: usize>(data: &'a [f32]) -> Self {
        Self { data, stride: NR, depth: data.len() / NR }
    }

    /// A panel where it lies, in rows `stride` apart.
    pub(in crate::cpu) fn strided(data: &'a [f32], stride: usize, depth: usize) -> Self {
        Self { data, stride, depth }
    }

    /// Asserts that the elements of `nr` columns exist; kernels rely on it.
    #[inline(always)]
    fn assert_inside(&self, nr: usize) {
        assert_inside(self.data, self.stride, self.depth, nr);
    }
}

/// Asserts that `depth` rows of `width`, `stride` apart, are inside `data`.
#[inline(always)]
fn assert_inside(data: &[f32], stride: usize, depth: usize, width: usize) {
    let need = depth.checked_sub(1).map(|last| last.checked_mul(stride).map(|at| at + width));
    assert!(
        need.is_none_or(|need| need.is_some_and(|need| need <= data.len())),
        "operand too short"
    );
}

/// The tiles of one instruction set; a value exists only where the processor has it.
pub(in crate::cpu) trait Kernel<const MR: usize, const NR: usize>:
    Copy + Send + Sync
{
    /// `c[MR, NR] (+)= a * b`, with `a` given as `MR` rows of at least `b.depth` elements.
    /// `load`: whether the chain begins with what is in `c`, else with 0.
    fn rows(self, a: [&[f32]; MR], b: Panel<'_>, c: &mut [f32], stride: usize, load: bool);

    /// The same with `a` given transposed: element `(i, k)` is at `k * a_stride + i`.
    fn columns(
        self,
        a: &[f32],
        a_stride: usize,
        b: Panel<'_>,
        c: &mut [f32],
        stride: usize,
        load: bool,
    );
}

/// Something generic over the tiles, called once with those of this processor.
pub(in crate::cpu) trait WithKernel {
    /// Runs with the tiles.
    fn run<const MR: usize, const NR: usize>(self, kernel: impl Kernel<MR, NR>);
}

/// Calls `work` with the widest tiles that the processor has.
pub(in crate::cpu) fn dispatch(work: impl WithKernel) {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(kernel) = Avx512::detect() {
            return work.run(kernel);
        }
        if let Some(kernel) = Avx2::detect() {
            return work.run(kernel);
        }
    }
    work.run(Portable);
}

/// Plain multiply and add, for processors without FMA.
#[derive(Clone, Copy, Debug)]
pub(in crate::cpu) struct Portable;

impl Kernel<4, 8> for Portable {
    #[inline(always)]
    fn rows(self, a: [&[f32]; 4], b: Panel<'_>, c: &mut [f32], stride: usize, load: bool) {
        portable(b, c, stride, load, |k| a.map(|row| row[k]));
    }

    #[inline(always)]
    fn columns(
        self,
        a: &[f32],
        a_stride: usize,
        b: Panel<'_>,
        c: &mut [f32],
        stride: usize,
        load: bool,
    ) {
        portable(b, c, stride, load, |k| {
            *a[k * a_stride..].first_chunk().expect("invariant: MR elements of each column")
        });
    }
}

/// The tile of [`Portable`].
fn portable(b: Panel<'_>, c: &mut [f32], stride: usize, load: bool, a: impl Fn(usize) -> [f32; 4]) {
    let mut tile = [[0.0f32; 8]; 4];
    if load {
        for (i, tile) in tile.iter_mut().enumerate() {
            tile.copy_from_slice(&c[i * stride..][..8]);
        }
    }
    for k in 0..b.depth {
        let b: &[f32; 8] =
            b.data[k * b.stride..].first_chunk().expect("invariant: NR elements of each row");
        for (tile, a) in tile.iter_mut().zip(a(k)) {
            for (tile, b) in tile.iter_mut().zip(b) {
                *tile += a * b;
            }
        }
    }
    for (i, tile) in tile.iter().enumerate() {
        c[i * stride..][..8].copy_from_slice(tile);
    }
}

/// Writes the tile of one instruction set; the body is the same for all of them.
#[cfg(target_arch = "x86_64")]
macro_rules! tiles {
    (
        $(#[$doc:meta])* $name:ident, $module:ident, [$($feature:tt)+], $mr:literal x $nr:literal,
        $vector:ident, $zero:ident, $load:ident, $store:ident, $splat:ident, $fma:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $name(());

        impl $name {
            /// The tiles, if the processor has the instructions.
            pub(super) fn detect() -> Option<Self> {
                $module::detected().then_some(Self(()))
            }
        }

        impl Kernel<$mr, $nr> for $name {
            #[inline(always)]
            fn rows(
                self,
                a: [&[f32]; $mr],
                b: Panel<'_>,
                c: &mut [f32],
                stride: usize,
                load: bool,
            ) {
                // SAFETY: `self` exists, so `detect` found the features of the function.
                unsafe { $module::rows(a, b, c, stride, load) }
            }

            #[inline(always)]
            fn columns(
                self,
                a: &[f32],
                a_stride: usize,
                b: Panel<'_>,
                c: &mut [f32],
                stride: usize,
                load: bool,
            ) {
                // SAFETY: `self` exists, so `detect` found the features of the function.
                unsafe { $module::columns(a, a_stride, b, c, stride, load) }
            }
        }

        mod $module {
            use super::{Panel, assert_inside};
            use std::arch::x86_64::{$fma, $load, $splat, $store, $vector, $zero};

            const LANES: usize = $nr / 2;

            pub(super) fn detected() -> bool {
                $(std::arch::is_x86_feature_detected!($feature))&&+
            }

            $(#[target_feature(enable = $feature)])+
            pub(super) fn rows(
                a: [&[f32]; $mr],
                b: Panel<'_>,
                c: &mut [f32],
                stride: usize,
                load: bool,
            ) {
                b.assert_inside($nr);
                for row in a {
                    assert!(row.len() >= b.depth, "rows of the first operand are too short");
                }
                let mut tile = begin(c, stride, load);
                for k in 0..b.depth {
                    // SAFETY: `k < depth`, and row `k` of the panel was asserted to exist.
                    let row = unsafe { b.data.get_unchecked(k * b.stride..) };
                    let (low, high) = halves(row);
                    for i in 0..$mr {
                        // SAFETY: `k < depth`, which no row is shorter than.
                        let x = $splat(unsafe { *a[i].get_unchecked(k) });
                        tile[i][0] = $fma(x, low, tile[i][0]);
                        tile[i][1] = $fma(x, high, tile[i][1]);
                    }
                }
                end(&tile, c, stride);
            }

            $(#[target_feature(enable = $feature)])+
            pub(super) fn columns(
                a: &[f32],
                a_stride: usize,
                b: Panel<'_>,
                c: &mut [f32],
                stride: usize,
                load: bool,
            ) {
                b.assert_inside($nr);
                assert_inside(a, a_stride, b.depth, $mr);
                let mut tile = begin(c, stride, load);
                for k in 0..b.depth {
                    // SAFETY: `k < depth`, and row `k` of the panel was asserted to exist.
                    let row = unsafe { b.data.get_unchecked(k * b.stride..) };
                    let (low, high) = halves(row);
                    for i in 0..$mr {
                        // SAFETY: `k < depth` and `i < MR`, asserted to be inside.
                        let x = $splat(unsafe { *a.get_unchecked(k * a_stride + i) });
                        tile[i][0] = $fma(x, low, tile[i][0]);
                        tile[i][1] = $fma(x, high, tile[i][1]);
                    }
                }
                end(&tile, c, stride);
            }

            #[inline]
            $(#[target_feature(enable = $feature)])+
            fn begin(c: &[f32], stride: usize, load: bool) -> [[$vector; 2]; $mr] {
                let mut tile = [[$zero(); 2]; $mr];
                if load {
                    for (i, tile) in tile.iter_mut().enumerate() {
                        (tile[0], tile[1]) = halves(&c[i * stride..][..$nr]);
                    }
                }
                tile
            }

            #[inline]
            $(#[target_feature(enable = $feature)])+
            fn end(tile: &[[$vector; 2]; $mr], c: &mut [f32], stride: usize) {
                for (i, tile) in tile.iter().enumerate() {
                    let row: &mut [f32; $nr] =
                        c[i * stride..].first_chunk_mut().expect("invariant: NR columns");
                    let (low, high) = row.split_at_mut(LANES);
                    // SAFETY: `low` has `LANES` elements, the store writes as many.
                    unsafe { $store(low.as_mut_ptr(), tile[0]) };
                    // SAFETY: `high` has `NR - LANES = LANES` elements, the store writes as many.
                    unsafe { $store(high.as_mut_ptr(), tile[1]) };
                }
            }

            /// The first `NR` elements of `row`, which every caller has shown to exist.
            #[inline]
            $(#[target_feature(enable = $feature)])+
            fn halves(row: &[f32]) -> ($vector, $vector) {
                debug_assert!(row.len() >= $nr);
                // SAFETY: `row` has at least `NR` elements, the load reads the first `LANES`.
                let first = unsafe { $load(row.as_ptr()) };
                // SAFETY: `row` has at least `NR = 2 * LANES` elements.
                let second = unsafe { row.as_ptr().add(LANES) };
                // SAFETY: `LANES` elements follow `second` in `row`.
                (first, unsafe { $load(second) })
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
tiles!(
    /// 6 x 16 outputs in 12 of the 16 AVX2 registers.
    Avx2, avx2, ["avx2" "fma"], 6 x 16,
    __m256, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_fmadd_ps
);

#[cfg(target_arch = "x86_64")]
tiles!(
    /// 12 x 32 outputs in 24 of the 32 AVX-512 registers.
    Avx512, avx512, ["avx512f"], 12 x 32,
    __m512, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps
);
