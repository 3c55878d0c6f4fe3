//! How many collectives a step takes.
