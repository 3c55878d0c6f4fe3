//! Tables as the programs print them.
