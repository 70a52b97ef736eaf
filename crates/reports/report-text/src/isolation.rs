//! A study of attacks for a terminal.

use crate::table::{Align, Table};
use clearway_report::isolation::{EXPLANATION, HEADINGS, IsolationRecord};

/// Table of a study: a row for each transport and scope under each attack.
pub fn isolation_table(study: &IsolationRecord) -> String {
    let mut table = Table::new();
    for heading in HEADINGS {
        table = table.column(heading, Align::Left);
    }
    for cell in &study.cells {
        table.row(cell.texts());
    }
    format!(
        "{}\n\n{}\n{EXPLANATION}\n",
        study.subtitle(),
        table.render(usize::MAX)
    )
}

/// Matrix of a study: both verdicts on each transport and scope under each attack.
pub fn isolation_matrix(study: &IsolationRecord) -> String {
    let (headings, rows) = study.matrix();
    let mut table = Table::new();
    for heading in headings {
        table = table.column(heading, Align::Left);
    }
    rows.into_iter().for_each(|row| table.row(row));
    format!(
        "{}\n\n{}\n{EXPLANATION}\n",
        study.subtitle(),
        table.render(usize::MAX)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_tables::isolation::study;

    #[test]
    fn tables_say_who_gains() {
        let record = study();
        insta::assert_snapshot!(isolation_table(&record), @r#"
        incast attacked by hosts 0, 1 seed

        transport  scope       attack    gain  goodput of an attacker    goodput of a victim     p99 slowdown of victims  p99.9 slowdown    fairness of users  verdict     harm
        ---------  ----------  --------  ----  ------------------------  ----------------------  -----------------------  ----------------  -----------------  ----------  ------------
        dcqcn      pair        parallel  0.91  80 Gbit/s -> 72.7 Gbit/s  80 Gbit/s -> 40 Gbit/s  2.000x -> 4.000x         2.000x -> 4.000x  1.000 -> 0.922     secure      0.50 HARMFUL
        dcqcn      queue-pair  parallel  2.00  80 Gbit/s -> 160 Gbit/s   80 Gbit/s -> 40 Gbit/s  2.000x -> 4.000x         2.000x -> 4.000x  1.000 -> 0.735     VULNERABLE  0.50 HARMFUL

        Without the attack -> with it: medians over seeds. Goodput of a user: bytes of its messages over the sum of their completion times.
        Gain: goodput of an attacker with the attack over that without; vulnerable from 1.2 on with every seed, secure below it with every seed,
        not tested if the mean slowdown of the attackers' messages without the attack is below 1.2 with every seed, so that nothing was contended.
        Harm: goodput of a victim with the attack over that without. A seed is harmed if that is at most 1/1.2, or if the p99 or p99.9 slowdown of the
        victims is at least 1.2 times as great: harmful with every seed, unharmed with none. In brackets: the slowdown that tells where goodput does not.
        Fairness: Jain's index over the goodputs of all users; "poorer" for one that rises while users or victims get less in the mean.
        "#);
        let matrix = isolation_matrix(&record);
        let rows: Vec<&str> = matrix.lines().skip(2).take(4).collect();
        insta::assert_snapshot!(rows.join("\n"), @"
        transport  scope       parallel
        ---------  ----------  -----------------------------
        dcqcn      pair        0.91 secure, 0.50 HARMFUL
        dcqcn      queue-pair  2.00 VULNERABLE, 0.50 HARMFUL
        ");
    }
}
