//! The binary: one program with a subcommand for each of its jobs (overview, Commands and files).

mod background;
mod cli;
mod config;
mod demo;
mod disk;
mod home;
mod local;
mod log;
mod migrate;
mod openapi;
mod runtime;
mod serve;
mod shell;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == shell::WORD) {
        return shell::run(words);
    }
    let result = match Cli::parse().command {
        Command::Serve(args) => serve::run(args),
        Command::Start(args) => background::start(args),
        Command::Stop(args) => background::stop(args),
        Command::Logs(args) => background::logs(args),
        Command::Demo(args) => demo::run(args),
        Command::Migrate(args) => migrate::run(args),
        Command::Openapi(args) => openapi::run(args),
        Command::Client(command) => cli::run(command),
    };
    cli::finish(result)
}
