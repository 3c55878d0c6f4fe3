//! Which positions of a group own the row parts of a block: [`Owners`].

use std::sync::Arc;

/// Owners of the row parts of a block, as positions `0..S` in the group: part `p` belongs to
/// `owners.get(p)`.
///
/// Positions, not ranks: the rank at position `k` of each group holds the same parts. Consecutive
/// owners take no memory, however many they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owners(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Span { first: u32, count: u32 },
    List(Arc<[u32]>),
}

impl Owners {
    /// `count` consecutive positions from `first`.
    pub fn span(first: u32, count: u32) -> Self {
        Self(Kind::Span { first, count })
    }

    /// The listed positions; a consecutive list equals its [`span`](Self::span).
    pub fn list(positions: &[u32]) -> Self {
        let first = positions.first().copied().unwrap_or(0);
        let expected = (first..=u32::MAX).take(positions.len());
        if positions.iter().copied().eq(expected) {
            return Self::span(first, positions.len() as u32);
        }
        Self(Kind::List(positions.into()))
    }

    /// Number of parts.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Span { count, .. } => *count as usize,
            Kind::List(positions) => positions.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The owner of part `part`; `None` where there is no such part, or it has no 32-bit owner.
    pub fn get(&self, part: usize) -> Option<u32> {
        match &self.0 {
            Kind::Span { first, count } if part < *count as usize => first.checked_add(part as u32),
            Kind::Span { .. } => None,
            Kind::List(positions) => positions.get(part).copied(),
        }
    }

    /// The part that `position` owns, the first one if it is listed twice.
    pub fn part_of(&self, position: u32) -> Option<usize> {
        match &self.0 {
            Kind::Span { first, count } => {
                let part = position.checked_sub(*first)?;
                (part < *count).then_some(part as usize)
            }
            Kind::List(positions) => positions.iter().position(|&owner| owner == position),
        }
    }

    /// All owners, in part order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).map_while(|part| self.get(part))
    }

    /// First and count where they are consecutive.
    pub fn as_span(&self) -> Option<(u32, u32)> {
        match self.0 {
            Kind::Span { first, count } => Some((first, count)),
            Kind::List(_) => None,
        }
    }
}
