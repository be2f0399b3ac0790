//! The target `tokens` for libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzz::targets::run("tokens", input));
