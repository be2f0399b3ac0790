//! `nylorun start`: runs `nylorun serve` apart from the terminal, waits until it is ready, and links the project to it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cli::term::{Style, Tone, visible};
use crate::cli::{Exit, Failure, HomeArgs, HostFile, LinkFile, Project, ServeArgs, StartArgs, current_directory};
use crate::config::Config;
use crate::home::{Home, Occupant};
use crate::log;
use crate::serve::READY;

/// When to say that it takes long.
const LONG: Duration = Duration::from_secs(5);
/// How long another process may use the home directory without becoming ready.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often to look at that.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How many of the last lines of the log tell why a start failed.
const TOLD_LINES: usize = 15;

#[derive(Serialize)]
struct Started {
    url: String,
    pid: u32,
    home: PathBuf,
    log: PathBuf,
    /// Whether this call started it.
    started: bool,
    /// The project's link; absent where the home directory needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<PathBuf>,
}

/// Starts the server, unless it runs.
///
/// # Errors
/// A setting cannot be used (exit code 2), or the server did not become ready.
pub(crate) fn run(args: StartArgs) -> Result<(), Failure> {
    let directory = args.home.directory()?;
    let serve = ServeArgs { home: HomeArgs { home: Some(directory) }, listen: args.listen, ..ServeArgs::default() };
    // Here, so that a setting that cannot be used is told at once, and not in a log.
    let config = Config::of_process(&serve)?;
    log::to_stderr("warn", config.log_format);
    let home = Home::prepare(&config.home)?;
    let (host, started) = match server_of_another(&home)? {
        Some(host) => (host, false),
        None => spawn_and_wait(&home, args.listen)?,
    };
    let link = link(&home, &host);
    let (log, home) = (home.log_file(), config.home);
    let told = Started { url: host.url.clone(), pid: host.pid, home, log, started, link };
    args.output.print(&told, |told| text(told, &host, args.listen))
}

/// The server that runs on the home directory already; one that starts is waited for.
fn server_of_another(home: &Home) -> Result<Option<HostFile>, Failure> {
    let begun = Instant::now();
    loop {
        let pid = match home.occupant()? {
            Occupant::Nobody => return Ok(None),
            Occupant::Server(host) if is_answering(&host) => return Ok(Some(host)),
            // It starts, or it was just killed and still holds the directory.
            Occupant::Server(HostFile { pid, .. }) => Some(pid),
            Occupant::Busy { pid } => pid,
        };
        if begun.elapsed() > PATIENCE {
            let process = pid.map_or_else(|| "a process".to_owned(), |pid| format!("process {pid}"));
            let home = home.path().display();
            return Err(Failure::new(format!("{process} uses the home directory {home}, and does not become ready"))
                .remedy("look into its log, or stop it with `nylorun stop`"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Whether the server answers on its address.
fn is_answering(host: &HostFile) -> bool {
    let answer = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((host.host.as_str(), host.port))?;
        stream.set_read_timeout(Some(LONG))?;
        let authority = host.url.trim_start_matches("http://");
        write!(stream, "GET /health HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n")?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        Ok(status == *b"HTTP/1.1 200")
    };
    answer().unwrap_or(false)
}

fn spawn_and_wait(home: &Home, listen: Option<SocketAddr>) -> Result<(HostFile, bool), Failure> {
    let path = home.log_file();
    let logged = fs::metadata(&path).map_or(0, |file| file.len());
    let mut child = spawn(home, listen, &path)?;
    let pid = child.id();
    if wait_until_ready(&mut child, &path) {
        let host = home.host_file()?.filter(|host| host.pid == pid);
        return host.map(|host| (host, true)).ok_or_else(|| Failure::new("the server was replaced as it became ready"));
    }
    let status = child.wait().map_err(|error| Failure::new(format!("cannot wait for the server: {error}")))?;
    // Two starts at once: the other one was first.
    match server_of_another(home)? {
        Some(host) => Ok((host, false)),
        None => Err(failed(status, &path, logged)),
    }
}

fn spawn(home: &Home, listen: Option<SocketAddr>, log: &Path) -> Result<Child, Failure> {
    let failed = |what: &str, error: std::io::Error| Failure::new(format!("cannot {what}: {error}"));
    let program = std::env::current_exe().map_err(|error| failed("find this program's own file", error))?;
    // What is said before the log begins.
    let log = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(log);
    let log = log.map_err(|error| failed(&format!("open the log {}", home.log_file().display()), error))?;
    let mut command = Command::new(program);
    command.arg("serve").arg(ServeArgs::BACKGROUND).arg("--home").arg(home.path());
    if let Some(listen) = listen {
        command.arg("--listen").arg(listen.to_string());
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    command.spawn().map_err(|error| failed("start the server", error))
}

/// Whether the server said that it is ready; false when it ended before.
fn wait_until_ready(child: &mut Child, log: &Path) -> bool {
    let Some(stdout) = child.stdout.take() else { return false };
    let (sender, said) = mpsc::channel();
    std::thread::spawn(move || {
        let line = BufReader::new(stdout).lines().next();
        // An error means that nobody waits any more.
        let _ = sender.send(matches!(line, Some(Ok(line)) if line.starts_with(READY)));
    });
    match said.recv_timeout(LONG) {
        Ok(ready) => ready,
        Err(RecvTimeoutError::Disconnected) => false,
        Err(RecvTimeoutError::Timeout) => {
            say(&format!("still starting; its log is {}", log.display()));
            said.recv().unwrap_or(false)
        }
    }
}

/// Why it did not become ready: the end of what it logged since.
fn failed(status: ExitStatus, log: &Path, logged: u64) -> Failure {
    let text = fs::read(log).unwrap_or_default();
    let since = text.get(usize::try_from(logged).unwrap_or(usize::MAX)..).unwrap_or(&text);
    let since = String::from_utf8_lossy(since);
    let lines: Vec<&str> = since.lines().collect();
    let is_usage = status.code() == Some(i32::from(Exit::Usage.number()));
    if let Some(usage) = usage_of(&lines).filter(|_| is_usage) {
        return usage;
    }
    let told = lines.iter().skip(lines.len().saturating_sub(TOLD_LINES)).map(|line| (*line).to_owned()).collect();
    Failure::new(format!("the server did not become ready ({status})"))
        .lines(told)
        .remedy(format!("mend what it says, or look into its log: {}", log.display()))
}

/// What `serve` said of a setting that it cannot use, the last of what it printed: a start says the same.
fn usage_of(lines: &[&str]) -> Option<Failure> {
    let begins = lines.iter().rposition(|line| line.starts_with("error: "))?;
    let failure = Failure::usage(lines[begins].strip_prefix("error: ")?);
    let (remedies, details): (Vec<_>, Vec<_>) =
        lines[begins + 1..].iter().map(|line| line.trim_start()).partition(|line| line.starts_with("try: "));
    let failure = failure.lines(details.into_iter().map(str::to_owned).collect());
    Some(match remedies.first().and_then(|line| line.strip_prefix("try: ")) {
        Some(remedy) => failure.remedy(remedy),
        None => failure,
    })
}

/// Links the current directory. A directory that cannot be written is no reason to fail: the server runs.
fn link(home: &Home, host: &HostFile) -> Option<PathBuf> {
    let written = current_directory().and_then(|directory| {
        let link = LinkFile {
            format: 1,
            host_id: Some(host.host_id.clone()),
            tenant_id: Some(host.tenant_id.clone()),
            url: host.url.clone(),
            home: Some(home.path().to_owned()),
        };
        let missing = || Failure::new(format!("{} is missing", home.credentials_path().display()));
        let credentials = home.credentials()?.ok_or_else(missing)?;
        Project::write(&directory, link, &credentials)
    });
    match written {
        Ok(project) => project.map(|project| project.file()),
        Err(failure) => {
            say(&format!("this directory is not linked to the server: {failure}"));
            None
        }
    }
}

fn text(told: &Started, host: &HostFile, asked: Option<SocketAddr>) -> String {
    let mut text = if told.started {
        format!("{READY}{}\n", told.url)
    } else {
        format!("nylorun runs already at {} (process {})\n", told.url, told.pid)
    };
    let differs = |asked: &SocketAddr| asked.port() != 0 && format!("http://{asked}") != host.url;
    if let Some(asked) = asked.filter(differs) {
        text.push_str(&format!("it does not listen on {asked}: `nylorun stop`, then start it again\n"));
    }
    text.push_str(&format!("home  {}\nlog   {}\n", told.home.display(), told.log.display()));
    if let Some(link) = &told.link {
        text.push_str(&format!("link  {}\n", link.display()));
    }
    visible(&text)
}

fn say(text: &str) {
    // Nobody can be told when standard error is gone.
    let _ = writeln!(std::io::stderr(), "{}", Style::of_stderr().paint(Tone::Warn, &visible(text)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serve_said_of_a_setting_is_said_again() {
        let lines = [
            "  INFO starting",
            "error: an older start",
            "error: X=1 cannot be used",
            "  line 2: a",
            "    try: mend it",
        ];
        let expected = Failure::usage("X=1 cannot be used").lines(vec!["line 2: a".to_owned()]).remedy("mend it");
        assert_eq!(usage_of(&lines), Some(expected));
        assert_eq!(usage_of(&["error: X"]), Some(Failure::usage("X")));
        assert_eq!(usage_of(&["  INFO starting"]), None);
    }
}
