//! `emb predict`.

use crate::args::PredictArgs;
use crate::evaluate::load;
use crate::output::finish;
use emb_dlrm::Result;
use std::io::Write;

pub(crate) fn run(args: &PredictArgs) -> Result<()> {
    let mut saved = load(&args.score)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    saved.predict(|score| finish(writeln!(out, "{score}")))?;
    finish(out.flush())
}
