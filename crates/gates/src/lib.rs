//! Gates: the only code that talks to the outside on a tenant's behalf, and so the only code that holds credentials.

pub mod fixture;

mod count;
mod failure;
