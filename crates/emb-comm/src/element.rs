//! What collectives carry: [`Element`], [`Sum`], [`Reduction`].

use half::{bf16, f16};

/// A plain number that every transport can move. Sealed: transports match on the list below.
///
/// Rows of fewer bits travel as `u8`, encoded by [`Wire`](crate::Wire).
pub trait Element:
    sealed::Sealed + bytemuck::Pod + Default + PartialEq + Send + Sync + 'static
{
    /// Name of the type, for errors and meters.
    const NAME: &'static str;
}

/// An element that can be reduced.
pub trait Sum: Element {
    /// `self + other`, rounded to the nearest, ties to even. Integers wrap around.
    #[must_use]
    fn plus(self, other: Self) -> Self;

    /// The larger of the two; not-a-number if either is, so that it is seen on every rank.
    #[must_use]
    fn larger(self, other: Self) -> Self;
}

/// How values of different ranks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduction {
    /// [`Sum::plus`], in rank order.
    Sum,
    /// [`Sum::larger`], in rank order.
    Max,
}

pub(crate) mod sealed {
    pub trait Sealed {
        /// Tells the types of this list apart: no two have the same.
        const CODE: u8;
    }
}

macro_rules! elements {
    ($($code:literal $name:literal $type:ty,)*) => {
        $(
            impl sealed::Sealed for $type {
                const CODE: u8 = $code;
            }

            impl Element for $type {
                const NAME: &'static str = $name;
            }
        )*

        /// The name of the type with a code.
        pub(crate) fn name_of(code: u8) -> &'static str {
            match code {
                $($code => <$type as Element>::NAME,)*
                _ => "nothing",
            }
        }
    };
}

elements! {
    1 "u8" u8,
    2 "u32" u32,
    3 "u64" u64,
    4 "i64" i64,
    5 "f32" f32,
    6 "f64" f64,
    7 "f16" f16,
    8 "bf16" bf16,
}

macro_rules! floats {
    ($($type:ident)*) => {$(
        impl Sum for $type {
            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn larger(self, other: Self) -> Self {
                // A comparison with not-a-number is false: `other` is taken, unless `self` is it.
                if self > other || self.is_nan() { self } else { other }
            }
        }
    )*};
}

floats! { f32 f64 }

macro_rules! halves {
    ($($type:ident)*) => {$(
        impl Sum for $type {
            /// The sum as `f32` has more than twice the digits: rounded again, it is the nearest.
            fn plus(self, other: Self) -> Self {
                Self::from_f32(self.to_f32() + other.to_f32())
            }

            fn larger(self, other: Self) -> Self {
                if self > other || self.is_nan() { self } else { other }
            }
        }
    )*};
}

halves! { f16 bf16 }

impl Sum for u64 {
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
}
