//! emb-comm
