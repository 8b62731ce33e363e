//! The wire format between the agent and everything that reads what it counted.
pub mod layout;
pub mod meta;
