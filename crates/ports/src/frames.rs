//! Connections that carry frames between core and a harness (engine a.2): ordered, asynchronous, closed with a reason.
//!
//! A port is one end. Both ends in one process make a pair; a WebSocket is another such pair, whose far end a task
//! pumps to and from the socket. So nothing above knows what carries its frames.

use tokio::sync::mpsc;

/// One end of a connection.
#[derive(Debug)]
pub struct FramePort {
    outgoing: mpsc::UnboundedSender<Received>,
    incoming: mpsc::UnboundedReceiver<Received>,
}

/// What comes out of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A frame's text.
    Frame(String),
    /// The other end closed, and why. Nothing follows.
    Closed(String),
}

/// The half that sends.
#[derive(Clone, Debug)]
pub struct FrameSender(mpsc::UnboundedSender<Received>);

/// The half that receives.
#[derive(Debug)]
pub struct FrameReceiver(mpsc::UnboundedReceiver<Received>);

/// Both ends of a connection.
pub fn frame_ports() -> (FramePort, FramePort) {
    let (here, there) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    let near = FramePort { outgoing: there.0, incoming: here.1 };
    (near, FramePort { outgoing: here.0, incoming: there.1 })
}

impl FramePort {
    /// The halves of this end.
    pub fn split(self) -> (FrameSender, FrameReceiver) {
        (FrameSender(self.outgoing), FrameReceiver(self.incoming))
    }
}

impl FrameSender {
    /// Sends a frame. It is lost when the other end is gone.
    pub fn send(&self, frame: String) {
        let _gone = self.0.send(Received::Frame(frame));
    }

    /// Tells the other end that this one is closed. What is sent after it is not heard.
    pub fn close(&self, reason: &str) {
        let _gone = self.0.send(Received::Closed(reason.to_owned()));
    }
}

impl FrameReceiver {
    /// The next that comes. An end that is dropped without a word counts as closed.
    pub async fn receive(&mut self) -> Received {
        self.0.recv().await.unwrap_or_else(|| Received::Closed("the other end is gone".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Received, frame_ports};

    #[tokio::test]
    async fn frames_arrive_in_order_and_before_the_close() {
        let (near, far) = frame_ports();
        let (sender, _) = near.split();
        let (_, mut receiver) = far.split();
        sender.send("1".to_owned());
        sender.send("2".to_owned());
        sender.close("done");
        assert_eq!(receiver.receive().await, Received::Frame("1".to_owned()));
        assert_eq!(receiver.receive().await, Received::Frame("2".to_owned()));
        assert_eq!(receiver.receive().await, Received::Closed("done".to_owned()));
        drop(sender);
        assert_eq!(receiver.receive().await, Received::Closed("the other end is gone".to_owned()));
    }
}
