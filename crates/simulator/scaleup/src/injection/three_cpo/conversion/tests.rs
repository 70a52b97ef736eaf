use super::*;

/// Rules of figures 6.8 and 6.9, whose watermark of 100 is the largest.
fn figure_rules(handover: bool, most: f64) -> Rules {
    let mut parameters = ThreeCpoParameters {
        handover,
        ..Default::default()
    };
    parameters.tokens.watermark_max = most;
    parameters.tokens.watermark_min = 4.0;
    Rules::new(&parameters, FlitSizes::default())
}

/// Extra tokens whose equivalent is `equivalent` at this latency.
fn extra(rules: &Rules, equivalent: f64, latency: Cycle) -> Tokens {
    Tokens::scaled(1, equivalent * latency as f64 / rules.most)
}

fn close(left: f64, right: f64) {
    assert!((left - right).abs() < 1e-3, "{left} is not {right}");
}

#[test]
fn figures_6_8_and_6_9() {
    // At 5000 cycles a cut takes half: 50 of 100.
    for (rules, congested) in [(true, 100.0), (false, 2468.0)]
        .map(|(handover, most)| (figure_rules(handover, most), 5000))
    {
        let mut conversion = Conversion::default();
        conversion.on_extra(extra(&rules, 73.33, congested));
        let watermark = conversion.on_probe(&rules, congested, 100.0, None);
        close(conversion.last, 73.33);
        assert_eq!(watermark, 100.0, "73.33 exceeds 50");
        // Figure 6.8: the congestion is over.
        let mut relieved = conversion.clone();
        relieved.on_extra(extra(&rules, 66.66, 2000));
        assert_eq!(relieved.on_probe(&rules, 2000, watermark, None), 100.0);
        // Figure 6.9: it is not, and the equivalent changes by -6.67.
        conversion.on_extra(extra(&rules, 66.66, congested));
        let watermark = conversion.on_probe(&rules, congested, watermark, None);
        close(conversion.last, 66.66);
        close(watermark, 100.0 - rules.rate_scaling(33.34) * 0.5 * 33.34);
        assert!(watermark < 100.0);
    }
}

#[test]
fn an_equivalent_that_grows_too_little_does_not_prevent_the_cut() {
    let rules = figure_rules(true, 100.0);
    let mut conversion = Conversion::default();
    conversion.on_extra(extra(&rules, 20.0, 5000));
    let watermark = conversion.on_probe(&rules, 5000, 60.0, None);
    // Line 14 raises it to 80, and of the 60 beside the equivalent a part is cut.
    close(watermark, 80.0 - rules.rate_scaling(60.0) * 0.5 * 60.0);
    let without = figure_rules(false, 100.0);
    let mut conversion = Conversion::default();
    conversion.on_extra(extra(&without, 20.0, 5000));
    let watermark = conversion.on_probe(&without, 5000, 60.0, None);
    close(watermark, 60.0 - without.rate_scaling(40.0) * 0.5 * 40.0);
}

#[test]
fn cuts_are_scaled_by_the_root_of_the_rate() {
    let rules = Rules::new(&ThreeCpoParameters::default(), FlitSizes::default());
    for (rate, factor) in [
        (0.0, 0.05),
        (100.0, 0.05),
        (200.0, 0.367),
        (400.0, 0.626),
        (800.0, 0.809),
        (1234.0, 0.896),
        (2468.0, 1.0),
    ] {
        let scaling = rules.rate_scaling(rate);
        assert!((scaling - factor).abs() < 5e-4, "{rate}: {scaling}");
    }
    let (alpha, beta) = rules.rate_scaling.expect("a range");
    close(alpha, 12.520);
    close(beta, 0.2520);
    let mut fixed = ThreeCpoParameters::default();
    fixed.tokens.watermark_min = 2468.0;
    let fixed = Rules::new(&fixed, FlitSizes::default());
    let watermark = Conversion::default().on_probe(&fixed, 9000, 2468.0, None);
    assert_eq!(watermark, 2468.0, "without a range");
}

#[test]
fn tokens_convert_by_the_length_of_the_round_trip() {
    let rules = Rules::new(&ThreeCpoParameters::default(), FlitSizes::default());
    let mut conversion = Conversion::default();
    conversion.on_extra(Tokens::of_flits(500));
    conversion.on_extra(Tokens::of_flits(100));
    // X = WM_MAX N / L.
    assert_eq!(conversion.equivalent(&rules, 1200, 2468.0, None), 1234.0);
    assert_eq!(conversion.equivalent(&rules, 1200, 2468.0, None), 0.0);
}

#[test]
fn tokens_that_a_round_trip_could_not_bring_are_carried_over() {
    let rules = Rules::new(&ThreeCpoParameters::default(), FlitSizes::default());
    let mut conversion = Conversion::default();
    conversion.on_extra(Tokens::of_flits(700));
    // 500 of 1000 cycles bring a token at half the watermark.
    assert_eq!(conversion.equivalent(&rules, 1000, 1234.0, None), 1234.0);
    assert_eq!(conversion.carry_over, 200.0);
    let next = conversion.equivalent(&rules, 1000, 1234.0, None);
    close(next, 2468.0 * 0.2);
    assert_eq!(conversion.carry_over, 0.0);
    conversion.on_extra(Tokens::of_flits(10_000));
    conversion.equivalent(&rules, 1000, 1234.0, None);
    assert_eq!(conversion.carry_over, 2000.0, "four round trips' worth");
}

#[test]
fn a_class_that_few_operations_use_counts_for_more() {
    let mut parameters = ThreeCpoParameters::default();
    let rules = Rules::new(&parameters, FlitSizes::default());
    for (share, factor) in [
        (None, 1.0),
        (Some(1.0), 1.0),
        (Some(0.51), 1.0),
        (Some(0.5), 1.0),
        (Some(0.25), 5.0),
        (Some(0.0), 9.0),
    ] {
        assert_eq!(rules.correct_skew(10.0, share), 10.0 * factor, "{share:?}");
    }
    parameters.skew_correction = false;
    let rules = Rules::new(&parameters, FlitSizes::default());
    assert_eq!(rules.correct_skew(10.0, Some(0.0)), 10.0);
}

#[test]
fn without_matches_it_is_aimd_scaled_by_rate() {
    let rules = Rules::new(&ThreeCpoParameters::default(), FlitSizes::default());
    let after =
        |latency, watermark| Conversion::default().on_probe(&rules, latency, watermark, Some(0.5));
    assert_eq!(after(1999, 1000.0), 1050.0);
    assert_eq!(after(2000, 1000.0), 1000.0);
    assert_eq!(after(5000, 2468.0), 1234.0);
    assert_eq!(after(90_000, 2468.0), 1234.0);
    close(
        after(3500, 800.0),
        800.0 * (1.0 - 0.25 * rules.rate_scaling(800.0)),
    );
    close(after(5000, 100.5), 100.0);
    assert_eq!(after(100, 2460.0), 2468.0);
}
