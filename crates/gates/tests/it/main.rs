//! Tests of the gates.

mod chat;
mod fixture;
mod gate;
mod messages;
mod outbound;
mod support;
