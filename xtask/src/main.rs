//! `cargo run -p xtask -- tidy`: runs the tidy rules over the repository and prints what they find.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["tidy"] {
        eprintln!("usage: cargo run -p xtask -- tidy");
        return ExitCode::from(2);
    }
    match xtask::tidy::check(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").as_path()) {
        Ok(findings) if findings.is_empty() => {
            println!("tidy");
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            for finding in &findings {
                println!("{finding}");
            }
            println!("{} findings", findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy could not run: {error}");
            ExitCode::FAILURE
        }
    }
}
