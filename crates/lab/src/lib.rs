//! Clearway.
