//! `emb train`.

use crate::args::TrainArgs;
use crate::output::{json, note, out};
use crate::progress::Progress;
use crate::text::{bytes, count, counted, pairs, table};
use emb_dlrm::checkpoint::{Manifest, to_resume};
use emb_dlrm::config::{Config, DeviceKind, Length, Options, Origin, Ranks, WireOptions};
use emb_dlrm::model::Interaction;
use emb_dlrm::train::{Peers, Report, Silent, train_among};
use emb_dlrm::{Result, sources};

pub(crate) fn run(args: TrainArgs) -> Result<()> {
    let read = args.config.as_deref().map_or_else(|| Ok(Options::default()), Options::from_file);
    let (mut options, unread) = match read {
        Ok(read) => (args.options.over(read), None),
        // Those whose file can be read wait for this one: it joins them to say why it can't go on.
        Err(error) if args.options.transport.is_some() => (args.options, Some(error)),
        Err(error) => return Err(error),
    };
    let peers = match (Peers::join(&mut options), unread) {
        (Err(_), Some(error)) => return Err(error),
        (Ok(peers), Some(error)) => {
            let named = named(&peers);
            return named(peers.tell(Err(error)));
        }
        (peers, None) => peers?,
    };
    let named = named(&peers);
    named(run_among(options, peers, args.json))
}

/// Adds to an error which rank it is of, and where, if it is a process.
fn named(peers: &Peers) -> impl FnOnce(Result<()>) -> Result<()> + use<> {
    let rank = peers.rank().map(|rank| format!("rank {rank} on {}", peers.hosts()[rank]));
    |result| {
        result.map_err(|error| match rank {
            Some(rank) => emb_dlrm::Error::On { rank, source: Box::new(error) },
            None => error,
        })
    }
}

/// Trains among the peers; rank 0 alone speaks, unless something fails.
fn run_among(options: Options, peers: Peers, in_json: bool) -> Result<()> {
    let options = match &options.load {
        None => options,
        Some(dir) => {
            let saved = peers.tell(Manifest::read(dir))?.options_to_go_on(&options);
            options.over(saved)
        }
    };
    let config = peers.resolve(options)?;
    if !peers.is_first() {
        return train_among(&config, peers, &mut Silent).map(drop);
    }
    peers.tell(introduce(&config, &peers))?;
    let mut progress = Progress::new();
    let result = train_among(&config, peers, &mut progress);
    progress.finish();
    let report = result?;
    if in_json {
        return json(&report);
    }
    out(&summary(&report))
}

/// Says what is about to be done.
fn introduce(config: &Config, peers: &Peers) -> Result<()> {
    note(&describe(config)?);
    if let Some(ranks) = &config.ranks {
        note(&format!("{}\n", ranks.plan));
        for line in ranks.notes.iter().chain(peers.notes()) {
            note(line);
        }
    }
    if let Some(line) = replaced(config)? {
        note(&format!("{line}\n"));
    }
    Ok(())
}

/// What becomes of a checkpoint in the folder of --save.
fn replaced(config: &Config) -> Result<Option<String>> {
    if let Some(found) = to_resume(config)? {
        if let Some(line) = finished(config, &found) {
            return Ok(Some(line));
        }
        let wire = |wire: Option<WireOptions>| wire.unwrap_or_default().to_string();
        let (then, now) = (wire(found.options.wire), wire(config.options.wire));
        let other = if then == now {
            String::new()
        } else {
            format!("; --wire was {}, is {}", or_default(&then), or_default(&now))
        };
        return Ok(Some(format!("--resume goes on from step {}{other}", count(found.step))));
    }
    if config.resume.is_some() {
        return Ok(Some("--resume finds no checkpoint yet: training begins anew".to_owned()));
    }
    let found = config.save.as_deref().and_then(|dir| Manifest::read(dir).ok());
    let replaces = |found: Manifest| {
        format!("--save will replace the checkpoint of step {} there", count(found.step))
    };
    Ok(found.map(replaces))
}

/// What is said where the training was done before.
fn finished(config: &Config, found: &Manifest) -> Option<String> {
    let (done, all, flag) = match config.length {
        Length::Steps(steps) => (found.step, steps, "--steps"),
        Length::Epochs(epochs) => (found.epoch, epochs, "--epochs"),
    };
    (done >= all).then(|| {
        format!(
            "--resume finds step {} done, and {flag} is {all}: nothing is left to train; give more \
             {flag} to go on",
            count(found.step)
        )
    })
}

/// The formats of a run that was told none.
fn or_default(wire: &str) -> &str {
    if wire.is_empty() { "f32" } else { wire }
}

/// The resolved configuration.
fn describe(config: &Config) -> Result<String> {
    let sizes =
        |sizes: &[usize]| sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join("-");
    let shape = &config.shape;
    let interaction = match shape.interaction {
        Interaction::Dot(_) => "dlrm, dot interaction".to_owned(),
        Interaction::Cross { layers, rank } => {
            format!("dlrm-dcn, {layers} cross layers of rank {rank}")
        }
    };
    let length = match config.length {
        Length::Epochs(epochs) => counted(epochs, "epoch"),
        Length::Steps(steps) => counted(steps, "step"),
    };
    let optimizers = &config.optimizers;
    let mut rows = vec![
        ("data", data(config)?),
        ("model", interaction),
        (
            "mlp",
            format!(
                "bottom {}-{}, top {}-1",
                shape.dense_columns,
                sizes(&shape.bottom),
                sizes(&shape.top)
            ),
        ),
        (
            "tables",
            format!("{}, {} features", config.tables.tables.len(), config.tables.features.len()),
        ),
        ("table rule", format!("{}, lr {}", optimizers.tables, rate(optimizers.lr))),
        (
            "dense rule",
            format!("{}, lr {}", optimizers.dense.optimizer(), rate(optimizers.dense_lr)),
        ),
        ("schedule", schedule(config)),
        (
            "train",
            format!(
                "{length}, batch {}, seed {}{}",
                count(config.batch_size as u64),
                config.seed,
                threads(config)
            ),
        ),
    ];
    rows.push(("device", config.device.to_string()));
    if let Some(ranks) = &config.ranks {
        rows.push(("transport", config.device.transport.to_string()));
        rows.push(("ranks", self::ranks(config, ranks)));
        rows.extend(config.options.wire.map(|wire| ("wire", wire.to_string())));
    }
    match &config.data {
        Origin::Files(_) => rows.push(("ids", format!("{} rows of each table", config.id_policy))),
        Origin::Synthetic => {}
    }
    if let Some(dir) = &config.load {
        rows.push(("load", dir.display().to_string()));
    }
    if let Some(dir) = &config.save {
        rows.push(("save", dir.display().to_string()));
    }
    Ok(format!("{}\n\n{}\n", pairs(&rows), tables(config)))
}

/// How many threads of the processor compute.
fn threads(config: &Config) -> String {
    if config.device.kind != DeviceKind::Cpu {
        return String::new();
    }
    let rank = if config.ranks.is_some() { " a rank" } else { "" };
    format!(", {}{rank}", counted(config.threads as u64, "thread"))
}

/// How the ranks share the tables.
fn ranks(config: &Config, ranks: &Ranks) -> String {
    let nodes = ranks.world() as u64 / u64::from(ranks.ranks_per_node.max(1));
    let mut rules: Vec<String> = Vec::new();
    for table in &config.tables.tables {
        let replica = table.spec.optimizer.replica();
        if replica.replicas > 1 {
            let rule = format!("{} x replicas, scaling {}", replica.replicas, replica.rule);
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    let replicas = if rules.is_empty() { "no replicas".to_owned() } else { rules.join("; ") };
    format!("{}, {}, {replicas}", counted(ranks.world() as u64, "rank"), counted(nodes, "node"))
}

/// The schedule as it was asked for; it multiplies every learning rate.
fn schedule(config: &Config) -> String {
    let decay = config.options.lr_decay.as_deref().unwrap_or("constant");
    match config.options.lr_warmup {
        None | Some(0) => decay.to_owned(),
        Some(warmup) => format!("warm-up over {}, then {decay}", counted(warmup, "step")),
    }
}

/// A learning rate: plain within everyday sizes, else with an exponent.
fn rate(lr: f64) -> String {
    if lr == 0.0 || (1e-4..1e4).contains(&lr) { lr.to_string() } else { format!("{lr:e}") }
}

fn data(config: &Config) -> Result<String> {
    Ok(match &config.data {
        Origin::Synthetic => {
            format!(
                "synthetic (seed {}), evaluated on {} fresh rows",
                config.seed,
                count(sources::SYNTHETIC_EVAL_ROWS)
            )
        }
        Origin::Files(paths) => {
            let list = |paths: &[std::path::PathBuf]| -> Result<String> {
                let files = emb_dlrm::data::files::expand(paths)?;
                let names: Vec<String> =
                    files.iter().map(|file| file.display().to_string()).collect();
                Ok(names.join(" "))
            };
            let eval = if config.eval.is_empty() {
                "no evaluation".to_owned()
            } else {
                format!("evaluation {}", list(&config.eval)?)
            };
            format!("{}; {eval}", list(paths)?)
        }
    })
}

fn tables(config: &Config) -> String {
    // Tables of one kind are one line: 26 equal ones say nothing more than one.
    let mut groups: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for plan in &config.tables.tables {
        let spec = &plan.spec;
        let cells = vec![
            count(spec.rows),
            spec.dim.to_string(),
            format!("{:?}", spec.dtype).to_lowercase(),
            spec.optimizer.kind().to_string(),
            rate(plan.lr),
        ];
        match groups.iter_mut().find(|(known, _)| *known == cells) {
            Some((_, names)) => names.push(spec.name.clone()),
            None => groups.push((cells, vec![spec.name.clone()])),
        }
    }
    let rows: Vec<Vec<String>> = groups
        .into_iter()
        .map(|(cells, names)| {
            let name = match &names[..] {
                [one] => one.clone(),
                [first, .., last] => format!("{first} .. {last} ({})", names.len()),
                [] => String::new(),
            };
            std::iter::once(name).chain(cells).collect()
        })
        .collect();
    table(&["table", "rows", "dim", "type", "rule", "lr"], &rows)
}

fn summary(report: &Report) -> String {
    let number =
        |value: Option<f64>| value.map_or("undefined".into(), |value| format!("{value:.4}"));
    let trained = report.steps - report.loaded_steps;
    let steps = match report.loaded_steps {
        0 => count(report.steps),
        before => format!("{} ({} before this run)", count(report.steps), count(before)),
    };
    let mut rows = vec![
        ("steps", steps),
        ("samples", count(report.samples)),
        (
            "training loss",
            format!("{} (last {})", number(report.loss), counted(trained.min(100), "step")),
        ),
        (
            "speed",
            format!(
                "{} samples/s over {:.1} s",
                count(report.samples_per_second as u64),
                report.seconds
            ),
        ),
    ];
    if let Some(exchange) = &report.exchange {
        rows.push((
            "exchange",
            format!(
                "{:.1} collectives a step, {} in the node and {} between nodes a step, {:.1} s in \
                 them, waiting included (the rank with most)",
                exchange.collectives_per_step,
                bytes(exchange.intra_node_bytes_per_step as u64),
                bytes(exchange.inter_node_bytes_per_step as u64),
                exchange.seconds
            ),
        ));
    }
    if report.skipped_rows > 0 {
        rows.push(("skipped lines", count(report.skipped_rows)));
    }
    if report.skipped_eval_rows > 0 {
        rows.push(("skipped in evaluation", count(report.skipped_eval_rows)));
    }
    if let Some(eval) = &report.eval {
        rows.push(("evaluated rows", count(eval.rows)));
        rows.push(("AUC", number(eval.auc)));
        rows.push(("NE", number(eval.normalized_entropy)));
    }
    if report.teacher_auc.is_some() {
        rows.push(("teacher's AUC", number(report.teacher_auc)));
        rows.push(("teacher's NE", number(report.teacher_normalized_entropy)));
    }
    pairs(&rows)
}
