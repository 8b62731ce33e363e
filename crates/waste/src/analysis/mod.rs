//! What is made of a table outside of any handler: this part allocates.
//!
//! [`profile`] reads and adds up tables, [`contexts`] is their tree of calling contexts, [`accounts`] their counters, [`rank`] what a person should
//! look at first, with [`hint`]s in words; [`interval`] says how far a sample can be trusted, [`bytecode`] whether a line can be, [`text`] shows an instruction.

pub mod accounts;
pub mod bytecode;
pub mod contexts;
pub mod hint;
pub mod interval;
pub mod profile;
pub mod rank;
pub mod text;
