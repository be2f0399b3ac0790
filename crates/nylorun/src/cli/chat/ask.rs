//! What a paused turn asks, put to the person at the keyboard, or told to who has to answer.

use nylorun_client::{Approval, Command, CommandKind, SessionView};

use super::super::failure::Failure;
use super::super::session::{Inputs, Question, QuestionKind, answer, answers, asked, questions};
use super::super::term::{Style, Tone};
use super::input::write_stderr;
use super::turn::{Looked, Rest, Sent, Turn};

/// What the person wants.
enum Reply {
    Say(CommandKind),
    Cancel,
    Leave,
}

impl Turn {
    /// Puts each question to the person; without one, says what is asked and how to answer.
    pub(super) async fn ask(&mut self, view: &SessionView) -> Result<Looked, Failure> {
        let questions = questions(view);
        if !self.keyboard.is_somebody() {
            self.tell(&questions)?;
            return Ok(Looked::Waits);
        }
        for (at, question) in questions.iter().enumerate() {
            let style = self.printer.style();
            self.printer.advice(&asked(question, &self.inputs, &style))?;
            match self.reply(question).await? {
                Reply::Say(kind) => match self.send(&Command::new(kind)?).await? {
                    Sent::Accepted(_) => {}
                    // Somebody else was quicker, say.
                    Sent::Refused(error) => self.printer.notice(&error.to_string())?,
                    Sent::Left => return self.leave_unanswered(&questions[at..]),
                },
                Reply::Cancel => {
                    return Ok(match self.cancel().await? {
                        Rest::Ended(_) => Looked::Left,
                        Rest::Runs | Rest::Look => Looked::Answered,
                    });
                }
                Reply::Leave => return self.leave_unanswered(&questions[at..]),
            }
        }
        Ok(Looked::Answered)
    }

    fn leave_unanswered(&mut self, questions: &[Question]) -> Result<Looked, Failure> {
        write_stderr("\n");
        self.tell(questions)?;
        self.leave()?;
        Ok(Looked::Left)
    }

    fn tell(&mut self, questions: &[Question]) -> Result<(), Failure> {
        let style = self.printer.style();
        let text = questions.iter().map(|question| self.told(question, &style));
        let text: String = text.collect();
        Ok(self.printer.advice(&text)?)
    }

    fn told(&self, question: &Question, style: &Style) -> String {
        asked(question, &self.inputs, style) + &answers(self.session.id(), question, style)
    }

    /// Waits for an answer that can be one.
    async fn reply(&mut self, question: &Question) -> Result<Reply, Failure> {
        let prompt = match question.kind {
            QuestionKind::Approval => "allow it? [y/n]",
            QuestionKind::Value => "answer:",
        };
        loop {
            write_stderr(&format!("{} ", Style::of_stderr().paint(Tone::Strong, prompt)));
            let line = tokio::select! {
                line = self.keyboard.line() => line,
                () = self.interrupts.next() => return Ok(Reply::Cancel),
            };
            let Some(line) = line else { return Ok(Reply::Leave) };
            if matches!(line.trim(), "/quit" | "/exit") {
                return Ok(Reply::Leave);
            }
            match command(question, &line) {
                Ok(Some(kind)) => return Ok(Reply::Say(kind)),
                Ok(None) => {}
                Err(problem) => self.printer.notice(&format!("the answer {problem}"))?,
            }
        }
    }

    /// What the turn's earlier events say of the calls that it may ask for.
    pub(super) async fn read_inputs(&mut self, view: &SessionView) -> Result<(), Failure> {
        self.inputs = Inputs::read(&self.session, view).await?;
        Ok(())
    }
}

/// The command that a line stands for; `None` when it answers nothing.
///
/// # Errors
/// The line cannot be sent as what it is meant to be.
fn command(question: &Question, line: &str) -> Result<Option<CommandKind>, String> {
    let interaction_id = question.id.clone();
    match question.kind {
        QuestionKind::Approval => {
            let approval = match line.trim().to_lowercase().as_str() {
                "y" | "yes" => Approval::Approved,
                "n" | "no" => Approval::Denied,
                _ => return Ok(None),
            };
            Ok(Some(CommandKind::Approve { interaction_id, approval }))
        }
        QuestionKind::Value if line.trim().is_empty() => Ok(None),
        QuestionKind::Value => answer(line).map(|value| Some(CommandKind::Respond { interaction_id, value })),
    }
}
