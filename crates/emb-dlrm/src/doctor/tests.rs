//! Made-up machines.
