//! A table of samples as a CSV file: a header line, then a line for each row.

use std::fs::File;
use std::io::Write;

use crate::error::{Doing, Result};
use crate::guest::run_dir::RunDir;

/// Rows are kept until there is so much of them, so that writing costs little.
const BUFFER_BYTES: usize = 64 * 1024;

/// A file of rows, those not yet written included.
pub struct Table {
    path: String,
    file: File,
    /// Lines that are to be written; rows are appended here.
    pub rows: Vec<u8>,
}

impl Table {
    /// Makes the file with its header line.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(run_dir: &RunDir, path: String, header: &str) -> Result<Self> {
        let file = File::from(run_dir.create(&path)?);
        let mut rows = Vec::with_capacity(2 * BUFFER_BYTES);
        rows.extend_from_slice(header.as_bytes());
        rows.push(b'\n');
        Ok(Self { path, file, rows })
    }

    /// Goes on with a file that has its header line already.
    ///
    /// # Errors
    /// It is gone.
    pub fn append(run_dir: &RunDir, path: String) -> Result<Self> {
        let file = File::from(run_dir.append(&path)?);
        Ok(Self { path, file, rows: Vec::with_capacity(2 * BUFFER_BYTES) })
    }

    /// Writes the rows if there are many, or if `all` of them are wanted.
    ///
    /// # Errors
    /// The disk does not take them.
    pub fn write(&mut self, all: bool) -> Result<()> {
        if self.rows.len() < BUFFER_BYTES && !all {
            return Ok(());
        }
        let path = &self.path;
        self.file.write_all(&self.rows).doing(|| format!("write {path}"))?;
        self.rows.clear();
        Ok(())
    }
}
