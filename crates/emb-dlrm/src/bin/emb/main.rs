//! emb
fn main() {}
