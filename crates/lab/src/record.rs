//! Recorders: observers that keep what a figure needs.
