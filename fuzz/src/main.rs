//! `cargo run -p fuzz -- TARGET [--minutes N] [--seed S] [--from CASE] [--cases N]`: made-up input for one target,
//! until the time is over or something does not hold.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program says what it does")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fuzz::corpus;
use fuzz::mutate::mutated;
use fuzz::random::Random;
use fuzz::targets::{TARGETS, Target};

/// One input that takes longer is a finding: nobody's input may.
const SLOW: Duration = Duration::from_secs(2);
/// How often progress is said. Cases are numbered, so a run that ends hard is looked into with `--from`.
const SAID_EVERY: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        TARGETS.iter().for_each(|target| println!("{:<10} {}", target.name, target.about));
        return ExitCode::SUCCESS;
    }
    let Some((target, plan)) = read(&arguments) else {
        eprintln!("usage: fuzz TARGET [--minutes N] [--seed S] [--from CASE] [--cases N]; without any, the targets");
        return ExitCode::from(2);
    };
    match run(target, &plan) {
        Ok(cases) => {
            println!("{}: {cases} cases, nothing found", target.name);
            ExitCode::SUCCESS
        }
        Err(found) => {
            eprintln!("{}: {found}", target.name);
            ExitCode::FAILURE
        }
    }
}

/// Which cases are run.
struct Plan {
    seed: u64,
    from: u64,
    cases: u64,
    time: Duration,
}

fn read(arguments: &[String]) -> Option<(&'static Target, Plan)> {
    let (name, options) = arguments.split_first()?;
    let target = TARGETS.iter().find(|target| target.name == name)?;
    let mut plan = Plan { seed: 1, from: 0, cases: u64::MAX, time: Duration::from_secs(60) };
    for option in options.chunks(2) {
        let [name, value] = option else { return None };
        let value: u64 = value.parse().ok()?;
        match name.as_str() {
            "--minutes" => plan.time = Duration::from_secs(value * 60),
            "--seed" => plan.seed = value,
            "--from" => plan.from = value,
            "--cases" => plan.cases = value,
            _ => return None,
        }
    }
    Some((target, plan))
}

fn run(target: &Target, plan: &Plan) -> Result<u64, String> {
    let seeds = corpus::seeds(target.name).map_err(|error| format!("the corpus cannot be read: {error}"))?;
    let inputs: Vec<Vec<u8>> = seeds.into_iter().map(|seed| seed.input).collect();
    let begun = Instant::now();
    let mut said = begun;
    let mut slowest = Duration::ZERO;
    let mut done = 0;
    while done < plan.cases && begun.elapsed() < plan.time {
        let case = plan.from + done;
        let input = mutated(&inputs, &mut Random::of(plan.seed, case));
        let before = Instant::now();
        let held = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        let took = before.elapsed();
        slowest = slowest.max(took);
        if held.is_err() || took > SLOW {
            let what = if held.is_err() { "does not hold".to_owned() } else { format!("took {took:?}") };
            let file = keep(target.name, case, &input).map_err(|error| error.to_string())?;
            return Err(format!("case {case} {what}: {} ({} bytes)", file.display(), input.len()));
        }
        done += 1;
        if said.elapsed() > SAID_EVERY {
            said = Instant::now();
            println!("{}: {case} cases, the slowest took {slowest:?}", target.name);
        }
    }
    Ok(done)
}

/// Keeps an input. Made small and with its fault mended, it belongs into the corpus.
fn keep(target: &str, case: u64, input: &[u8]) -> std::io::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/fuzz").join(target);
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(format!("case-{case}"));
    std::fs::write(&file, input)?;
    Ok(file)
}
