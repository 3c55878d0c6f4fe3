//! What other libraries reached on the same cells, to be printed beside our own figures.

/// Lines of a file of peers' results: one JSON object a cell, with `peer`, `config`, `dist`,
/// `optim`, `dtype` (`fp32`), `threads`, `what` (the pass) and `median_ms`.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    lines: Vec<String>,
}

impl Peers {
    /// Reads the file that `PEER_RESULTS` names, if it does.
    pub(crate) fn load() -> Self {
        let text = std::env::var_os("PEER_RESULTS").and_then(|path| {
            std::fs::read_to_string(&path)
                .inspect_err(|error| eprintln!("{}: {error}", path.display()))
                .ok()
        });
        Self { lines: text.unwrap_or_default().lines().map(ToOwned::to_owned).collect() }
    }

    /// Name and median milliseconds of the fastest peer on a cell named as ours are:
    /// `train/a/uniform/rowwise_adagrad/f32/1`.
    pub(crate) fn fastest(&self, cell: &str) -> Option<(&str, f64)> {
        let parts: Vec<&str> = cell.split('/').collect();
        let &[pass, config, distribution, rule, dtype, threads] = &parts[..] else { return None };
        let dtype = if dtype == "f32" { "fp32" } else { "fp16" };
        let wanted = [
            format!("\"what\": \"{pass}\""),
            format!("\"config\": \"{config}\""),
            format!("\"dist\": \"{distribution}\""),
            format!("\"dtype\": \"{dtype}\""),
            format!("\"threads\": {threads},"),
            // A forward pass has no rule.
            if pass == "train" { format!("\"optim\": \"{rule}\"") } else { String::new() },
        ];
        let found = self.lines.iter().filter(|line| wanted.iter().all(|part| line.contains(part)));
        found
            .filter_map(|line| {
                let milliseconds = value(line, "median_ms")?.parse().ok()?;
                Some((value(line, "peer")?, milliseconds))
            })
            .min_by(|a, b| f64::total_cmp(&a.1, &b.1))
    }
}

/// The text of a value of a flat JSON object.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{key}\": "))?;
    rest.split([',', '}']).next().map(|value| value.trim_matches('"'))
}
