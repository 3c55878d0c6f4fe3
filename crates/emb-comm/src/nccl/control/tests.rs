//! Controls between threads of a process, and peers that say nothing.
