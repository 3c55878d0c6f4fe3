//! What collectives carry: [`Element`], [`Sum`].

/// A plain number that every transport can move. Sealed: transports match on the list below.
pub trait Element: sealed::Sealed + Copy + Default + PartialEq + Send + Sync + 'static {
    /// Name of the type, for errors and meters.
    const NAME: &'static str;
}

/// An element that can be reduced.
pub trait Sum: Element {
    /// `self + other`.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($type:ident)*) => {$(
        impl sealed::Sealed for $type {}

        impl Element for $type {
            const NAME: &'static str = stringify!($type);
        }
    )*};
}

elements! { u8 u32 u64 i64 f32 f64 }

impl Sum for f32 {
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl Sum for f64 {
    fn plus(self, other: Self) -> Self {
        self + other
    }
}
