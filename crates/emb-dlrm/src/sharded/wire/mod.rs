//! How what ranks tell each other becomes bytes: ids ([`IdWire`]), rows and gradients ([`Wires`]).

mod carrier;
mod ids;
mod narrow;
mod parcels;
mod wires;

pub(super) use carrier::{Carrier, Lists, Side};
pub use ids::IdWire;
pub(super) use ids::PackedLists;
pub(crate) use narrow::Narrow;
pub(super) use parcels::{Kind, Kinds, Parcel, merged};
pub(crate) use wires::Format;
pub use wires::Wires;
