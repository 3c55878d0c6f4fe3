//! A sample of real clicks, where it is present.

use super::inspect::inspect;
use super::*;

#[test]
fn real_clicks_have_their_known_rows_and_rate() {
    let folder = std::env::var_os("EMB_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let files: Vec<_> =
        ["train", "dev", "test"].map(|part| folder.join(format!("criteo8k_{part}.tsv"))).into();
    if let Some(absent) = files.iter().find(|path| !path.exists()) {
        eprintln!("skipped: {} is absent; set EMB_DATA to its folder", absent.display());
        return;
    }
    let mut clicks = 0.0;
    for (path, rows) in files.iter().zip([7200, 409, 391]) {
        let all = read_file(path, CriteoOptions::default()).expect("real rows");
        assert_eq!(all.labels.len(), rows);
        clicks += all.labels.iter().sum::<f32>();
        assert!(all.dense.iter().all(|x| (0.0..22.0).contains(x)));
        let report = &inspect(&[path]).expect("real rows")[0];
        assert_eq!((report.rows, report.bad_rows.total()), (rows as u64, 0));
        let labels = report.labels.expect("labels");
        assert_eq!(labels.ones as f32, all.labels.iter().sum::<f32>());
    }
    let rate = f64::from(clicks) / 8000.0;
    assert!((rate - 0.215).abs() < 0.002, "click rate {rate}");
    let mut source =
        open(&[folder.join("criteo8k_*.tsv")], CriteoOptions::default()).expect("open");
    assert_eq!(check(&mut source).expect("all rows"), 8000);
}
