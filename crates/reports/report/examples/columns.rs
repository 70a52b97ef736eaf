//! The book's chapter on the columns of Parquet files, on standard output.

#![allow(clippy::print_stdout, reason = "it prints a page")]

fn main() {
    print!("{}", clearway_report::columns::page());
}
