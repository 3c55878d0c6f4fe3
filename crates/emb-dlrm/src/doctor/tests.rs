//! Made-up machines, each with one thing wrong.

use super::*;
use crate::calibrate::Places;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A machine in a folder of its own.
struct Made {
    root: PathBuf,
    variables: HashMap<&'static str, &'static str>,
    shared: Disk,
    mpirun: Result<&'static str, &'static str>,
}

const GOOD: &[(&str, &str)] = &[
    (
        "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: A Processor\nflags\t\t: fpu avx2 fma avx512f\n",
    ),
    ("proc/self/status", "Name:\temb\nCpus_allowed_list:\t0-3\n"),
    ("proc/self/cgroup", "0::/job/step\n"),
    (
        "proc/self/limits",
        "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  8388608  8388608  bytes\nMax open files  4096  4096  files\n",
    ),
    (
        "proc/meminfo",
        "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nHugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB\n",
    ),
    ("proc/sys/vm/overcommit_memory", "0\n"),
    (
        "proc/net/route",
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00000000\t0100000A\t3\t0\t0\t0\t00000000\neth0\t0000000A\t00000000\t1\t0\t0\t0\t00FFFFFF\n",
    ),
    (
        "proc/net/fib_trie",
        "Main:\n  +-- 10.0.0.0/24 2 0 2\n     |-- 10.0.0.0\n        /24 link UNICAST\n     |-- 10.0.0.7\n        /32 host LOCAL\n",
    ),
    ("proc/net/if_inet6", "fe800000000000000000000000000001 02 40 20 80     eth0\n"),
    ("sys/class/net/eth0/operstate", "up\n"),
    ("sys/class/net/eth0/speed", "10000\n"),
    ("sys/class/net/eth1/operstate", "down\n"),
    ("sys/class/net/lo/operstate", "unknown\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/node/online", "0-1\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1\n"),
    ("sys/devices/system/node/node1/cpulist", "2-3\n"),
    ("sys/fs/cgroup/job/cpu.max", "max 100000\n"),
    ("sys/fs/cgroup/job/memory.max", "max\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
];

impl Made {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("emb-doctor-{}-{name}", std::process::id()));
        drop(std::fs::remove_dir_all(&root));
        let made = Self {
            root,
            variables: HashMap::new(),
            shared: Disk { total: 1 << 33, free: 1 << 33 },
            mpirun: Ok("mpirun (Open MPI) 4.1.4\n\nReport bugs to ..\n"),
        };
        for (path, text) in GOOD {
            made.write(path, text);
        }
        made
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    fn checks(&self) -> Vec<Check> {
        let disk = |path: &Path| {
            let shared = path.ends_with("dev/shm");
            Ok(if shared { self.shared } else { Disk { total: 1 << 40, free: 1 << 39 } })
        };
        let program = |_: &str, _: &str| self.mpirun.map(str::to_owned).map_err(str::to_owned);
        let variable = |name: &str| self.variables.get(name).map(|&value| value.to_owned());
        let (variable, program, disk) = (&variable, &program, &disk);
        examine(&System { root: &self.root, variable, program, disk })
    }

    fn check(&self, name: &str) -> Check {
        let found = self.checks().into_iter().find(|check| check.name == name);
        found.unwrap_or_else(|| panic!("no check {name}"))
    }

    /// The check of this name has this verdict and these words, and a fix exactly where it is no "ok".
    fn says(&self, name: &str, verdict: Verdict, words: &[&str]) {
        let check = self.check(name);
        assert_eq!(check.verdict, verdict, "{check:?}");
        assert_eq!(check.fix.is_some(), verdict > Verdict::Unknown, "{check:?}");
        let text = format!("{} {}", check.found, check.fix.unwrap_or_default());
        for word in words {
            assert!(text.contains(word), "{word:?} is missing from: {text}");
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.root));
    }
}

#[test]
fn a_good_machine_has_no_problem_and_no_warning_but_the_builds() {
    let made = Made::new("good");
    let bad = made.checks().into_iter().filter(|check| {
        check.verdict != Verdict::Ok
            && !["version", "mpirun", "devices"].contains(&&*check.name)
            && check.area != "NCCL"
            && check.area != "CUDA"
    });
    assert_eq!(bad.collect::<Vec<_>>(), []);
    made.says("model", Verdict::Ok, &["A Processor"]);
    made.says("cores", Verdict::Ok, &["4 usable of 4 online"]);
    made.says("available", Verdict::Ok, &["8.0 GiB of 16.0 GiB"]);
    made.says("NUMA nodes", Verdict::Ok, &["2: cores 0-1, cores 2-3"]);
    made.says("eth0", Verdict::Ok, &["up, 10000 Mbit/s, 10.0.0.7, fe80::1"]);
    made.says("between hosts", Verdict::Ok, &["NCCL takes eth0, Open MPI eth0"]);
}

#[test]
fn nothing_to_read_is_said_and_nothing_fails() {
    let mut made = Made::new("empty");
    std::fs::remove_dir_all(&made.root).expect("it is ours");
    made.mpirun = Err("no mpirun in PATH");
    let checks = made.checks();
    let problem = checks.iter().find(|check| check.verdict == Verdict::Problem);
    assert_eq!(problem, None);
    let check = made.check("available");
    assert_eq!(check.verdict, Verdict::Unknown);
    assert!(check.found.starts_with("/proc/meminfo: "), "{check:?}");
    assert_eq!(made.check("interfaces").verdict, Verdict::Unknown);
}

#[test]
fn the_processor_is_looked_at() {
    let made = Made::new("processor");
    made.write("proc/cpuinfo", "model name\t: Old\nflags\t: fpu sse2\n");
    made.says("instructions", Verdict::Warning, &["no avx2, fma"]);
    made.write("proc/self/status", "Cpus_allowed_list:\t2\n");
    made.says("cores", Verdict::Warning, &["1 usable of 4", "--bind-to none"]);
    made.write("proc/self/status", "Cpus_allowed_list:\t0-3\n");
    made.write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    made.says("cores", Verdict::Warning, &["a quota of 1.50 cores", "--cpus"]);
    made.write("proc/self/cgroup", "4:cpu,cpuacct:/old\n3:memory:/old\n");
    made.write("sys/fs/cgroup/cpu/old/cpu.cfs_quota_us", "200000\n");
    made.says("cores", Verdict::Warning, &["a quota of 2.00 cores"]);
}

#[test]
fn memory_is_looked_at() {
    let made = Made::new("memory");
    made.write("sys/fs/cgroup/job/memory.max", "1073741824\n");
    made.write("sys/fs/cgroup/job/memory.current", "1063741824\n");
    made.says("group limit", Verdict::Warning, &["1.0 GiB", "docker --memory"]);
    made.write("sys/fs/cgroup/job/memory.current", "1000\n");
    made.says("group limit", Verdict::Ok, &["1.0 GiB"]);
    made.write("proc/sys/vm/overcommit_memory", "2\n");
    made.says("overcommit", Verdict::Warning, &["vm.overcommit_memory=0"]);
    made.write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    made.says("huge pages", Verdict::Warning, &["never", "madvise >"]);
    made.write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 50 kB\nHugePages_Total: 9\nHugePages_Free: 9\nHugepagesize: 2048 kB\n");
    made.says("available", Verdict::Warning, &["less than a tenth"]);
    made.says("reserved pages", Verdict::Warning, &["9 of 2048 kB", "vm.nr_hugepages"]);
}

#[test]
fn limits_are_looked_at() {
    let made = Made::new("limits");
    made.write("sys/class/infiniband/mlx5_0/node_type", "1\n");
    made.says("locked memory", Verdict::Problem, &["8.0 MiB", "mlx5_0", "ulimit -l unlimited"]);
    made.write(
        "proc/self/limits",
        "Max locked memory  unlimited  unlimited  bytes\nMax open files  256  256  files\n",
    );
    made.says("locked memory", Verdict::Ok, &["unlimited"]);
    made.says("open files", Verdict::Warning, &["256", "ulimit -n"]);
}

#[test]
fn u40_a_mebibyte_of_shared_memory_is_a_problem_with_its_remedy() {
    let mut made = Made::new("shm");
    made.shared = Disk { total: 1 << 20, free: 1 << 20 };
    made.says("/dev/shm", Verdict::Problem, &["1.0 MiB free of 1.0 MiB", "--shm-size"]);
    made.shared = Disk { total: 128 << 20, free: 128 << 20 };
    made.says("/dev/shm", Verdict::Warning, &["128.0 MiB", "--shm-size"]);
}

#[test]
fn u40_an_interface_that_a_variable_names_must_be_there_and_up() {
    let mut made = Made::new("interfaces");
    for (variable, value) in [
        ("NCCL_SOCKET_IFNAME", "ib"),
        ("NCCL_SOCKET_IFNAME", "=eth"),
        ("OMPI_MCA_btl_tcp_if_include", "eth7"),
        ("OMPI_MCA_btl_tcp_if_include", "172.16.0.0/12"),
        ("GLOO_SOCKET_IFNAME", "eth"),
    ] {
        made.variables = HashMap::from([(variable, value)]);
        made.says(
            variable,
            Verdict::Problem,
            &["there is no interface", variable, "eth0, eth1, lo"],
        );
    }
    made.variables = HashMap::from([("OMPI_MCA_btl_tcp_if_include", "eth1")]);
    made.says("OMPI_MCA_btl_tcp_if_include", Verdict::Problem, &["eth1 is down"]);
    for (variable, value) in [
        ("NCCL_SOCKET_IFNAME", "eth"),
        ("NCCL_SOCKET_IFNAME", "^docker,lo"),
        ("OMPI_MCA_btl_tcp_if_include", "10.0.0.0/8"),
        ("OMPI_MCA_btl_tcp_if_exclude", "docker0"),
    ] {
        made.variables = HashMap::from([(variable, value)]);
        made.says(variable, Verdict::Ok, &[value]);
    }
}

#[test]
fn launchers_and_libraries_are_looked_at() {
    let mut made = Made::new("launchers");
    made.variables = HashMap::from([("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")]);
    made.says("place", Verdict::Ok, &["Open MPI: rank 1 of 4"]);
    made.variables = HashMap::from([("OMPI_COMM_WORLD_RANK", "7"), ("OMPI_COMM_WORLD_SIZE", "4")]);
    made.says("place", Verdict::Problem, &["7"]);
    made.mpirun = Ok("HYDRA build details:\n    Version: 4.0.2\n");
    made.says("mpirun", made.check("mpirun").verdict, &["4.0.2"]);
    assert!(made.check("mpirun").verdict >= Verdict::Warning);
    made.mpirun = Ok("mpirun (Open MPI) 3.1.3\n");
    assert!(made.check("mpirun").verdict >= Verdict::Warning);
    assert_eq!(known::version("NCCL 2.28.9+cuda13"), Some([2, 28, 9]));
    assert!(known::trouble("NCCL", [2, 17, 1]).is_some());
    assert_eq!(known::trouble("NCCL", [2, 28, 9]), None);
}

#[test]
fn an_exchange_finds_contents_that_are_wrong_and_ranks_that_are_slow() {
    use emb_comm::{Options, run};
    let places = Places::one_host(3).expect("one host");
    let budget = std::time::Duration::from_millis(50);
    let outcomes =
        run(3, &Options::default(), |ranks| exchange(ranks, &places, budget, &|_, _| ()));
    let outcomes = outcomes.expect("an exchange");
    assert_eq!(outcomes[0], outcomes[2], "all ranks have the same");
    assert_eq!(outcomes[0].wrong, Vec::<String>::new());
    assert!(outcomes[0].operations.len() >= 5, "{:?}", outcomes[0].operations);
    assert!(
        outcomes[0].operations.iter().all(|row| row.min <= row.median && row.median <= row.max)
    );
    let slow = exchange::slow_copies(&[1e10, 1e10, 4e9], &places);
    assert!(slow.len() == 1 && slow[0].contains("rank 2"), "{slow:?}");
    let rates = vec![vec![0.0, 9.0, 2.0], vec![9.0, 0.0, 2.0], vec![2.0, 2.0, 0.0]];
    let pairs = Pairs { rates, same_host: Some(9.0), other_host: None };
    let slow = pairs.slow(&places);
    assert!(slow.iter().any(|line| line.contains("rank 2")), "{slow:?}");
}

#[test]
fn ranks_of_a_host_must_be_neighbours() {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let places = Places::new(names(&["a", "a", "b"])).expect("neighbours");
    assert_eq!((places.nodes().len(), places.most(), places.node_of(2)), (2, 2, 1));
    let error = Places::new(names(&["a", "b", "a"])).expect_err("apart").to_string();
    assert!(error.contains("ranks 0 and 2 are both on host a"), "{error}");
}
