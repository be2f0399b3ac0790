//! The stages of a server's life.

use tokio::sync::watch;

/// Where a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It serves.
    Running,
    /// It ends: streams are ended, commands are refused, reads go on.
    Draining,
    /// It takes no new connection; requests that run are finished.
    Closing,
}

/// Moves a server from stage to stage, never back.
#[derive(Debug)]
pub struct StageHandle(watch::Sender<Stage>);

/// Tells the stage.
#[derive(Clone, Debug)]
pub struct Stages(watch::Receiver<Stage>);

/// A server's stages, beginning with [`Stage::Running`]. When the handle is dropped, the server closes.
pub fn stages() -> (StageHandle, Stages) {
    let (sender, receiver) = watch::channel(Stage::Running);
    (StageHandle(sender), Stages(receiver))
}

impl StageHandle {
    /// Goes on to `stage`, unless the server is further already.
    pub fn advance(&self, stage: Stage) {
        self.0.send_if_modified(|now| {
            let forward = *now < stage;
            if forward {
                *now = stage;
            }
            forward
        });
    }
}

impl Stages {
    /// Where the server stands.
    pub fn now(&self) -> Stage {
        if self.0.has_changed().is_err() { Stage::Closing } else { *self.0.borrow() }
    }

    /// Waits until the server stands at `stage` or further.
    pub async fn reached(&mut self, stage: Stage) {
        // An error means that the handle is gone: the server closes.
        let _ = self.0.wait_for(|now| *now >= stage).await;
    }
}
