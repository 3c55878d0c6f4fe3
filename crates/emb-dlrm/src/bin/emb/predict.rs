//! `emb predict`.

use crate::args::PredictArgs;
use crate::evaluate::load;
use crate::output::{finish, note};
use emb_dlrm::Result;
use emb_dlrm::train::Peers;
use std::io::Write;

pub(crate) fn run(args: &PredictArgs) -> Result<()> {
    Peers::refuse("emb predict")?;
    let mut saved = load(&args.score)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let (rows, skipped) = saved.predict(|score| finish(writeln!(out, "{score}")))?;
    finish(out.flush())?;
    if skipped > 0 {
        note(&format!("{rows} scores; {skipped} lines were skipped and have none"));
    }
    Ok(())
}
