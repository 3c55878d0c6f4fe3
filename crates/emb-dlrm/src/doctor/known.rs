//! Versions of libraries that are known to hang or to give wrong results: [`trouble`].

/// Library, first and last version concerned, what happens, where it is told.
type Known = (&'static str, [u32; 3], [u32; 3], &'static str);

const KNOWN: [Known; 3] = [
    (
        "Open MPI",
        [3, 1, 3],
        [3, 1, 3],
        "messages between processes of one host can hang (open-mpi/ompi#6088)",
    ),
    (
        "Open MPI",
        [4, 0, 0],
        [4, 0, 0],
        "messages between processes of one host can hang (open-mpi/ompi#6258)",
    ),
    (
        "NCCL",
        [0, 0, 0],
        [2, 18, 0],
        "irregular sends and receives, which exchanges are, can hang (release notes of NCCL 2.18.1)",
    ),
];

/// What is known of a version.
pub(super) fn trouble(library: &str, version: [u32; 3]) -> Option<&'static str> {
    let concerns = |known: &&Known| known.0 == library && (known.1..=known.2).contains(&version);
    KNOWN.iter().find(concerns).map(|known| known.3)
}

/// The first `1.2.3` or `1.2` in a text.
pub(super) fn version(text: &str) -> Option<[u32; 3]> {
    let words = text.split(|letter: char| !(letter.is_ascii_digit() || letter == '.'));
    words.filter(|word| word.contains('.')).find_map(|word| {
        let mut parts = word.split('.').map(str::parse::<u32>);
        let (first, second) = (parts.next()?.ok()?, parts.next()?.ok()?);
        Some([first, second, parts.next().and_then(Result::ok).unwrap_or(0)])
    })
}
