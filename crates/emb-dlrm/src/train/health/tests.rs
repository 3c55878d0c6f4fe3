//! Judgements over figures made up.
