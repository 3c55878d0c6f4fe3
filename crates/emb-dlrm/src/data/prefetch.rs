//! Reads ahead on one background thread.

use std::any::Any;
use std::mem;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::{BadRows, Batch, Error, Result, Source, SourceInfo, source::check_limit};

/// Batches in flight: one being used up by the reader while the other is filled.
const BUFFERS: usize = 2;

/// A source that reads ahead while its caller computes.
///
/// One thread owns the inner source and fills at most two batches ahead; filled and used batches
/// are swapped, so nothing is copied and nothing is allocated after warm-up. Samples, order and
/// errors are those of the inner source. Dropping it stops and joins the thread.
#[derive(Debug)]
pub struct Prefetch {
    limit: usize,
    info: SourceInfo,
    skipped: BadRows,
    state: State,
    /// Empty batches that wait for the next start.
    spare: Vec<Batch>,
    commands: Option<Sender<Command>>,
    replies: Receiver<Reply>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// `BUFFERS - spare` batches are being filled.
    Running,
    /// The end was reached: nothing more is asked for.
    Ended,
    /// An error was handed out.
    Failed,
}

#[derive(Debug)]
enum Command {
    Fill(Batch),
    Restart(u64),
}

#[expect(clippy::large_enum_variant, reason = "two are in flight at most, each moved once")]
#[derive(Debug)]
enum Reply {
    Filled { batch: Batch, read: Result<usize>, skipped: BadRows },
    Restarted(Result<()>),
}

impl Prefetch {
    /// Starts reading batches of `limit` samples ahead.
    ///
    /// # Errors
    /// A limit of 0; the operating system refusing a thread.
    pub fn new<S: Source + 'static>(source: S, limit: usize) -> Result<Self> {
        check_limit(limit)?;
        let info = source.describe();
        let (commands, orders) = channel();
        let (answers, replies) = channel();
        let thread = thread::Builder::new()
            .name("emb-prefetch".to_owned())
            .spawn(move || work(source, limit, &orders, &answers))
            .map_err(|error| Error::Stopped { reason: error.to_string() })?;
        let mut prefetch = Self {
            limit,
            info,
            skipped: BadRows::default(),
            state: State::Running,
            spare: vec![Batch::default(); BUFFERS],
            commands: Some(commands),
            replies,
            thread: Some(thread),
        };
        prefetch.order_spare()?;
        Ok(prefetch)
    }

    fn order_spare(&mut self) -> Result<()> {
        while let Some(batch) = self.spare.pop() {
            self.order(Command::Fill(batch))?;
        }
        Ok(())
    }

    fn order(&mut self, command: Command) -> Result<()> {
        match &self.commands {
            Some(commands) if commands.send(command).is_ok() => Ok(()),
            _ => Err(self.stopped()),
        }
    }

    fn reply(&mut self) -> Result<Reply> {
        self.replies.recv().map_err(|_| self.stopped())
    }

    /// The thread has gone: joins it for its reason.
    fn stopped(&mut self) -> Error {
        self.state = State::Failed;
        self.commands = None;
        let reason = match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => panic_message(panic.as_ref()),
            _ => "it was stopped before".to_owned(),
        };
        Error::Stopped { reason }
    }
}

impl Source for Prefetch {
    /// As the inner source; `limit` must be the one given to [`new`](Self::new).
    fn next(&mut self, limit: usize, batch: &mut Batch) -> Result<usize> {
        if limit != self.limit {
            let (option, value) = ("batch limit".to_owned(), limit.to_string());
            let valid = "the limit that the background reader was started with";
            return Err(Error::Option { option, value, valid });
        }
        match self.state {
            State::Running => {}
            State::Ended => {
                batch.clear();
                return Ok(0);
            }
            State::Failed => return Err(Error::Failed),
        }
        let Reply::Filled { batch: mut filled, read, skipped } = self.reply()? else {
            unreachable!("invariant: a restart waits for its own reply")
        };
        self.skipped = skipped;
        mem::swap(batch, &mut filled);
        match &read {
            Ok(0) => self.state = State::Ended,
            Ok(_) => {
                self.order(Command::Fill(filled))?;
                return read;
            }
            Err(_) => self.state = State::Failed,
        }
        self.spare.push(filled);
        read
    }

    fn restart_at(&mut self, row: u64) -> Result<()> {
        self.state = State::Failed;
        self.order(Command::Restart(row))?;
        loop {
            match self.reply()? {
                Reply::Filled { batch, .. } => self.spare.push(batch),
                Reply::Restarted(result) => {
                    result?;
                    break;
                }
            }
        }
        self.skipped = BadRows::default();
        self.state = State::Running;
        self.order_spare()
    }

    fn describe(&self) -> SourceInfo {
        self.info.clone()
    }

    fn skipped(&self) -> BadRows {
        self.skipped
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the reader is reported by `next`; here nobody asks for more.
            drop(thread.join());
        }
    }
}

/// The background thread: obeys commands in order until their sender is gone.
fn work<S: Source>(
    mut source: S,
    limit: usize,
    orders: &Receiver<Command>,
    answers: &Sender<Reply>,
) {
    for command in orders {
        let reply = match command {
            Command::Fill(mut batch) => {
                let read = source.next(limit, &mut batch);
                Reply::Filled { batch, read, skipped: source.skipped() }
            }
            Command::Restart(row) => Reply::Restarted(source.restart_at(row)),
        };
        if answers.send(reply).is_err() {
            return;
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("it panicked: {}", text.unwrap_or_else(|| "no message".to_owned()))
}
