//! What is printed is read back, and what is not of the API is refused.

mod frames;
mod shapes;
mod values;

use std::fmt::Debug;

use nylorun_domain::json::Json;

use super::frame::Frame;
use super::shape::{Shape, decode, encode};

/// Holds that a shape is read back as it was, alone and inside a frame, and refused with one member more.
fn holds<S: Shape + PartialEq + Debug>(shape: &S) {
    let document = encode(shape);
    assert_eq!(decode::<S>(&document).as_ref(), Ok(shape), "{document}");
    let frame = Frame::Request { id: 1, method: "m".to_owned(), params: document.clone() };
    let carried = Frame::decode(&frame.encode());
    assert_eq!(carried, Ok(frame));
    let inside = document.as_str().strip_suffix('}').expect("shapes are objects");
    let comma = if inside == "{" { "" } else { "," };
    let more = Json::from_trusted(format!("{inside}{comma}\"unknown\":1}}"));
    assert!(decode::<S>(&more).is_err(), "{more}");
}
