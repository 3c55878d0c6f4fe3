//! A vector indexed by one kind of id.

use crate::{Error, Id, Result};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A vector whose positions are ids of kind `I`, so that a table's number cannot index ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypedVec<I, T> {
    items: Vec<T>,
    id: PhantomData<fn(I) -> I>,
}

impl<I: Id, T> TypedVec<I, T> {
    /// Names the positions of `items` in order.
    ///
    /// # Errors
    /// A number of items beyond 32 bits.
    pub fn new(items: Vec<T>) -> Result<Self> {
        I::from_index(items.len())?;
        Ok(Self { items, id: PhantomData })
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The item named `id`.
    ///
    /// # Errors
    /// An id that names nothing here.
    pub fn get(&self, id: I) -> Result<&T> {
        self.items.get(id.index()).ok_or(Error::NoSuch {
            kind: I::KIND,
            index: id.index() as u64,
            count: self.items.len() as u64,
        })
    }

    /// Every item with its id, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (I, &T)> {
        // `new` checked that the length fits in 32 bits.
        (0..self.items.len() as u32).map(I::from_number).zip(&self.items)
    }

    /// The items without their ids.
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }
}

/// # Panics
/// An id that names nothing here; [`TypedVec::get`] is the checked form.
impl<I: Id, T> Index<I> for TypedVec<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

/// # Panics
/// An id that names nothing here.
impl<I: Id, T> IndexMut<I> for TypedVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;

    #[test]
    fn items_are_found_by_their_ids_and_only_by_them() {
        let mut names: TypedVec<Rank, &str> = TypedVec::new(vec!["a", "b"]).expect("fits");
        names[Rank::new(1)] = "c";
        let pairs: Vec<_> = names.iter().map(|(rank, name)| (rank.get(), *name)).collect();
        assert_eq!(pairs, [(0, "a"), (1, "c")]);
        let error = names.get(Rank::new(2)).expect_err("two items");
        assert_eq!(error.to_string(), "rank 2 does not exist: there are 2");
    }
}
