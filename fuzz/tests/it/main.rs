//! Every target holds for its corpus, and for some thousand changes of it that are the same in every run.
#![expect(clippy::expect_used, reason = "a test's helper fails by panicking, as the test does")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use fuzz::corpus;
use fuzz::mutate::mutated;
use fuzz::random::Random;
use fuzz::targets::{TARGETS, Target};

const CASES: u64 = 1_000;

fn hold(target: &Target) {
    let seeds = corpus::seeds(target.name).expect("the corpus is there");
    assert!(seeds.len() >= 3, "{}: a corpus of {}", target.name, seeds.len());
    for seed in &seeds {
        let held = catch_unwind(AssertUnwindSafe(|| (target.run)(&seed.input)));
        assert!(held.is_ok(), "{} does not hold for {}", target.name, seed.path.display());
    }
    let inputs: Vec<Vec<u8>> = seeds.into_iter().map(|seed| seed.input).collect();
    for case in 0..CASES {
        let input = mutated(&inputs, &mut Random::of(0, case));
        let held = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        assert!(held.is_ok(), "{} does not hold: cargo run -p fuzz -- {0} --seed 0 --from {case}", target.name);
    }
}

macro_rules! targets {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            let target = TARGETS.iter().find(|target| target.name == stringify!($name));
            hold(target.expect("it is a target"));
        })*

        #[test]
        fn every_target_is_run() {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

targets!(ids, cursors, json, manifest, bodies, record, frames, harness, providers, tools, tokens);
