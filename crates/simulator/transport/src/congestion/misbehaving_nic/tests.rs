use super::*;
use crate::congestion::NetworkFacts;
use crate::testing::network;
use clearway_units::{Rate, Span};

fn facts() -> NetworkFacts {
    network(Rate::from_gbps(100), Span::from_us(8))
}

fn profile(name: &str, reliability: &str) -> Profile {
    Profile {
        controller: ControllerSettings::named(name).unwrap(),
        reliability: Reliability::named(reliability).unwrap(),
        ..Profile::strack(facts())
    }
}

fn misbehaving(
    profile: &Profile,
    misbehaviour: Misbehaviour,
) -> Result<ControllerSettings, MisbehaviourError> {
    profile.misbehaving(&profile.controller, misbehaviour)
}

#[test]
fn each_transport_has_rules_that_can_be_broken_and_others_that_cannot() {
    use Misbehaviour::{Leaving, Marks, Rate, Weight};
    use MisbehaviourError::{Allocation, NoAllocation, NoControl, NoWeights};
    for name in ["s-perc", "1rc"] {
        let mut profile = profile(name, "go-back-n");
        assert_eq!(misbehaving(&profile, Marks), Err(Allocation), "{name}");
        assert_eq!(misbehaving(&profile, Weight), Err(NoWeights), "{name}");
        assert_eq!(Profile::usual_misbehaviour(&profile.controller), Rate);
        let told = |settings: ControllerSettings| {
            let built = settings.build(&facts());
            built.allocation().and_then(|own| own.misbehaviour)
        };
        assert_eq!(told(misbehaving(&profile, Leaving).unwrap()), Some(Leaving));
        assert_eq!(told(profile.controller.clone()), None);
        profile.scope.scope = Scope::Host;
        assert_eq!(told(misbehaving(&profile, Weight).unwrap()), Some(Weight));
    }
    let hpcc = profile("hpcc", "go-back-n");
    for misbehaviour in [Leaving, Weight, Rate] {
        assert_eq!(misbehaving(&hpcc, misbehaviour), Err(NoAllocation));
    }
    assert_eq!(Profile::usual_misbehaviour(&hpcc.controller), Marks);
    let constant = profile("constant", "go-back-n");
    assert_eq!(misbehaving(&constant, Marks), Err(NoControl));
}

#[test]
fn controllers_that_are_ignored_leave_line_rate_and_the_window_of_the_receiver() {
    let allowance = |profile: &Profile| {
        let settings = misbehaving(profile, Misbehaviour::Marks).unwrap();
        settings.build(&facts()).allowance()
    };
    let go_back_n = allowance(&profile("dcqcn", "go-back-n"));
    assert_eq!(
        (go_back_n.window, go_back_n.rate),
        ((1u64 << 40) as f64, None)
    );
    let strack = profile("strack", "selective-repeat");
    let largest = strack.controller.build(&facts()).largest_window();
    let selective = allowance(&strack);
    assert!((selective.window - largest).abs() < 1.0, "{selective:?}");
    assert_eq!(selective.rate, None);
}
