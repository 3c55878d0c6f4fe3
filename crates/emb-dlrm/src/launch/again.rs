//! Options of a run that goes on with fewer ranks: [`smaller`].

use crate::config::Options;

/// The options of a run on fewer ranks, and what a person should know of the difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Smaller {
    /// For so many ranks.
    pub options: Options,
    /// What could not stay as it was; lines.
    pub notes: Vec<String>,
}

/// What a plan may be that is no file: it fits any number of ranks.
const KINDS: [&str; 5] = ["auto", "table-wise", "row-wise", "column-wise", "data-parallel"];

/// The same run on `world` ranks. The samples of a step stay as they are, so the model learns the
/// same; tables are placed anew.
///
/// A plan file is of one number of ranks, and does not say who made it: in its place comes
/// `--plan auto`. Replicas and nodes that do not divide the ranks become fewer.
pub fn smaller(options: &Options, world: usize) -> Smaller {
    let mut notes = Vec::new();
    if world <= 1 {
        let threads = options.threads.or(options.threads_per_rank);
        let timeline = options.timeline.clone();
        let alone = Options { threads, timeline, ..options.clone().alone() };
        return Smaller { options: alone, notes };
    }
    let ranks = u32::try_from(world).unwrap_or(u32::MAX);
    let mut options = Options { world: Some(ranks), ..options.clone() };
    if let Some(plan) = options.plan.take_if(|plan| !KINDS.contains(&plan.as_str())) {
        notes.push(format!("plan {plan} is of more ranks: --plan auto places tables on {world}"));
    }
    if let Some(nodes) = options.nodes.take_if(|nodes| !ranks.is_multiple_of((*nodes).max(1))) {
        notes.push(format!("{world} ranks are no {nodes} equal nodes: they count as one"));
    }
    if let Some(asked) = options.replicas {
        let replicas = fitting(asked, ranks);
        options.replicas = Some(replicas);
        if replicas != asked {
            notes.push(format!("{asked} replicas do not divide {world} ranks: taking {replicas}"));
        }
    }
    for table in &mut options.table {
        let Some(asked) = table.replicas else { continue };
        let replicas = fitting(asked, ranks);
        table.replicas = Some(replicas);
        if replicas != asked {
            notes.push(format!(
                "table {:?}: {asked} replicas do not divide {world} ranks: taking {replicas}",
                table.name
            ));
        }
    }
    let one = |replicas: Option<u32>| replicas.is_none_or(|replicas| replicas == 1);
    if one(options.replicas) && options.table.iter().all(|table| one(table.replicas)) {
        // What was said of replicas has no effect without any, and would be refused.
        (options.replicas, options.layout, options.sync) = (None, None, None);
        (options.sync_every, options.replica_scaling) = (None, None);
        options.check_replicas = None;
        options.table.iter_mut().for_each(|table| table.replicas = None);
    }
    Smaller { options, notes }
}

/// The most replicas up to `asked` that divide `ranks`.
fn fitting(asked: u32, ranks: u32) -> u32 {
    (1..=asked.min(ranks)).rev().find(|&replicas| ranks.is_multiple_of(replicas)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SyncKind;

    #[test]
    fn the_batch_stays_and_the_ranks_are_fewer() {
        let options = Options {
            world: Some(4),
            batch_size: Some(512),
            steps: Some(90),
            ..Options::default()
        };
        let less = smaller(&options, 3);
        assert_eq!(less.options, Options { world: Some(3), ..options });
        assert_eq!(less.notes, [""; 0]);
    }

    #[test]
    fn replicas_become_as_many_as_divide_the_ranks() {
        assert_eq!([fitting(4, 6), fitting(4, 7), fitting(2, 6), fitting(9, 3)], [3, 1, 2, 3]);
        let sync = Some(SyncKind::Gradients);
        let options = Options { world: Some(8), replicas: Some(4), sync, ..Options::default() };
        let six = smaller(&options, 6);
        assert_eq!((six.options.replicas, six.options.sync), (Some(3), sync));
        assert_eq!(six.notes, ["4 replicas do not divide 6 ranks: taking 3"]);
        let seven = smaller(&options, 7).options;
        assert_eq!((seven.replicas, seven.sync), (None, None));
        let text = "world = 4
[[table]]
name = \"a\"
replicas = 2";
        let options: Options = toml::from_str(text).expect("options");
        let three = smaller(&options, 3);
        assert_eq!(three.options.table[0].replicas, None);
        assert_eq!(three.notes, ["table \"a\": 2 replicas do not divide 3 ranks: taking 1"]);
    }

    #[test]
    fn a_plan_file_gives_way_and_a_kind_of_plan_stays() {
        let of = |plan: &str| {
            let plan = Some(plan.to_owned());
            smaller(&Options { world: Some(4), plan, ..Options::default() }, 3)
        };
        assert_eq!(of("row-wise").options.plan.as_deref(), Some("row-wise"));
        let file = of("plan.json");
        assert_eq!(file.options.plan, None);
        assert!(file.notes[0].contains("plan plan.json is of more ranks"), "{:?}", file.notes);
    }

    #[test]
    fn one_rank_is_told_nothing_of_ranks() {
        let (nodes, threads_per_rank) = (Some(2), Some(3));
        let options = Options {
            world: Some(2),
            nodes,
            threads_per_rank,
            seed: Some(7),
            ..Options::default()
        };
        let one = smaller(&options, 1).options;
        assert_eq!(one, Options { threads: Some(3), seed: Some(7), ..Options::default() });
    }
}
