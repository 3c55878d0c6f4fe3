//! Slurm's short notation of hosts and of tasks: [`hosts`], [`tasks`].

/// More hosts than any machine has.
const MANY: u64 = 1 << 20;

/// The hosts of a list: `gpu[03-05,9],login` is gpu03, gpu04, gpu05, gpu9 and login. `None` for what is
/// no such list.
pub(super) fn hosts(list: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        let (one, more) = first_part(rest)?;
        all.extend(names(one)?);
        rest = more;
    }
    (!all.is_empty()).then_some(all)
}

/// The tasks of every node of a list: `4(x2),3` is 4, 4 and 3. `None` for what is no such list.
pub(super) fn tasks(list: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in list.split(',') {
        let (tasks, nodes) = match part.split_once("(x") {
            Some((tasks, times)) => (tasks, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1),
        };
        let tasks: usize = tasks.parse().ok()?;
        if nodes as u64 > MANY {
            return None;
        }
        all.extend(std::iter::repeat_n(tasks, nodes));
    }
    Some(all)
}

/// What stands before the first comma outside brackets, and after it.
fn first_part(list: &str) -> Option<(&str, &str)> {
    let mut inside = false;
    for (at, letter) in list.char_indices() {
        match letter {
            '[' => inside = true,
            ']' => inside = false,
            ',' if !inside => return Some((&list[..at], &list[at + 1..])),
            _ => {}
        }
    }
    (!inside).then_some((list, ""))
}

/// The names of one part, which may have several brackets: `rack[1-2]n[0-1]`.
fn names(part: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = part.split_once('[') else {
        return (!part.is_empty()).then(|| vec![part.to_owned()]);
    };
    let (inside, after) = rest.split_once(']')?;
    let ends = if after.is_empty() { vec![String::new()] } else { names(after)? };
    let mut all = Vec::new();
    for range in inside.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (low, high): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if high.saturating_sub(low) > MANY {
            return None;
        }
        // Zeros in front are part of the name.
        let width = first.len();
        for number in low..=high {
            all.extend(ends.iter().map(|end| format!("{before}{number:0width$}{end}")));
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_in_slurms_notation() {
        for (list, expected) in [
            ("gpu[03-05,9],login", "gpu03 gpu04 gpu05 gpu9 login"),
            ("node[1-3]", "node1 node2 node3"),
            ("node[08-11]", "node08 node09 node10 node11"),
            ("a,b", "a b"),
            ("a", "a"),
            ("rack[1-2]n", "rack1n rack2n"),
            ("rack[1-2]n[0-1],x[5]", "rack1n0 rack1n1 rack2n0 rack2n1 x5"),
        ] {
            let read = hosts(list).unwrap_or_else(|| panic!("{list}: no hosts"));
            assert_eq!(read.join(" "), expected, "{list}");
        }
        for none in ["", "a[", "a[1", "a[x]", "a,,b", "[", "a[1-x]"] {
            assert_eq!(hosts(none), None, "{none}");
        }
    }

    #[test]
    fn tasks_are_read_in_slurms_notation() {
        assert_eq!(tasks("4(x2),3"), Some(vec![4, 4, 3]));
        assert_eq!(tasks("4,1(x2)"), Some(vec![4, 1, 1]));
        for none in ["x", "4(x2", "", "4(xa)"] {
            assert_eq!(tasks(none), None, "{none}");
        }
    }
}
