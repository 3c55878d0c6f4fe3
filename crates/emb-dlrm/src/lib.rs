//! emb-dlrm
