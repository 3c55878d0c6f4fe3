//! How tables share the memory of a profile.

/// Bytes of each table: what it wants where that is less than an equal share of what the others
/// leave, else that share.
pub(super) fn shares(wanted: &[u64], memory: u64) -> Vec<u64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&table| wanted[table]);
    let mut shares = vec![0; wanted.len()];
    let mut left = memory;
    for (position, &table) in order.iter().enumerate() {
        let equal = left / (order.len() - position) as u64;
        shares[table] = wanted[table].min(equal);
        left -= shares[table];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn small_tables_take_what_they_want_and_large_ones_share_the_rest() {
        assert_eq!(shares(&[10, 500, 20, 900], 630), [10, 300, 20, 300]);
        assert_eq!(shares(&[10, 20], 1000), [10, 20]);
        assert_eq!(shares(&[7, 7, 7], 10), [3, 3, 4]);
        assert!(shares(&[], 10).is_empty());
    }
}
