//! The register tiles of the matrix product.
//!
//! A tile of `MR x NR` outputs lives in registers while `k` runs; per step it takes `NR / lanes`
//! vector loads and `MR` broadcasts for `2 * MR * NR` flops. Each output is one chain
//! `c = fma(a[k], b[k], c)` with `k` ascending, so neither the tile size nor the instruction set
//! (AVX2 or AVX-512) nor the cut of `k` into blocks changes a bit of it.

/// The tiles of one instruction set; a value exists only where the processor has it.
pub(super) trait Kernel<const MR: usize, const NR: usize>: Copy + Send + Sync {
    /// `c[MR, NR] (+)= a * b`, with `a` given as `MR` rows of at least `b.len()` elements.
    /// `load`: whether the chain begins with what is in `c`, else with 0.
    fn rows(self, a: [&[f32]; MR], b: &[[f32; NR]], c: &mut [f32], stride: usize, load: bool);

    /// The same with `a` given transposed: `b.len()` columns of `MR` elements.
    fn columns(self, a: &[[f32; MR]], b: &[[f32; NR]], c: &mut [f32], stride: usize, load: bool);
}

/// Plain multiply and add, for processors without FMA.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Kernel<4, 8> for Portable {
    #[inline(always)]
    fn rows(self, a: [&[f32]; 4], b: &[[f32; 8]], c: &mut [f32], stride: usize, load: bool) {
        portable(b, c, stride, load, |k| a.map(|row| row[k]));
    }

    #[inline(always)]
    fn columns(self, a: &[[f32; 4]], b: &[[f32; 8]], c: &mut [f32], stride: usize, load: bool) {
        portable(b, c, stride, load, |k| a[k]);
    }
}

/// The tile of [`Portable`].
fn portable(
    b: &[[f32; 8]],
    c: &mut [f32],
    stride: usize,
    load: bool,
    a: impl Fn(usize) -> [f32; 4],
) {
    let mut tile = [[0.0f32; 8]; 4];
    if load {
        for (i, tile) in tile.iter_mut().enumerate() {
            tile.copy_from_slice(&c[i * stride..][..8]);
        }
    }
    for (k, b) in b.iter().enumerate() {
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
                b: &[[f32; $nr]],
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
                a: &[[f32; $mr]],
                b: &[[f32; $nr]],
                c: &mut [f32],
                stride: usize,
                load: bool,
            ) {
                // SAFETY: `self` exists, so `detect` found the features of the function.
                unsafe { $module::columns(a, b, c, stride, load) }
            }
        }

        mod $module {
            use std::arch::x86_64::{$fma, $load, $splat, $store, $vector, $zero};

            const LANES: usize = $nr / 2;

            pub(super) fn detected() -> bool {
                $(std::arch::is_x86_feature_detected!($feature))&&+
            }

            $(#[target_feature(enable = $feature)])+
            pub(super) fn rows(
                a: [&[f32]; $mr],
                b: &[[f32; $nr]],
                c: &mut [f32],
                stride: usize,
                load: bool,
            ) {
                let a = a.map(|row| &row[..b.len()]);
                let mut tile = begin(c, stride, load);
                for (k, b) in b.iter().enumerate() {
                    let (low, high) = halves(b);
                    for i in 0..$mr {
                        let x = $splat(a[i][k]);
                        tile[i][0] = $fma(x, low, tile[i][0]);
                        tile[i][1] = $fma(x, high, tile[i][1]);
                    }
                }
                end(&tile, c, stride);
            }

            $(#[target_feature(enable = $feature)])+
            pub(super) fn columns(
                a: &[[f32; $mr]],
                b: &[[f32; $nr]],
                c: &mut [f32],
                stride: usize,
                load: bool,
            ) {
                let mut tile = begin(c, stride, load);
                for (a, b) in a.iter().zip(b) {
                    let (low, high) = halves(b);
                    for i in 0..$mr {
                        let x = $splat(a[i]);
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
                        let row = c[i * stride..].first_chunk().expect("invariant: NR columns");
                        (tile[0], tile[1]) = halves(row);
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

            #[inline]
            $(#[target_feature(enable = $feature)])+
            fn halves(row: &[f32; $nr]) -> ($vector, $vector) {
                let (low, high) = row.split_at(LANES);
                // SAFETY: `low` has `LANES` elements, the load reads as many.
                let first = unsafe { $load(low.as_ptr()) };
                // SAFETY: `high` has `NR - LANES = LANES` elements, the load reads as many.
                let second = unsafe { $load(high.as_ptr()) };
                (first, second)
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
