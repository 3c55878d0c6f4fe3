//! Links between the repository's Markdown files lead somewhere.

use crate::markdown::{anchors, links, prose};
use crate::violation::Violation;

/// Every relative link of a file: its target exists and has the heading after `#`.
pub(crate) fn check(
    file: &str,
    content: &str,
    exists: impl Fn(&str) -> bool,
    read: impl Fn(&str) -> Option<String>,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (line, text) in prose(content) {
        for target in links(text).filter(|target| !target.contains(':')) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let Some(path) = resolve(file, path) else {
                let message = format!("link {target} leaves the repository");
                violations.push(Violation::new(file, line, message));
                continue;
            };
            if !exists(&path) {
                let message = format!("link {target}: there is no {path}");
                violations.push(Violation::new(file, line, message));
            } else if !anchor.is_empty() {
                let text = if path == file { Some(content.to_owned()) } else { read(&path) };
                let found = text.is_some_and(|text| anchors(&text).iter().any(|a| a == anchor));
                if !found {
                    let message = format!("link {target}: {path} has no heading #{anchor}");
                    violations.push(Violation::new(file, line, message));
                }
            }
        }
    }
    violations
}

/// The path from the root that a link in `file` means, or `None` outside the root.
fn resolve(file: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(file.to_owned());
    }
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::lines;

    fn found(file: &str, content: &str) -> Vec<String> {
        let exists = |path: &str| ["README.md", "docs/a.md", "docs"].contains(&path);
        let read = |path: &str| (path == "README.md").then(|| "# Start here\n".to_owned());
        lines(&check(file, content, exists, read))
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let content = "[a](../README.md) [b](a.md) [c](../README.md#start-here) [d](#part)\n# Part\n\
            [web](https://example.org/x) [folder](../docs/)\n```\n[e](gone.md)\n```\n";
        assert_eq!(found("docs/a.md", content), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_named() {
        assert_eq!(found("README.md", "[a](b.md)\n"), ["README.md:1: link b.md: there is no b.md"]);
        assert_eq!(
            found("docs/a.md", "x\n[a](../README.md#gone)\n"),
            ["docs/a.md:2: link ../README.md#gone: README.md has no heading #gone"]
        );
        assert_eq!(
            found("README.md", "[a](../x.md)\n"),
            ["README.md:1: link ../x.md leaves the repository"]
        );
        assert_eq!(
            found("README.md", "[a](#gone)\n"),
            ["README.md:1: link #gone: README.md has no heading #gone"]
        );
    }
}
