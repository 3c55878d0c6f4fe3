//! What one rank measures between two looks: [`Window`], [`Figures`].

use emb_comm::Meter;
use std::time::Instant;

/// Steps whose times to compute are kept for their median; of more, the last ones.
const KEPT: usize = 256;

/// What a rank's own thread has spent in collectives so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// The exchanges of the tables.
    pub(super) exchanges: Meter,
    /// Those of the tables that make replicas equal.
    pub(super) syncs: Meter,
    /// Those of all ranks: the total of the loss.
    pub(super) loss: Meter,
    /// The sums of dense gradients.
    pub(super) dense: Meter,
}

impl Reading {
    fn all(&self) -> Meter {
        [self.exchanges, self.syncs, self.loss, self.dense].into_iter().sum()
    }

    /// What came since an earlier reading.
    fn since(&self, earlier: &Self) -> Self {
        Self {
            exchanges: self.exchanges - earlier.exchanges,
            syncs: self.syncs - earlier.syncs,
            loss: self.loss - earlier.loss,
            dense: self.dense - earlier.dense,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        let sum = |a: Meter, b: Meter| [a, b].into_iter().sum();
        Self {
            exchanges: sum(self.exchanges, other.exchanges),
            syncs: sum(self.syncs, other.syncs),
            loss: sum(self.loss, other.loss),
            dense: sum(self.dense, other.dense),
        }
    }
}

/// What a rank measured in a window, a step: seconds and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) step: f64,
    pub(super) exchange: f64,
    pub(super) sync: f64,
    pub(super) loss: f64,
    pub(super) dense: f64,
    pub(super) wait: f64,
    /// Median and lower quartile of the seconds to compute.
    pub(super) median: f64,
    pub(super) quartile: f64,
    /// Inside and between nodes.
    pub(super) exchange_bytes: [f64; 2],
    /// The same; not a number before the first period of the syncs is over.
    pub(super) sync_bytes: [f64; 2],
}

impl Figures {
    pub(super) const COUNT: usize = 12;

    /// Mean seconds to compute.
    pub(super) fn compute(&self) -> f64 {
        self.step - self.exchange - self.sync - self.loss - self.dense
    }

    /// Bytes of all collectives of the tables.
    pub(super) fn bytes(&self) -> f64 {
        let known = |bytes: &&f64| bytes.is_finite();
        self.exchange_bytes.iter().chain(&self.sync_bytes).filter(known).sum()
    }

    pub(super) fn to_array(self) -> [f64; Self::COUNT] {
        let Self { step, exchange, sync, loss, dense, wait, median, quartile, .. } = self;
        let ([a, b], [c, d]) = (self.exchange_bytes, self.sync_bytes);
        [step, exchange, sync, loss, dense, wait, median, quartile, a, b, c, d]
    }

    pub(super) fn from_array(array: [f64; Self::COUNT]) -> Self {
        let [step, exchange, sync, loss, dense, wait, median, quartile, a, b, c, d] = array;
        let (exchange_bytes, sync_bytes) = ([a, b], [c, d]);
        Self {
            step,
            exchange,
            sync,
            loss,
            dense,
            wait,
            median,
            quartile,
            exchange_bytes,
            sync_bytes,
        }
    }
}

/// Times and meters of one rank since the last look.
#[derive(Debug)]
pub(super) struct Window {
    /// When the last step ended; in a pause, how long the next had been under way.
    last: Instant,
    seconds: f64,
    steps: u64,
    /// At the beginning of the window, and at the end of the last step.
    begin: Reading,
    end: Reading,
    /// What collectives in pauses cost.
    left_out: Reading,
    pause: Option<(f64, Reading)>,
    /// Seconds to compute of each step.
    computed: Vec<f64>,
    syncs: WholePeriods,
}

impl Window {
    /// Begins before a step; syncs recur every `period` steps.
    pub(super) fn new(period: u64, reading: Reading) -> Self {
        Self {
            last: Instant::now(),
            seconds: 0.0,
            steps: 0,
            begin: reading,
            end: reading,
            left_out: Reading::default(),
            pause: None,
            computed: Vec::with_capacity(KEPT),
            // From the first end of a period on: a sync beside counts in the step after its own.
            syncs: WholePeriods { period, begin: None, end: None, mean: [f64::NAN; 2] },
        }
    }

    /// The end of step `step`.
    pub(super) fn step(&mut self, step: u64, reading: &Reading) {
        let reading = reading.since(&self.left_out);
        let now = Instant::now();
        let seconds = now.duration_since(self.last).as_secs_f64();
        let computed = (seconds - reading.since(&self.end).all().seconds()).max(0.0);
        let place = self.steps as usize % KEPT;
        match self.computed.get_mut(place) {
            Some(oldest) => *oldest = computed,
            None => self.computed.push(computed),
        }
        self.syncs.step(step, &reading.syncs);
        (self.last, self.end) = (now, reading);
        self.seconds += seconds;
        self.steps += 1;
    }

    /// Time and collectives do not count until [`resume`](Self::resume).
    pub(super) fn pause(&mut self, reading: Reading) {
        self.pause = Some((self.last.elapsed().as_secs_f64(), reading));
    }

    /// Goes on after a [`pause`](Self::pause).
    pub(super) fn resume(&mut self, reading: &Reading) {
        let Some((before, paused)) = self.pause.take() else { return };
        self.left_out = self.left_out.plus(&reading.since(&paused));
        let now = Instant::now();
        let before = std::time::Duration::from_secs_f64(before);
        self.last = now.checked_sub(before).unwrap_or(now);
    }

    /// Steps since the last look.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// What was measured, at least one step.
    pub(super) fn figures(&mut self) -> Figures {
        let steps = self.steps.max(1) as f64;
        let spent = self.end.since(&self.begin);
        let exchanged = spent.exchanges;
        let each = |bytes: u64| bytes as f64 / steps;
        Figures {
            step: self.seconds / steps,
            exchange: exchanged.seconds() / steps,
            sync: spent.syncs.seconds() / steps,
            loss: spent.loss.seconds() / steps,
            dense: spent.dense.seconds() / steps,
            wait: spent.all().wait_seconds / steps,
            median: part(&mut self.computed, 2),
            quartile: part(&mut self.computed, 4),
            exchange_bytes: [each(exchanged.intra_node_bytes), each(exchanged.inter_node_bytes)],
            sync_bytes: self.syncs.take(),
        }
    }

    /// Begins anew.
    pub(super) fn restart(&mut self, reading: &Reading) {
        let reading = reading.since(&self.left_out);
        (self.begin, self.end) = (reading, reading);
        (self.seconds, self.steps) = (0.0, 0);
        self.computed.clear();
        self.last = Instant::now();
    }
}

/// The value with one `of`-th of the values below it.
fn part(values: &mut [f64], of: usize) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let place = values.len() / of;
    *values.select_nth_unstable_by(place.min(values.len() - 1), f64::total_cmp).1
}

/// Bytes of syncs that recur every so many steps: of a window of other steps, the mean would depend
/// on how many syncs happen to fall into it.
#[derive(Debug)]
struct WholePeriods {
    period: u64,
    /// Step and bytes, at the ends of periods.
    begin: Option<(u64, [u64; 2])>,
    end: Option<(u64, [u64; 2])>,
    /// The last mean.
    mean: [f64; 2],
}

impl WholePeriods {
    fn step(&mut self, step: u64, syncs: &Meter) {
        if step.is_multiple_of(self.period) {
            let now = (step, [syncs.intra_node_bytes, syncs.inter_node_bytes]);
            self.begin = self.begin.or(Some(now));
            self.end = Some(now);
        }
    }

    /// Bytes a step of the periods that ended since the last call, else of those before.
    fn take(&mut self) -> [f64; 2] {
        if let (Some((first, before)), Some((last, after))) = (self.begin, self.end)
            && last > first
        {
            let each = |level: usize| (after[level] - before[level]) as f64 / (last - first) as f64;
            self.mean = [each(0), each(1)];
            self.begin = self.end;
        }
        self.mean
    }
}
