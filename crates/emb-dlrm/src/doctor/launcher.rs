//! Who started this process.

use super::{Check, System};
use crate::launch::Place;

const AREA: &str = "launcher";

pub(super) fn checks(system: &System<'_>) -> Vec<Check> {
    let name = "place";
    let check = match Place::find(system.variable) {
        Ok(None) => Check::ok(AREA, name, "started by hand: one process"),
        Ok(Some(place)) => {
            let local = match (place.local_rank, place.local_world) {
                (Some(rank), Some(world)) => format!(", {rank} of {world} on its host"),
                _ => String::new(),
            };
            let found =
                format!("{}: rank {} of {}{local}", place.launcher, place.rank, place.world);
            Check::ok(AREA, name, found)
        }
        Err(error) => Check::ok(AREA, name, error.to_string())
            .problem("start the ranks by one launcher, or unset the variables it did not set"),
    };
    vec![check]
}
