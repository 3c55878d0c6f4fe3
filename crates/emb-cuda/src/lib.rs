//! The CUDA machine under `emb`; empty without the feature `cuda`.
//!
#![cfg_attr(feature = "cuda", doc = include_str!("../README.md"))]
//!
//! # Code map
//!
//! - `library.rs` finds the driver before anything of it is called; `Device` is a GPU's context and kernels.
//! - `Stream` queues copies and launches; `Buffer`, `View` and `ViewMut` are memory with a home.
//! - `Args` are what a kernel is given; `Event` is a point of a stream; `Pinned` is host memory that a
//!   device copies from and to without help; `Kept` is memory that grows and stays.
//! - `compile` turns source into an image at run time.
#![cfg(feature = "cuda")]

mod args;
mod buffer;
mod compile;
mod device;
mod error;
mod event;
mod image;
mod kept;
mod kernel;
mod library;
mod pinned;
mod staging;
mod stream;

pub use {
    args::{Arg, Args, Plain},
    buffer::{Buffer, View, ViewMut},
    compile::{Header, compile},
    device::Device,
    error::{Error, Result},
    event::Event,
    image::image_bytes,
    kept::Kept,
    kernel::{Kernel, Module, Shape},
    library::{Library, open_library},
    pinned::Pinned,
    stream::Stream,
};

/// The driver's and the libraries' own interfaces, for what this crate does not wrap.
pub use cudarc;
