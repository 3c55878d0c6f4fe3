//! A stable number for a set of tables.

use crate::{Pooling, Table};

/// FNV-1a, 64 bits (Fowler, Noll and Vo): the same on every machine and in every version.
struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }
}

/// Fingerprint of what a plan and a run must agree on: names, shapes, stored bytes, pooling and
/// features, in order. Estimates (pooling factors) and the optimizer's state are left out: they
/// may change under a plan.
pub(crate) fn fingerprint(tables: &[Table]) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.number(tables.len() as u64);
    for table in tables {
        hash.text(table.name());
        hash.number(table.rows());
        hash.number(table.dim() as u64);
        hash.number(u64::from(table.element_bytes()));
        hash.number(match table.pooling() {
            Pooling::Sum => 0,
            Pooling::Mean => 1,
            Pooling::None => 2,
        });
        hash.number(table.features().len() as u64);
        for feature in table.features() {
            hash.text(feature);
        }
    }
    hash.0
}
