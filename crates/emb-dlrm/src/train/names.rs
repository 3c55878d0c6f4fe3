//! Ranks in words.

/// "rank 2 (on b)", "ranks 0, 1 and 3", "ranks 0, 1, 2 and 29 others". The host of a single rank is said
/// where ranks have several.
pub(super) fn names(ranks: &[usize], hosts: &[String]) -> String {
    /// So many are named.
    const MOST: usize = 8;
    let several = hosts.iter().any(|host| *host != hosts[0]);
    let rest: Vec<String> = ranks.iter().map(ToString::to_string).collect();
    match &rest[..] {
        [] => "no rank".to_owned(),
        [rank] => match hosts.get(ranks[0]).filter(|_| several) {
            Some(host) => format!("rank {rank} (on {host})"),
            None => format!("rank {rank}"),
        },
        many if many.len() > MOST => {
            format!("ranks {} and {} others", many[..3].join(", "), many.len() - 3)
        }
        [rest @ .., last] => format!("ranks {} and {last}", rest.join(", ")),
    }
}
