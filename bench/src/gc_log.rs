//! What a JVM's log of collections (`-Xlog:gc`) says of a run: how much was allocated, and how long the program stood still.

/// Of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collections {
    /// MiB allocated from the first to the last collection that the program caused: what filled the heap from one to the next.
    pub allocated: f64,
    /// Milliseconds of their pauses.
    pub pauses: f64,
}

/// Reads a log. Collections that an agent asked for are left out, with what was allocated before them; `None` = there were fewer than two others.
pub fn collections(log: &str) -> Option<Collections> {
    let own = |line: &&str| line.contains(" Pause ") && !line.contains("JvmtiEnv");
    let all: Vec<(f64, f64, f64)> = log.lines().filter(own).filter_map(collection).collect();
    (all.len() > 1).then(|| Collections {
        allocated: all
            .windows(2)
            .map(|pair| (pair[1].0 - pair[0].1).max(0.0))
            .sum(),
        pauses: all.iter().map(|one| one.2).sum(),
    })
}

/// MiB before and after, and milliseconds, of a line such as `… Pause Young (Normal) (G1 Evacuation Pause) 14M->3M(256M) 14.331ms`.
fn collection(line: &str) -> Option<(f64, f64, f64)> {
    let mut words = line.split_whitespace().rev();
    let pause = words.next()?.strip_suffix("ms")?.parse().ok()?;
    let (before, after) = words.next()?.split_once("->")?;
    let after = after.split_once('(')?.0;
    let mib = |text: &str| text.strip_suffix('M')?.parse().ok();
    Some((mib(before)?, mib(after)?, pause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_log_says() {
        let log = "[0.035s][info][gc] Using G1\n\
            [1.9s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 14M->3M(256M) 14.25ms\n\
            [2.0s][info][gc] GC(1) Concurrent Mark Cycle 10.0ms\n\
            [2.0s][info][gc] GC(1) Pause Remark 40M->39M(256M) 2.0ms\n\
            [3.5s][info][gc] GC(2) Pause Young (Allocation Failure) 61M->8M(256M) 50.5ms\n\
            [3.6s][info][gc] GC(3) Pause Full (JvmtiEnv ForceGarbageCollection) 30M->2M(256M) 20.0ms\n";
        let expected = Collections {
            allocated: 37.0 + 22.0,
            pauses: 66.75,
        };
        assert_eq!(collections(log), Some(expected));
        assert_eq!(collections(&log[..150]), None);
        assert_eq!(collections(""), None);
    }
}
