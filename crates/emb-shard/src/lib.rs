//! emb-shard
