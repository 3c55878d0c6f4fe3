//! What a kernel is given: [`Arg`], [`Args`].

use crate::{Stream, View, ViewMut};
use bytemuck::Pod;
use std::ffi::c_void;

/// One argument of a kernel.
pub trait Arg {
    /// What the kernel sees.
    type Raw: Copy;

    /// The value that it sees.
    fn raw(&self) -> Self::Raw;

    /// The home of the memory that it points to.
    fn home(&self) -> Option<&Stream> {
        None
    }
}

/// A plain structure, passed by value.
#[derive(Clone, Copy, Debug)]
pub struct Plain<T>(pub T);

impl<T: Pod> Arg for Plain<T> {
    type Raw = T;

    fn raw(&self) -> T {
        self.0
    }
}

macro_rules! numbers {
    ($($type:ident)*) => {$(
        impl Arg for $type {
            type Raw = $type;

            fn raw(&self) -> $type {
                *self
            }
        }
    )*};
}

numbers! { u32 i32 u64 i64 f32 f64 }

impl<T: Pod> Arg for View<'_, T> {
    type Raw = u64;

    fn raw(&self) -> u64 {
        self.pointer()
    }

    fn home(&self) -> Option<&Stream> {
        Some(View::home(*self))
    }
}

impl<T: Pod> Arg for ViewMut<'_, T> {
    type Raw = u64;

    fn raw(&self) -> u64 {
        self.pointer()
    }

    fn home(&self) -> Option<&Stream> {
        Some(ViewMut::home(self))
    }
}

/// A pointer, or null.
impl<A: Arg<Raw = u64>> Arg for Option<A> {
    type Raw = u64;

    fn raw(&self) -> u64 {
        self.as_ref().map_or(0, Arg::raw)
    }

    fn home(&self) -> Option<&Stream> {
        self.as_ref().and_then(Arg::home)
    }
}

/// All arguments of a kernel: a tuple of up to 20.
pub trait Args {
    /// Calls `launch` with pointers to the values, which live as long as the call.
    fn with<R>(&self, launch: impl FnOnce(&mut [*mut c_void]) -> R) -> R;

    /// Calls `each` with the home of every memory.
    fn homes<'a>(&'a self, each: &mut dyn FnMut(&'a Stream));
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),+))*) => {$(
        impl<$($name: Arg),+> Args for ($($name,)+) {
            fn with<R>(&self, launch: impl FnOnce(&mut [*mut c_void]) -> R) -> R {
                let mut values = ($(self.$index.raw(),)+);
                launch(&mut [$((&raw mut values.$index).cast(),)+])
            }

            fn homes<'a>(&'a self, each: &mut dyn FnMut(&'a Stream)) {
                $(if let Some(home) = self.$index.home() {
                    each(home);
                })+
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, S 17)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, S 17, T 18)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15, Q 16, S 17, T 18, U 19)
}
