//! A rank that computes slower than it could: [`Slowed`].

use crate::hooked::{Hook, Hooked};
use emb_comm::Result;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A collective whose rank takes a factor times as long between two operations.
pub(crate) type Slowed<C> = Hooked<C, Slow>;

/// What a rank computed, it sleeps `factor - 1` times as long again before its next operation.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    factor: f64,
    /// The end of the last operation of any set of this rank.
    since: Arc<Mutex<Instant>>,
}

impl Slow {
    pub(crate) fn new(factor: f64) -> Self {
        Self { factor, since: Arc::new(Mutex::new(Instant::now())) }
    }
}

impl<C> Hook<C> for Slow {
    fn before(&self, _inner: &C) -> Result<()> {
        let computed = self.since.lock().expect("whole").elapsed();
        if self.factor > 1.0 {
            std::thread::sleep(computed.mul_f64(self.factor - 1.0));
        }
        Ok(())
    }

    fn after(&self) {
        *self.since.lock().expect("whole") = Instant::now();
    }
}
