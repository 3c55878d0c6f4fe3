//! NCCL: which library, where it was found.

use super::known::{trouble, version};
use super::{Check, System};
use emb_comm::Nccl;

const AREA: &str = "NCCL";

pub(super) fn checks(_system: &System<'_>) -> Vec<Check> {
    let name = "library";
    let check = match Nccl::library() {
        Err(error) => Check::ok(AREA, name, error.to_string()).warn(
            "--transport nccl will not start: install libnccl2, or name the file by EMB_NCCL",
        ),
        Ok((file, text)) => {
            let check = Check::ok(AREA, name, format!("{text}, {file}"));
            match version(&text).and_then(|version| trouble(AREA, version)) {
                Some(known) => check.warn(format!("{known}: take another version")),
                None => check,
            }
        }
    };
    vec![check]
}
