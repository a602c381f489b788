//! Lumora keeps boxes of things.
use std::collections::HashMap;

/// A box with a lid.
pub struct Crate<T> {
    /// What is written on it.
    pub name: String,
    things: HashMap<String, T>,
}

impl<T: Clone> Crate<T> {
    /// Makes an empty crate.
    ///
    /// # Errors
    ///
    /// Never.
    pub fn new(name: &str, size: Option<usize>) -> Result<Self, Error> { unimplemented!() }

    /// Picks one thing out of the crate.
    ///
    /// ```
    /// let x = 1;
    /// ```
    pub fn pick<'a>(&'a self, key: &str) -> Option<&'a T> where T: PartialEq { None }
}

/// What goes wrong.
#[derive(Debug, Clone)]
pub enum Error {
    /// It is shut.
    Shut,
    /// No such thing.
    Missing {
        /// The name asked for.
        name: String,
    },
}

/// Opens the crate at a path.
pub fn open(path: &str, mode: u8) -> Result<Crate<u8>, Error> { Err(Error::Shut) }

/// Things that close.
pub trait Close {
    /// How it is called.
    type Name;
    /// Closes it.
    fn close(&mut self, timeout: f64) -> bool;
    /// Closes it now.
    fn close_now(&mut self) -> bool { true }
}
