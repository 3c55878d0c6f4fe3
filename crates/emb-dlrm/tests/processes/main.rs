//! Trainings with one rank a process, started by `mpirun`, against the same with threads.

mod disagree;
mod hosts;
mod parity;
mod resume;
mod support;
