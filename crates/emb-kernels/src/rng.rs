//! Counter-based random bits.
