//! `nylorun completions`

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::failure::Failure;
use super::output::print;

/// `nylorun completions`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nylorun completions bash > ~/.local/share/bash-completion/completions/nylorun
  nylorun completions zsh > ~/.zfunc/_nylorun
  nylorun completions fish > ~/.config/fish/completions/nylorun.fish")]
pub(crate) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn run(args: CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "nylorun", &mut script);
    print(&String::from_utf8_lossy(&script))
}
