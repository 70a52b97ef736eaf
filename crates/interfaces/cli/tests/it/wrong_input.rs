//! Wrong input: each case ends with exit code 2 and a message with place, error and fix.

use crate::common::Bench;
use insta::assert_snapshot;

#[test]
fn attacks_that_cannot_be() {
    let bench = Bench::new("attacks");
    assert_snapshot!(bench.refuse_overrides(&[
        &["workload.attack.kind=flood"],
        &["workload.attack.kind=staggered", "workload.attack.hosts=3-1"],
        &["workload.attack.kind=staggered", "workload.attack.hosts=0-5000"],
        &["workload.attack.kind=staggered", "workload.attack.bytes=0"],
        &["workload.attack.kind=staggered", "workload.attack.bytes=1B", "workload.message=100MB"],
        &["workload.attack.kind=parallel", "workload.attack.share=1.5"],
        &["workload.attack.kind=parallel", "workload.attack.qps=0"],
        &["workload.attack.kind=overlay", "workload.attack.hosts=0,1"],
        &["workload.attack.kind=fan-out", "workload.attack.hosts=0,1"],
        &["workload.attack.kind=incast"],
        &["workload.attack.kind=incast", "workload.attack.target=128"],
        &["workload.attack.kind=disobey", "workload.attack.breaks=all"],
        &["workload.attack.kind=disobey", "workload.attack.breaks=leaving"],
        &["workload.attack.kind=disobey", "workload.attack.breaks=weight", "transport.kind=1rc"],
        &["workload.attack.kind=disobey", "workload.attack.breaks=marks", "transport.kind=s-perc"],
        &["workload.attack.kind=disobey", "transport.controller=constant"],
        &["workload.kind=ring-all-reduce", "workload.attack.kind=parallel"],
    ]), @r#"
    --set workload.attack.kind=flood: `workload.attack.kind` cannot be "flood"
      fix: expected one of "none", "parallel", "staggered", "overlay", "parallel-overlay", "fan-out", "short-flows", "incast", "disobey", "pause-storm"
    --set workload.attack.hosts=3-1: `workload.attack.hosts` cannot be "3-1"
      fix: expected "all", hosts such as "0-3,8", or a list of their numbers
    --set workload.attack.hosts=0-5000: there is no host 5000: the topology has 128, from 0 on
      fix: name hosts up to 127
    --set workload.attack.bytes=0: queue pairs that send nothing
      fix: give a size such as "1bdp" or "150KB"
    --set workload.attack.bytes=1B: an attack with more than 16777216 queue pairs
      fix: give more bytes to each
    --set workload.attack.share=1.5: a share of 1.5
      fix: give a number from 0 to 1
    --set workload.attack.qps=0: `workload.attack.qps` cannot be 0
      fix: expected a whole number from 1 to 4294967295, or "auto"
    --set workload.attack.hosts=0,1: an overlay or a fan-out of 2 hosts has no pairs to change between
      fix: let at least three hosts attack
    --set workload.attack.hosts=0,1: an overlay or a fan-out of 2 hosts has no pairs to change between
      fix: let at least three hosts attack
    --set workload.attack.kind=incast: only the attackers send flows: no other flow has a receiver to attack
      fix: name a receiver by `attack.target`
    --set workload.attack.target=128: there is no host 128: the topology has 128, from 0 on
      fix: name one up to 127
    --set workload.attack.breaks=all: `workload.attack.breaks` cannot be "all"
      fix: expected one of "leaving", "weight", "rate", "marks", or "auto"
    --set workload.attack.breaks=leaving: `attack.breaks` = "leaving": a transport with the controller "strack" has no such rule, since links allocate no rates to its flows
      fix: set `attack.breaks = "marks"`, or use `transport.kind` = "s-perc" or "1rc"
    --set workload.attack.breaks=weight: `attack.breaks` = "weight": a transport with the controller "1rc" has no such rule, since its flows have no weights
      fix: set `transport.weights = true` or `transport.scope = "host"`, or break another rule
    --set workload.attack.breaks=marks: `attack.breaks` = "marks": a transport with the controller "s-perc" has no such rule, since links allocate the rates of its flows
      fix: set `attack.breaks` to "rate", "leaving" or, with weights, "weight"
    --set workload.attack.kind=disobey: `attack.breaks` = "marks": a transport with the controller "constant" has no such rule, since it controls nothing
      fix: use a transport with congestion control
    --set workload.attack.kind=parallel: a section of jobs cannot attack: messages of a job wait for each other
      fix: attack with flows of a section without jobs, or give `transport.qps` more queue pairs
    "#);
}

#[test]
fn dead_paths_that_cannot_be_told() {
    let bench = Bench::new("dead-paths");
    assert_snapshot!(bench.refuse_overrides(&[
        &["transport.dead-path=true"],
        &["transport.dead-path=probe", "transport.recovery=irn"],
        &["transport.dead-path=probe", "transport.ack-bytes=16KiB"],
        &["transport.kind=rocev2", "transport.spray=adaptive", "transport.dead-path=probe"],
        &["transport.spray=reps", "transport.dead-path=probe"],
    ]), @r#"
    --set transport.dead-path=true: `transport.dead-path` cannot be true
      fix: expected one of "off", "probe"
    --set transport.recovery=irn: `transport.dead-path` = "probe" needs probes, and recovery "irn" sends none
      fix: set `transport.recovery` to "strack" or "sleek", or `transport.dead-path = "off"`
    --set transport.ack-bytes=16KiB: `transport.dead-path` = "probe" needs an acknowledgement for each packet of 4096B: with one for 16384B most paths are silent
      fix: set `transport.ack-bytes = "auto"`, or `transport.dead-path = "off"`
    --set transport.dead-path=probe: `transport.dead-path` = "probe" needs probes, and go-back-N sends none
      fix: set `transport.reliability = "selective-repeat"`, or `transport.dead-path = "off"`
    --set transport.dead-path=probe: a transport of reliability "selective-repeat", controller "strack", spray "reps" and feedback "none" has no key `dead-path`
      fix: `dead-path` is a key of `transport.spray = "adaptive"`: choose that, or leave the key out
    "#);
}

#[test]
fn scopes_that_cannot_be() {
    let bench = Bench::new("scopes");
    assert_snapshot!(bench.refuse_overrides(&[
        &["transport.scope=host-pair"],
        &["transport.scope=pair", "transport.scope-idle=-1us"],
        &["transport.kind=rocev2", "transport.scope=pair", "transport.phase-increase=1.0"],
        &["transport.kind=s-perc", "transport.scope=destination"],
        &["transport.kind=1rc", "transport.spray=adaptive"],
        &["transport.kind=1rc", "transport.reliability=selective-repeat"],
        &["transport.kind=1rc", "transport.headroom=1.5"],
        &["transport.kind=1rc", "transport.control-gap=10001"],
        &["transport.kind=1rc", "switch.kind=shared-buffer", "switch.pfc.agent-drops=false"],
        &["transport.kind=1rc", "switch.routing=adaptive"],
        &["transport.kind=s-perc", "switch.routing=flowlet"],
        &["transport.kind=s-perc", "switch.routing=round-robin"],
    ]), @r#"
    --set transport.scope=host-pair: `transport.scope` cannot be "host-pair"
      fix: expected one of "queue-pair", "destination", "pair", "service-level", "host"
    --set transport.scope-idle=-1us: `transport.scope-idle` cannot be "-1us"
      fix: expected a duration such as "1us" or "250ns", or "auto"
    --set transport.phase-increase=1.0: `transport.scope` = "pair" has one controller for several flows, and `phase-increase` depends on the phase of one
      fix: set `transport.phase-increase = 0.0`, or the scope to "queue-pair" or "host"
    --set transport.scope=destination: `transport.controller` = "s-perc" has no scope "destination": links allocate a rate to each flow
      fix: set `transport.scope` to "queue-pair", or to "host", which is `transport.weights = true`
    --set transport.spray=adaptive: `transport.controller` = "1rc" cannot spray over paths by "adaptive": its control packets take the path of the data
      fix: set `transport.spray = "single"`
    --set transport.reliability=selective-repeat: `transport.controller` = "1rc" does not work with "selective-repeat": links drop only the tail of the speculative data, and no loss detection is needed
      fix: set `transport.reliability = "go-back-n"`
    --set transport.headroom=1.5: `transport.controller` = "1rc" cannot give 1.5 of each link to flows
      fix: use a part from 0.001 to 1, or "auto", which leaves room for acknowledgements and control packets
    --set transport.control-gap=10001: `transport.controller` = "1rc" cannot leave 10001 round trips between two control packets
      fix: use 1 to 10000; links forget a flow after two such gaps
    --set switch.pfc.agent-drops=false: `switch.pfc.agent-drops` = false prevents links from dropping speculative data, and 1RC depends on these drops
      fix: set `switch.pfc.agent-drops = true`, or `transport.kind = "s-perc"`, which drops nothing
    --set switch.routing=adaptive: `switch.routing` = "adaptive" does not go with `transport.controller` = "1rc": data takes other links than the control packets that allocate its rate
      fix: set `switch.routing` to "ecmp" or "d-mod-k"
    --set switch.routing=flowlet: `switch.routing` = "flowlet" does not go with `transport.controller` = "s-perc": data takes other links than the control packets that allocate its rate
      fix: set `switch.routing` to "ecmp" or "d-mod-k"
    --set switch.routing=round-robin: `switch.routing` = "round-robin" does not go with `transport.controller` = "s-perc": data takes other links than the control packets that allocate its rate
      fix: set `switch.routing` to "ecmp" or "d-mod-k"
    "#);
}

#[test]
fn misspelt_keys_and_sections() {
    let bench = Bench::new("misspelt");
    assert_snapshot!(bench.refuse_overrides(&[
        &["seeed=1"],
        &["topology.hsots=4"],
        &["switch.ecn.kmn=1KB"],
        &["transport.controler=strack"],
        &["workload.mesage=1"],
        &["swtich.queue=1KB"],
        &["observe.series=1"],
        &["stop.at-mots=1ms"],
        &["workload[1].mesage=1"],
        &["workload[x].message=1"],
        &["workload[2].message=1KB"],
        &["workload[18446744073709551615].message=1KB"],
    ]), @r#"
    --set seeed=1: the scenario has no key `seeed`
      fix: did you mean `seed`? The keys are: name, seed, stop.at-most, trigger-delay
    --set topology.hsots=4: a topology of kind "leaf-spine" has no key `hsots`
      fix: did you mean `hosts`? The keys are: bit-error-rate, fabric-link-delay, fabric-link-rate, failed-uplinks.leaves, failed-uplinks.per-leaf, hosts, hosts-per-leaf, link-delay, link-rate, links, oversubscription, parallel-links, reroute-delay, spines
    --set switch.ecn.kmn=1KB: a lossy switch has no key `ecn.kmn`
      fix: did you mean `ecn.kmin`? The keys are: adaptive.flowlet-gap, adaptive.hash-below, adaptive.levels, adaptive.refresh, control-priority, ecn.classes, ecn.enabled, ecn.kmax, ecn.kmin, ecn.last-hop, ecn.mark, ecn.pmax, queue, routing, strict-priority, telemetry, trim-size, trim-victim, trimming
    --set transport.controler=strack: a transport of reliability "selective-repeat", controller "strack", spray "adaptive" and feedback "none" has no key `controler`
      fix: did you mean `controller`? The keys are: ack-bytes, ack-in-order, ack-on-ecn, ack-size, alpha, beta, bitmap, control-first, controller, credit.idle-pulls, credit.kind, credit.pull, credit.quantum, credit.rate, credit.window-bdps, dead-path, eta, ewma, feedback, gamma, header, init-cwnd, kind, linger, max-cwnd, max-decrease, max-paths, md-requires-ecn, min-cwnd, min-paths, ooo-factor, ooo-min, payload, phase-base, phase-increase, probe-after, probe-class, probe-rtt-limit, quick-adapt-fraction, recovery, reference-rate, reference-rtt, reliability, rto, rto-low, rto-low-packets, rto-per-packet, rto-rtts, scope, scope-idle, spray, strict-window, target-qdelay, target-qhigh-factor, telemetry-size
    --set workload.mesage=1: a workload of kind "permutation" has no key `mesage`
      fix: did you mean `message`? The keys are: attack.above, attack.breaks, attack.bytes, attack.from, attack.gap, attack.hosts, attack.kind, attack.lasts, attack.qps, attack.share, attack.target, count, hosts, message, name, period, period-jitter, priority, redraw, start, tenant
    --set swtich.queue=1KB: there is no section `swtich`
      fix: did you mean `switch`? The sections are: topology, switch, transport, injection, workload, event, fast-forward, observe
    --set observe.series=1: [observe] has no key `series`
      fix: give its parts: series.every, series.points, series.links, series.flows
    --set stop.at-mots=1ms: the scenario has no key `stop.at-mots`
      fix: did you mean `stop.at-most`? The keys are: name, seed, stop.at-most, trigger-delay
    --set workload[1].mesage=1: a workload of kind "permutation" has no key `mesage`
      fix: did you mean `message`? The keys are: attack.above, attack.breaks, attack.bytes, attack.from, attack.gap, attack.hosts, attack.kind, attack.lasts, attack.qps, attack.share, attack.target, count, hosts, message, name, period, period-jitter, priority, redraw, start, tenant
    --set workload[x].message=1: `workload[x]` is not a section
      fix: count sections from 0: `workload[1].message=2MB`
    --set workload[2].message=1KB: there is no section `workload[2]`: the scenario has 1
      fix: count sections from 0; `workload[1]` adds one
    --set workload[18446744073709551615].message=1KB: there is no section `workload[18446744073709551615]`: the scenario has 1
      fix: count sections from 0; `workload[1]` adds one
    "#);
    assert_snapshot!(bench.refuse_scenarios(&[
        "name = \"x\"\nseeed = 1\n",
        "[topology]\nkind = \"fat-tree\"\nspines = 4\n",
        "[switch]\nqueue = \"1KB\"\necn = { kmin = \"1KB\", kmx = \"1KB\" }\n",
        "[transport]\nspary = \"single\"\n",
        "[[workload]]\nkind = \"incast\"\nsender = 3\n",
        "[toplogy]\nkind = \"leaf-spine\"\n",
        "[zzyzx]\n",
        "[[workload]]\nkind = \"incast\"\n[[workload]]\n",
        "[switch.ecn]\n",
        "[stop]\nat-mots = \"1ms\"\n",
    ]), @r#"
    s.toml:2: the scenario has no key `seeed`
      fix: did you mean `seed`? The keys are: name, seed, stop.at-most, trigger-delay
    s.toml:3: a topology of kind "fat-tree" has no key `spines`
      fix: `spines` is a key of `topology.kind = "file"`, `topology.kind = "leaf-spine"`, `topology.kind = "multi-plane"` and 2 others: choose that, or leave the key out
    s.toml:3: a lossy switch has no key `ecn.kmx`
      fix: did you mean `ecn.kmax`? The keys are: adaptive.flowlet-gap, adaptive.hash-below, adaptive.levels, adaptive.refresh, control-priority, ecn.classes, ecn.enabled, ecn.kmax, ecn.kmin, ecn.last-hop, ecn.mark, ecn.pmax, queue, routing, strict-priority, telemetry, trim-size, trim-victim, trimming
    s.toml:2: a transport of reliability "selective-repeat", controller "strack", spray "adaptive" and feedback "none" has no key `spary`
      fix: did you mean `spray`? The keys are: ack-bytes, ack-in-order, ack-on-ecn, ack-size, alpha, beta, bitmap, control-first, controller, credit.idle-pulls, credit.kind, credit.pull, credit.quantum, credit.rate, credit.window-bdps, dead-path, eta, ewma, feedback, gamma, header, init-cwnd, kind, linger, max-cwnd, max-decrease, max-paths, md-requires-ecn, min-cwnd, min-paths, ooo-factor, ooo-min, payload, phase-base, phase-increase, probe-after, probe-class, probe-rtt-limit, quick-adapt-fraction, recovery, reference-rate, reference-rtt, reliability, rto, rto-low, rto-low-packets, rto-per-packet, rto-rtts, scope, scope-idle, spray, strict-window, target-qdelay, target-qhigh-factor, telemetry-size
    s.toml:3: a workload of kind "incast" has no key `sender`
      fix: did you mean `senders`? The keys are: attack.above, attack.breaks, attack.bytes, attack.from, attack.gap, attack.hosts, attack.kind, attack.lasts, attack.qps, attack.share, attack.target, count, group, message, name, period, period-jitter, placement, priority, receiver, redraw, senders, spread, stagger, start, tenant
    s.toml:1: there is no section `toplogy`
      fix: did you mean `topology`? The sections are: topology, switch, transport, injection, workload, event, fast-forward, observe
    s.toml:1: there is no section `zzyzx`
      fix: the sections are: topology, switch, transport, injection, workload, event, fast-forward, observe
    s.toml:3: an empty `[[workload]]`
      fix: give it a `kind`, or remove it
    s.toml:1: `switch.ecn` is empty
      fix: write keys into it, or remove it
    s.toml:2: the scenario has no key `stop.at-mots`
      fix: did you mean `stop.at-most`? The keys are: name, seed, stop.at-most, trigger-delay
    "#);
}

#[test]
fn unknown_names() {
    let bench = Bench::new("names");
    assert_snapshot!(bench.refuse_overrides(&[
        &["topology.kind=leafspine"],
        &["switch.kind=lossless"],
        &["transport.kind=rocev1"],
        &["transport.controller=strak"],
        &["transport.spray=adaptiv"],
        &["workload.kind=permutations"],
        &["topology.kind=3"],
    ]), @r#"
    --set topology.kind=leafspine: `topology.kind`: there is no "leafspine"
      fix: did you mean `leaf-spine`? Use one of: leaf-spine, fat-tree, pods, rail-optimised, multi-plane, dragonfly, dragonfly-plus, bcube, ring, torus, mesh, fully-connected, single-switch, dumbbell, file, nvlink
    --set switch.kind=lossless: `switch.kind`: there is no "lossless"
      fix: write "shared-buffer", with priority flow control; `pfc.classes` says for which classes; else use one of: lossy, shared-buffer
    --set transport.kind=rocev1: `transport.kind`: there is no "rocev1"
      fix: did you mean `rocev2`? Use one of: strack, rocev2, dcqcn-2016, tmdml, dctcp, tcp, mltcp, hpcc, swift, timely, irn, s-perc, 1rc, uet, uet-rccc, uet-no-trim
    --set transport.controller=strak: `transport.controller`: there is no "strak"
      fix: did you mean `strack`? Use one of: strack, constant, nscc, dcqcn, dcqcn-timer, dctcp, dctcp-rate, reno, hpcc, swift, timely, smartt, s-perc, 1rc
    --set transport.spray=adaptiv: `transport.spray`: there is no "adaptiv"
      fix: did you mean `adaptive`? Use one of: adaptive, oblivious, bitmap, reps, mixed, plb, flowlet, single
    --set workload.kind=permutations: `workload.kind`: there is no "permutations"
      fix: did you mean `permutation`? Use one of: permutation, incast, poisson, one-to-one, ring-all-reduce, halving-doubling, double-binary-tree, direct-all-reduce, parameter-server, all-to-all, ring-all-gather, direct-all-gather, ring-reduce-scatter, direct-reduce-scatter, hierarchical-all-reduce, hierarchical-reduce-scatter, hierarchical-all-gather, hierarchical-all-to-all, chain-broadcast, tree-broadcast, moe, kv-transfer, checkpoint, training, trace, flows, file
    --set topology.kind=3: `topology.kind`: there is no 3
      fix: use one of: leaf-spine, fat-tree, pods, rail-optimised, multi-plane, dragonfly, dragonfly-plus, bcube, ring, torus, mesh, fully-connected, single-switch, dumbbell, file, nvlink
    "#);
    let errors = [
        bench.refuse(&["run", "quikstart"]),
        bench.refuse(&["run", "no/such/file.toml"]),
        bench.refuse(&["run", "."]),
        bench.refuse(&["list", "controler"]),
        bench.refuse(&["explain", "adaptative"]),
        bench.refuse(&["explain", "xyzzy"]),
        bench.refuse(&["topology", "quikstart"]),
    ];
    assert_snapshot!(errors.join("\n"), @r"
    quikstart: there is no such file or built-in scenario
      fix: did you mean `quickstart`? Give the path of a TOML file or a built-in scenario: quickstart, permutation-1k, permutation-8k, permutation-64k, permutation-256k, incast-32, mix-64, tenants-mixed, training-256, gpt-13b-128, gpt-175b-1024, moe-64, moe-128, moe-512, serving-64, checkpoint-64, hadoop-320, websearch-1k, link-flap, rail-64, planes-64, dragonfly-72, nvlink-64, testbed-permutation, testbed-incast, testbed-dead-path
    no/such/file.toml: there is no such file or built-in scenario
      fix: give the path of a TOML file or a built-in scenario: quickstart, permutation-1k, permutation-8k, permutation-64k, permutation-256k, incast-32, mix-64, tenants-mixed, training-256, gpt-13b-128, gpt-175b-1024, moe-64, moe-128, moe-512, serving-64, checkpoint-64, hadoop-320, websearch-1k, link-flap, rail-64, planes-64, dragonfly-72, nvlink-64, testbed-permutation, testbed-incast, testbed-dead-path
    .: this is a folder, and only regular files are read
      fix: name a file in it
    there is no group `controler`
      fix: use one of: transports, reliability, controllers, spray, feedback, topologies, switches, workloads, sizes, scenarios, scale-up, injection, plans
    nothing is called `adaptative`
      fix: did you mean `adaptive`?
    nothing is called `xyzzy`
      fix: known are: 1rc, 3cpo, adaptive, aimd, ali-storage, all-to-all, assert, bcube, bitmap, chain-broadcast, checkpoint, collective, constant, dcqcn, dcqcn-2016, dcqcn-timer, dctcp, dctcp-rate, direct-all-gather, direct-all-reduce, direct-reduce-scatter, double-binary-tree, dragonfly, dragonfly-plus, dumbbell, event, fast-forward, fat-tree, file, flowlet, flows, fully-connected, go-back-n, hadoop, halving-doubling, hierarchical-all-gather, hierarchical-all-reduce, hierarchical-all-to-all, hierarchical-reduce-scatter, hpcc, incast, injection, interval, irn, job, kv-transfer, leaf-spine, links, lossy, mesh, mixed, mltcp, moe, multi-plane, none, nscc, nvlink, oblivious, observe, one-to-one, parameter-server, permutation, placement, plan, plb, pods, poisson, progress, rail-optimised, random-sets, reno, reps, ring, ring-all-gather, ring-all-reduce, ring-reduce-scatter, rocev2, s-perc, sample, scenario, selective-repeat, shared-buffer, single, single-switch, smartt, strack, sweep, swift, switch, tcp, timely, tmdml, torus, trace, training, tree-broadcast, tune, uet, uet-no-trim, uet-rccc, uniform-unicast, websearch, window, workload
    quikstart: there is no such file or built-in scenario
      fix: did you mean `quickstart`? Give the path of a TOML file or a built-in scenario: quickstart, permutation-1k, permutation-8k, permutation-64k, permutation-256k, incast-32, mix-64, tenants-mixed, training-256, gpt-13b-128, gpt-175b-1024, moe-64, moe-128, moe-512, serving-64, checkpoint-64, hadoop-320, websearch-1k, link-flap, rail-64, planes-64, dragonfly-72, nvlink-64, testbed-permutation, testbed-incast, testbed-dead-path
    ");
}

#[test]
fn arguments() {
    let bench = Bench::new("arguments");
    let errors = [
        bench.refuse(&["run", "quickstart", "--threads", "0"]),
        bench.refuse(&["run", "quickstart", "--threads", "many"]),
        bench.refuse(&["run", "quickstart", "--seed", "-1"]),
        bench.refuse(&["run", "quickstart", "--seed", "9223372036854775808"]),
        bench.refuse(&["run", "quickstart", "--set"]),
        bench.refuse(&["run", "quickstart", "--set", "seed"]),
        bench.refuse(&["run", "quickstart", "--set", "=3"]),
        bench.refuse(&["rum", "quickstart"]),
    ];
    assert_snapshot!(errors.join("\n"), @"
    invalid value '0' for '--threads <N>': not from 1 to 1024

    For more information, try '--help'.
    invalid value 'many' for '--threads <N>': neither a number nor `auto`

    For more information, try '--help'.
    unexpected argument '-1' found

      tip: to pass '-1' as a value, use '-- -1'

    Usage: clearway run [OPTIONS] [SCENARIO]

    For more information, try '--help'.
    invalid value '9223372036854775808' for '--seed <S>': 9223372036854775808 is not in 0..=9223372036854775807

    For more information, try '--help'.
    a value is required for '--set <KEY=VALUE>' but none was supplied

    For more information, try '--help'.
    --set seed: no `=` in it
      fix: write KEY=VALUE, for instance `--set seed=2`
    --set =3: no key before the `=`
      fix: write KEY=VALUE, for instance `--set seed=2`
    unrecognized subcommand 'rum'

      tip: a similar subcommand exists: 'run'

    Usage: clearway <COMMAND>

    For more information, try '--help'.
    ");
}

#[test]
fn wrong_units_and_types() {
    let bench = Bench::new("units");
    assert_snapshot!(bench.refuse_overrides(&[
        &["topology.link-rate=400GB"],
        &["topology.link-delay=1"],
        &["topology.link-delay=213d"],
        &["topology.hosts=1.5"],
        &["topology.hosts=-1"],
        &["topology.hosts=4294967296"],
        &["topology.links=leaf0"],
        &["topology.bit-error-rate=-1"],
        &["topology.bit-error-rate=nan"],
        &["switch.queue=5rtt"],
        &["switch.ecn.mark=ingress"],
        &["switch.ecn.enabled=1"],
        &["switch.ecn=3"],
        &["transport.max-paths=65536"],
        &["transport.max-paths=0"],
        &["transport.min-paths=0"],
        &["transport.spray=oblivious", "transport.max-paths=0"],
        &["transport.kind=tmdml", "transport.batch=0"],
        &["workload.message=2Mbps"],
        &["workload.message=1.5B"],
        &["seed=abc"],
        &["stop.at-most=50"],
    ]), @r#"
    --set topology.link-rate=400GB: `topology.link-rate` cannot be "400GB"
      fix: expected a rate such as "400Gbps"; there is no unit `GB` of a rate; the units are bps, Kbps, Mbps, Gbps, Tbps, b/s, Kb/s, Mb/s, Gb/s, Tb/s, bit/s, Kbit/s, Mbit/s, Gbit/s, Tbit/s, kbps, G, T
    --set topology.link-delay=1: `topology.link-delay` cannot be 1
      fix: expected a duration such as "1us" or "250ns"; a duration has a unit, one of s, ms, us, µs, ns, ps: write "1us" if that is meant
    --set topology.link-delay=213d: `topology.link-delay` cannot be "213d"
      fix: expected a duration such as "1us" or "250ns"; there is no unit `d` of a duration; the units are s, ms, us, µs, ns, ps
    --set topology.hosts=1.5: `topology.hosts` cannot be 1.5
      fix: expected a whole number from 0 to 4294967295
    --set topology.hosts=-1: `topology.hosts` cannot be -1
      fix: expected a whole number from 0 to 4294967295
    --set topology.hosts=4294967296: `topology.hosts` cannot be 4294967296
      fix: expected a whole number from 0 to 4294967295
    --set topology.links=leaf0: `topology.links` cannot be "leaf0"
      fix: expected a list in brackets; each item a text in quotes
    --set topology.bit-error-rate=-1: `topology.bit-error-rate` cannot be -1
      fix: expected a number of zero or more
    --set topology.bit-error-rate=nan: `topology.bit-error-rate` cannot be NaN
      fix: expected a number of zero or more
    --set switch.queue=5rtt: `switch.queue` cannot be "5rtt"
      fix: expected a size such as "100KB", "25%bdp" or "5bdp", or what a link sends in a time such as "32us"; there is no unit `rtt` of a size; the units are B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB, bdp, %bdp
    --set switch.ecn.mark=ingress: `switch.ecn.mark` cannot be "ingress"
      fix: expected one of "dequeue", "enqueue"
    --set switch.ecn.enabled=1: `switch.ecn.enabled` cannot be 1
      fix: expected `true` or `false`
    --set switch.ecn=3: a lossy switch has no key `ecn`
      fix: give its parts: ecn.enabled, ecn.kmin, ecn.kmax, ecn.pmax, ecn.classes, ecn.mark, ecn.last-hop
    --set transport.max-paths=65536: `transport.max-paths` cannot be 65536
      fix: expected a whole number from 1 to 65535
    --set transport.max-paths=0: `transport.max-paths` cannot be 0
      fix: expected a whole number from 1 to 65535
    --set transport.min-paths=0: `transport.min-paths` cannot be 0
      fix: expected a whole number from 1 to 65535
    --set transport.max-paths=0: `transport.max-paths` cannot be 0
      fix: expected a whole number from 1 to 65535
    --set transport.batch=0: `transport.batch` cannot be 0
      fix: expected a whole number from 1 to 4294967295
    --set workload.message=2Mbps: `workload.message` cannot be "2Mbps"
      fix: expected a size such as "2MB", "64KiB" or "4096B"; there is no unit `Mbps` of a size; the units are B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB
    --set workload.message=1.5B: `workload.message` cannot be "1.5B"
      fix: expected a size such as "2MB", "64KiB" or "4096B"
    --set seed=abc: `seed` cannot be "abc"
      fix: expected a whole number from 0 to 9223372036854775807
    --set stop.at-most=50: `stop.at-most` cannot be 50
      fix: expected a duration such as "1us" or "250ns"; a duration has a unit, one of s, ms, us, µs, ns, ps: write "50us" if that is meant
    "#);
    assert_snapshot!(bench.refuse_scenarios(&[
        "name = 3\n",
        "seed = 99999999999999999999\n",
        "[[workload]]\nkind = \"permutation\"\nmessage = 2026-01-01\n",
        "[topology]\nhosts = \"sixteen\"\n",
        "topology = 3\n",
        "[[topology]]\nhosts = 3\n",
        "workload = [1]\n",
    ]), @r#"
    s.toml:1: `name` cannot be 3
      fix: expected a text in quotes
    s.toml:1: `seed`: the number 99999999999999999999 is too large
      fix: use whole numbers up to 9223372036854775807
    s.toml:3: the value of `message` is of no kind that a scenario uses
      fix: use text in quotes, numbers, true, false or lists of these
    s.toml:2: `topology.hosts` cannot be "sixteen"
      fix: expected a whole number from 0 to 4294967295
    s.toml:1: `topology` must be a section
      fix: write `[topology]` and its keys below
    s.toml:1: `topology` must be a section
      fix: write `[topology]` and its keys below
    s.toml:1: `workload` must hold tables
      fix: write `[[workload]]` before each
    "#);
}

#[test]
fn texts_that_are_not_toml() {
    let bench = Bench::new("toml");
    assert_snapshot!(bench.refuse_scenarios(&[
        "name = \"x\"\nseed = \n",
        "[topology]\nhosts = 4\nhosts = 5\n",
        "[topology\n",
        "name = \"x\"\n\nlink-rate = 400Gbps\n",
    ]), @r"
    s.toml:2: not valid TOML: string values must be quoted, expected literal string
      fix: see https://toml.io for the syntax; texts such as sizes and rates go in quotes
    s.toml:3: `hosts` stands here a second time; first on line 2
      fix: remove one of them
    s.toml:1: not valid TOML: unclosed table, expected `]`
      fix: see https://toml.io for the syntax; texts such as sizes and rates go in quotes
    s.toml:3: not valid TOML: string values must be quoted, expected literal string
      fix: see https://toml.io for the syntax; texts such as sizes and rates go in quotes
    ");
    std::fs::write(bench.path("s.toml"), b"name = \"\xff\"\n").unwrap();
    assert_snapshot!(bench.refuse(&["run", "s.toml"]), @r"
    s.toml:1: this is not plain text (UTF-8)
      fix: name a text file; unpack a compressed one first
    ");
}

#[test]
fn impossible_topologies() {
    let bench = Bench::new("topologies");
    assert_snapshot!(bench.refuse_overrides(&[
        &["topology.hosts=0"],
        &["topology.hosts=130"],
        &["topology.hosts=1", "topology.hosts-per-leaf=1"],
        &["topology.hosts-per-leaf=0"],
        &["topology.spines=0"],
        &["topology.oversubscription=3"],
        &["topology.oversubscription=0"],
        &["topology.spines=8", "topology.oversubscription=2"],
        &["topology.parallel-links=4294967295"],
        &["topology.kind=fat-tree", "topology.radix=3"],
        &["topology.kind=fat-tree", "topology.radix=0"],
        &["topology.kind=fat-tree", "topology.tiers=4"],
        &["topology.kind=fat-tree", "topology.oversubscription=4294967295"],
        &["topology.kind=single-switch", "topology.hosts=1"],
        &["topology.kind=single-switch", "topology.hosts=65537"],
        &["topology.kind=dumbbell", "topology.left=0"],
        &["topology.kind=dumbbell", "topology.right=4294967295"],
        &["topology.kind=pods", "topology.aggs-per-pod=0"],
        &["topology.kind=pods", "topology.hosts-per-leaf=4294967295"],
        &["topology.kind=pods", "topology.cores-per-agg=4294967295"],
    ]), @r#"
    --set topology.hosts=0: impossible topology: no hosts
      fix: use at least two hosts
    --set topology.hosts=130: impossible topology: `hosts` = 130 is not a multiple of `hosts-per-leaf` = 16
      fix: use whole leaves, for instance `hosts` = 144, or another `hosts-per-leaf`
    --set topology.hosts-per-leaf=1: impossible topology: fewer than two hosts
      fix: use at least two hosts
    --set topology.hosts-per-leaf=0: impossible topology: leaves without hosts
      fix: use at least one host per leaf
    --set topology.spines=0: impossible topology: 0 spines with 1 links each
      fix: use 1 to 65536 uplinks per leaf
    --set topology.oversubscription=3: impossible topology: 16 hosts per leaf cannot be oversubscribed 3:1 over 1 parallel links
      fix: make `hosts-per-leaf` a multiple of `oversubscription` times `parallel-links`, or give `spines`
    --set topology.oversubscription=0: `topology.oversubscription` cannot be 0
      fix: expected links down for each link up: a number above 0 such as 2 or 1.5, or a ratio such as "3:2", of numbers up to 65535
    --set topology.oversubscription=2: impossible topology: both `spines` and `oversubscription` are given
      fix: give one of them: `spines = "auto"` or `oversubscription = 1` leaves the other to it
    --set topology.parallel-links=4294967295: impossible topology: 16 hosts per leaf cannot be oversubscribed 1:1 over 4294967295 parallel links
      fix: make `hosts-per-leaf` a multiple of `oversubscription` times `parallel-links`, or give `spines`
    --set topology.radix=3: impossible topology: switches of radix 3 with 1:1 oversubscription
      fix: use an even radix up to 1024 that is a multiple of 2
    --set topology.radix=0: impossible topology: switches of radix 0 with 1:1 oversubscription
      fix: use an even radix up to 1024 that is a multiple of 2
    --set topology.tiers=4: impossible topology: a fat tree of 4 tiers
      fix: set `tiers` to 2 or 3
    --set topology.oversubscription=4294967295: `topology.oversubscription` cannot be 4294967295
      fix: expected links down for each link up: a number above 0 such as 2 or 1.5, or a ratio such as "3:2", of numbers up to 65535
    --set topology.hosts=1: impossible topology: 1 hosts on one switch
      fix: use 2 to 65535
    --set topology.hosts=65537: impossible topology: 65537 hosts on one switch
      fix: use 2 to 65535
    --set topology.left=0: impossible topology: a dumbbell of 0 and 4 hosts
      fix: give each side at least one host, and both together at most 65536
    --set topology.right=4294967295: impossible topology: a dumbbell of 4 and 4294967295 hosts
      fix: give each side at least one host, and both together at most 65536
    --set topology.aggs-per-pod=0: impossible topology: `aggs-per-pod` = 0
      fix: use at least 1
    --set topology.hosts-per-leaf=4294967295: impossible topology: 85899345900 hosts
      fix: use at most 1048576
    --set topology.cores-per-agg=4294967295: impossible topology: more than 25165824 links between switches
      fix: use fewer switches
    "#);
}

#[test]
fn impossible_faults_of_links() {
    let bench = Bench::new("faults");
    assert_snapshot!(bench.refuse_overrides(&[
        &["topology.bit-error-rate=1"],
        &["topology.failed-uplinks.leaves=8", "topology.failed-uplinks.per-leaf=16"],
        &["topology.failed-uplinks.leaves=9", "topology.failed-uplinks.per-leaf=1"],
        &["topology.failed-uplinks.leaves=8"],
        &["topology.links=[\"leaf0-spnie0 down\"]"],
        &["topology.links=[\"leaf0-spine0 donw\"]"],
        &["topology.links=[\"leaf0-spine0 rate=0Gbps\"]"],
        &["topology.links=[\"leaf0-spine0 bit-error-rate=1\"]"],
        &["topology.links=[\"leaf0-spine0\"]"],
        &["topology.links=[\"\"]"],
        &["topology.links=[\"host0-leaf0 down\"]"],
        &["topology.kind=dumbbell", "topology.links=[\"left-right down\"]"],
    ]), @r#"
    --set topology.bit-error-rate=1: impossible topology: a bit error rate of 1
      fix: use a probability below 1, such as 1e-9
    --set topology.failed-uplinks.per-leaf=16: impossible topology: each switch is to lose 16 uplinks, but has 16
      fix: fail at most 15
    --set topology.failed-uplinks.per-leaf=1: impossible topology: 9 switches are to lose links, but tier 0 has 8
      fix: name at most 8
    --set topology.failed-uplinks.leaves=8: impossible topology: 8 leaves lose 0 uplinks each
      fix: give both `failed-uplinks.leaves` and `failed-uplinks.per-leaf`, or none
    --set topology.links=["leaf0-spnie0 down"]: `links`: "leaf0-spnie0 down": no link `leaf0-spnie0`
      fix: links are named after their ends, for instance `leaf0-spine0`
    --set topology.links=["leaf0-spine0 donw"]: `links`: "leaf0-spine0 donw": cannot read `donw`
      fix: use `down`, `rate=100Gbps`, `delay=2us`, `bit-error-rate=1e-9`, `packet-loss=0.001` or `dead-from=2ms`
    --set topology.links=["leaf0-spine0 rate=0Gbps"]: `links`: "leaf0-spine0 rate=0Gbps": cannot read `rate=0Gbps`
      fix: use `down`, `rate=100Gbps`, `delay=2us`, `bit-error-rate=1e-9`, `packet-loss=0.001` or `dead-from=2ms`
    --set topology.links=["leaf0-spine0 bit-error-rate=1"]: `links`: "leaf0-spine0 bit-error-rate=1": cannot read `bit-error-rate=1`
      fix: use `down`, `rate=100Gbps`, `delay=2us`, `bit-error-rate=1e-9`, `packet-loss=0.001` or `dead-from=2ms`
    --set topology.links=["leaf0-spine0"]: `links`: "leaf0-spine0": nothing about the link is said
      fix: use `down`, `rate=100Gbps`, `delay=2us`, `bit-error-rate=1e-9`, `packet-loss=0.001` or `dead-from=2ms`
    --set topology.links=[""]: `links`: "": empty
      fix: name a link, for instance "leaf0-spine2 down"
    --set topology.links=["host0-leaf0 down"]: impossible topology, with 1 link down: host 0 has no link that is up
      fix: leave each host its link
    --set topology.links=["left-right down"]: impossible topology, with 1 link down: no path leads from right to left
      fix: too many links have failed, or the graph has parts that are not connected
    "#);
    let spines = (0..16).map(|spine| format!("\"leaf0-spine{spine} down\""));
    let all: Vec<String> = spines.collect();
    let all = format!("[topology]\nhosts = 128\nlinks = [{}]\n", all.join(", "));
    assert_snapshot!(bench.refuse_scenarios(&[&all]), @"
    s.toml:3: impossible topology, with 16 links down: no path leads from leaf1 to leaf0
      fix: too many links have failed, or the graph has parts that are not connected
    ");
}

#[test]
fn settings_that_contradict_each_other() {
    let bench = Bench::new("contradictions");
    assert_snapshot!(bench.refuse_overrides(&[
        &["switch.ecn.kmin=1MB", "switch.ecn.kmax=1KB"],
        &["switch.ecn.kmin=80%bdp"],
        &["switch.ecn.pmax=1.5"],
        &["transport.payload=0B"],
        &["transport.payload=70000B"],
        &["transport.header=0B"],
        &["transport.probe-after=1e300"],
        &["transport.rto=1ps"],
        &["switch.queue=0B"],
        &["switch.kind=shared-buffer", "switch.pfc.frame=0B"],
        &["switch.kind=shared-buffer", "switch.pfc.frame=1MB"],
        &["workload.message=0B"],
        &["workload.hosts=129"],
        &["workload.hosts=1"],
        &["workload.kind=incast", "workload.senders=500"],
        &["workload.kind=incast", "workload.receiver=128"],
        &["workload.kind=flows"],
        &["workload.kind=flows", "workload.flows=[\"0->500 2MB\"]"],
        &["workload.kind=flows", "workload.flows=[\"0->0 2MB\"]"],
        &["workload.kind=flows", "workload.flows=[\"0->1 2MB at noon\"]"],
        &["name="],
    ]), @r#"
    --set switch.ecn.kmax=1KB: `switch.ecn.kmin` = 1MB is above `switch.ecn.kmax` = 1KB
      fix: set kmin to at most kmax
    --set switch.ecn.kmin=80%bdp: `switch.ecn.kmin` = 80%bdp is above `switch.ecn.kmax` = 75%bdp
      fix: set kmin to at most kmax
    --set switch.ecn.pmax=1.5: `switch.ecn.pmax` = 1.5 is not a probability
      fix: use 0 to 1
    --set transport.payload=0B: `transport.payload` = 0B and `transport.header` = 64B do not make a valid packet
      fix: both must be above zero and together at most 65535 bytes
    --set transport.payload=70000B: `transport.payload` = 70KB and `transport.header` = 64B do not make a valid packet
      fix: both must be above zero and together at most 65535 bytes
    --set transport.header=0B: `transport.payload` = 4096B and `transport.header` = 0B do not make a valid packet
      fix: both must be above zero and together at most 65535 bytes
    --set transport.probe-after=1e300: `transport.probe-after` = 1e300 round trips of 8us are longer than 2592000s
      fix: use a smaller multiple; 1e9 means never for any usual network
    --set transport.rto=1ps: `transport.rto` = 1ps is less than the unloaded round trip of 8.33792us: every packet would be retransmitted before its acknowledgement arrives
      fix: set `transport.rto` to several round trips
    --set switch.queue=0B: `switch.queue` = 0B is 0B at a link of 400Gbps, too little for a packet of 4160B
      fix: give a size of at least 4160B, better several packets
    --set switch.pfc.frame=0B: `switch.pfc.frame` = 0B is not a valid frame size
      fix: use 1B to 65535B; on Ethernet it has 64B
    --set switch.pfc.frame=1MB: `switch.pfc.frame` = 1MB is not a valid frame size
      fix: use 1B to 65535B; on Ethernet it has 64B
    --set workload.message=0B: `message` of the permutation workload: a message carries no bytes
      fix: write a size of at least one byte, as in "2MB"
    --set workload.hosts=129: `hosts` of the permutation workload: 129 hosts, but the topology has 128
      fix: write a number up to 128, or "auto"
    --set workload.hosts=1: `hosts` of the permutation workload: a permutation without fixed points needs at least 2 hosts
      fix: take 2 hosts or more
    --set workload.senders=500: `senders` of the incast workload: 500 senders, but 127 hosts are there to send
      fix: write a number from 1 to 127
    --set workload.receiver=128: `receiver` of the incast workload: host 128, but the topology has 128 hosts
      fix: write a host from 0 to 127
    --set workload.kind=flows: `flows` of the flows workload: the list is empty
      fix: write them as in `flows = ["0->13 2MB at 5us"]`
    --set workload.flows=["0->500 2MB"]: flow 1 (0->500) names host 500, but there are 128 hosts, 0 to 127
      fix: name a host from 0 to 127, or give the topology more
    --set workload.flows=["0->0 2MB"]: flow 1 (0->0) goes from a host to itself
      fix: choose another destination
    --set workload.flows=["0->1 2MB at noon"]: `flows` of the flows workload: item 1, "0->1 2MB at noon": `noon` is not a start: expected a duration such as `1us`, `250ns` or `2.5ms`
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    --set name=: `name` is empty
      fix: give the scenario a name, such as "incast-64"
    "#);
}

#[test]
fn a_slow_network_has_a_longer_timeout_unless_the_user_sets_a_short_one() {
    let bench = Bench::new("slow");
    let slow = ["run", "quickstart", "--set", "topology.link-rate=100Mbps"];
    let quick = ["--set", "stop.at-most=1us", "--out", "x"];
    let output = bench.output(&[&slow[..], &quick].concat());
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert_snapshot!(warnings.lines().next().unwrap(), @"warning: the default of `transport.rto`, 250us, is less than the unloaded round trip of 1.35968ms: it is 5.43872ms here, four round trips");
    let error = bench.refuse(&[&slow[..], &["--set", "transport.rto=200us"]].concat());
    assert_snapshot!(error, @"
    --set transport.rto=200us: `transport.rto` = 200us is less than the unloaded round trip of 1.35968ms: every packet would be retransmitted before its acknowledgement arrives
      fix: set `transport.rto` to several round trips
    ");
}

#[test]
fn numbers_beyond_all_measure() {
    let bench = Bench::new("extremes");
    assert_snapshot!(bench.refuse_overrides(&[
        &["topology.hosts=4294967295"],
        &["topology.hosts=1048576", "topology.hosts-per-leaf=1", "topology.spines=1"],
        &["topology.kind=fat-tree", "topology.radix=1000"],
        &["topology.kind=fat-tree", "topology.radix=4294967295"],
        &["topology.link-rate=1bps"],
        &["topology.link-rate=18446744Tbps"],
        &["topology.fabric-link-rate=101Tbps"],
        &["topology.link-delay=0s"],
        &["topology.link-delay=1000s"],
        &["topology.links=[\"leaf0-spine0 delay=18446744s\"]"],
        &["workload.message=18446744073709551615B"],
        &["workload.message=18446744073709551616B"],
        &["workload.hosts=2", "workload.message=9000000TB"],
        &["workload.start=18446744s"],
        &["workload.kind=ring-all-reduce", "workload.start=18446744s"],
        &["workload.kind=ring-all-reduce", "workload.size=1MB", "workload.compute=18446744s"],
        &["workload.kind=ring-all-reduce", "workload.size=1MB", "workload.compute=1s", "workload.stragglers=1", "workload.straggler-factor=1e6", "workload.jitter=2.0"],
        &["workload.kind=ring-all-reduce", "workload.size=1GB", "workload.chunk=1GB", "workload.reduction-rate=1bps"],
        &["stop.at-most=18446744s"],
        &["trigger-delay=18446744s"],
        &["transport.rto=18446744s"],
        &["transport.linger=18446744s"],
        &["seed=18446744073709551615"],
        &["workload.kind=flows", "workload.flows=[\"0->1 99999999999999999999B\"]"],
    ]), @r#"
    --set topology.hosts=4294967295: impossible topology: 4294967295 hosts
      fix: use at most 1048576
    --set topology.hosts-per-leaf=1: impossible topology: 1048577 switches, 1048576 of them with hosts, and 4194304 links need too large routing tables
      fix: put more hosts on each switch, or use fewer hosts
    --set topology.radix=1000: impossible topology: 250000000 hosts
      fix: use at most 1048576
    --set topology.radix=4294967295: impossible topology: switches of radix 4294967295 with 1:1 oversubscription
      fix: use an even radix up to 1024 that is a multiple of 2
    --set topology.link-rate=1bps: impossible topology: link `host0-leaf0` has a rate of 1bps
      fix: use 1Mbps to 100Tbps
    --set topology.link-rate=18446744Tbps: impossible topology: link `host0-leaf0` has a rate of 18446744Tbps
      fix: use 1Mbps to 100Tbps
    --set topology.fabric-link-rate=101Tbps: impossible topology: link `leaf0-spine0` has a rate of 101Tbps
      fix: use 1Mbps to 100Tbps
    --set topology.link-delay=0s: impossible topology: link `host0-leaf0` has a delay of 0s
      fix: use 1ns to 1s
    --set topology.link-delay=1000s: impossible topology: link `host0-leaf0` has a delay of 1000s
      fix: use 1ns to 1s
    --set topology.links=["leaf0-spine0 delay=18446744s"]: impossible topology: link `leaf0-spine0` has a delay of 18446744s
      fix: use 1ns to 1s
    --set workload.message=18446744073709551615B: the sizes up to flow 2 (1->54) add up to more than 2^64 bytes
      fix: give it a smaller size
    --set workload.message=18446744073709551616B: `workload.message` cannot be "18446744073709551616B"
      fix: expected a size such as "2MB", "64KiB" or "4096B"
    --set workload.message=9000000TB: flow 1 (0->1) carries 9000000000GB, which takes longer than 30 days at the 400Gbps of the slowest link
      fix: send a smaller message, or use faster links
    --set workload.start=18446744s: flow 1 (0->42) starts too late
      fix: start flows within 2592000s (30 days)
    --set workload.start=18446744s: the job ring-all-reduce starts too late
      fix: start jobs within 2592000s (30 days)
    --set workload.compute=18446744s: a computation of the job ring-all-reduce can take 18446744s
      fix: use at most 2592000s (30 days)
    --set workload.straggler-factor=1e6: a computation of the job ring-all-reduce can take 3000000s
      fix: use at most 2592000s (30 days)
    --set workload.reduction-rate=1bps: a computation of the job ring-all-reduce can take 18446744.073709551615s
      fix: use at most 2592000s (30 days)
    --set stop.at-most=18446744s: `stop.at-most` = 18446744s is too long
      fix: use at most 2592000s (30 days)
    --set trigger-delay=18446744s: `trigger-delay` = 18446744s is too long
      fix: use at most 2592000s (30 days)
    --set transport.rto=18446744s: `transport.rto` = 18446744s is too long
      fix: use at most 2592000s (30 days)
    --set transport.linger=18446744s: `transport.linger` = 18446744s is too long
      fix: use at most 2592000s (30 days)
    --set seed=18446744073709551615: `seed` cannot be "18446744073709551615"
      fix: expected a whole number from 0 to 9223372036854775807
    --set workload.flows=["0->1 99999999999999999999B"]: `flows` of the flows workload: item 1, "0->1 99999999999999999999B": `99999999999999999999B` is not a size: expected a size such as `2MB`, `64KiB` or `4096B`
      fix: write it as `0->13 2MB at 5us`, where `at 5us` may be left out, or as `13->0 2MB after 1`
    "#);
}

#[test]
fn connection_matrices() {
    let bench = Bench::new("matrices");
    let header = "Nodes 16\nConnections 1\n";
    assert_snapshot!(bench.refuse_matrices(&[
        "",
        "Nodes 16\nConnections 2\n0->9 id 1 start 0 size 2000\n",
        "Nodes 16\nConnections 1\n0->9 id 1 start 0 siz",
        "Nodes 16\nConnections 1\n0->9 id 1 start 0 size",
        "Nodes 16\nConnections 1\n0->9 id 1 start 0",
        "Nodes 17\nConnections 1\n0->9 id 1 start 0 size 2000\n",
        &format!("{header}0->16 id 1 start 0 size 2000\n"),
        &format!("{header}0->0 id 1 start 0 size 2000\n"),
        &format!("{header}0->9 id 1 start 0 size 18446744073709551616\n"),
        &format!("{header}0->9 id 1 start 0 size 18446744073709551615\n"),
        &format!("{header}0->9 id 1 start 99999999999999 size 2000\n"),
        &format!("{header}0->9 id 1 trigger 3 size 2000\n"),
        &format!("Failures 1\n{header}failure switch_type TOR switch_id 0 link_id 4\n0->9 id 1 start 0 size 2000\n"),
        &format!("Failures 1\n{header}failure switch_type CORE switch_id 0 link_id 0\n0->9 id 1 start 0 size 2000\n"),
        "Nodes 16\nConnections 2\nTriggers 2\n0->9 id 1 trigger 1 size 1 send_done_trigger 2\n1->9 id 2 trigger 2 size 1 send_done_trigger 1\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n",
    ]), @"
    x.cm:1: the header has no `Nodes` line
      fix: begin the file with the number of hosts, as in `Nodes 128`
    x.cm:2: the header says `Connections 2`, but the file has 1 flow
      fix: write `Connections 1`, or restore the missing lines if the file was cut short
    x.cm:3: unknown word `siz`
      fix: did you mean `size`?
    x.cm:3: `size` lacks its value
      fix: write the value after `size`
    x.cm:3: 0->9 has no `size`
      fix: add the size in bytes, as in `size 2000000`
    s.toml:7: `file` of the file workload: the file is made for 17 hosts, but the topology has 16
      fix: choose the topology that belongs to the file
    x.cm:3: host 16 does not exist (the file says `Nodes 16`, so hosts are 0 to 15)
      fix: correct the host number, or `Nodes`
    x.cm:3: host 0 sends to itself
      fix: choose another destination
    x.cm:3: `size 18446744073709551616` does not fit in 64 bits
      fix: write at most 18446744073709551615
    s.toml:7: flow 1 (0->9) carries 18446744073709551615B, which takes longer than 30 days at the 400Gbps of the slowest link
      fix: send a smaller message, or use faster links
    x.cm:3: `start 99999999999999`, read in us, is beyond the longest run of 213 days
      fix: write an earlier start, or read the file with a smaller start unit
    x.cm:3: trigger 3 is not declared
      fix: add a line such as `trigger id 3 oneshot`, and count it in `Triggers`
    s.toml:7: impossible topology: a `failure` line names uplink 4 of a switch with 4
      fix: count uplinks from 0; the top tier has none
    s.toml:7: impossible topology: a `failure` line names switch 0 of tier 2, which has 0
      fix: count switches of a tier from 0
    x.cm:4: flows that start one another in a circle never start: flow 1 (0->9), flow 2 (1->9), each waiting for the next and the last for the first
      fix: start one of them by the clock
    ");
}

const TOPO: &str = "Nodes 16\nTiers 2\nPodsize 16\nTier 0\nDownlink_speed_Gbps 400\nRadix_Up 4\nRadix_Down 4\nDownlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 400\nRadix_Down 4\nDownlink_Latency_ns 1000\n";

#[test]
fn topology_files() {
    let bench = Bench::new("topology-files");
    bench.write("good.topo", TOPO);
    bench.write("good.toml", "topology.file = \"good.topo\"\n");
    let built = bench.succeed(&["topology", "good.toml"]);
    assert!(built.contains("16 hosts, 4 leaves, 4 spines"), "{built}");
    let cases = [
        TOPO.replace(
            "Radix_Down 4\nDownlink_Latency_ns 1000\nTier 1",
            "Radix_Down 5\nDownlink_Latency_ns 1000\nTier 1",
        ),
        TOPO.replace("Nodes 16", "Nodes 4294967295"),
        TOPO.replace("Nodes 16", "Nodse 16"),
        TOPO.replace("Podsize 16", "Podsize 3"),
        TOPO.replace("Tiers 2", "Tiers 4"),
        TOPO.replace(
            "Downlink_speed_Gbps 400\nRadix_Up",
            "Downlink_speed_Gbps 0\nRadix_Up",
        ),
        TOPO.replace("Latency_ns 1000", "Latency_ns 0"),
        TOPO[..TOPO.len() / 2].to_string(),
        String::new(),
    ];
    let mut errors = Vec::new();
    for text in cases {
        bench.write("x.topo", &text);
        bench.write("s.toml", "[topology]\nfile = \"x.topo\"\n");
        errors.push(bench.refuse(&["run", "s.toml"]));
    }
    assert_snapshot!(errors.join("\n"), @"
    x.topo:7: `Radix_Down 5` of tier 0 does not divide `Podsize 16`
      fix: choose a `Radix_Down` that divides 16
    x.topo:1: `4294967295` is not a valid value for `Nodes`
      fix: write a whole number from 1 to 16777216
    x.topo:1: unknown word `Nodse`
      fix: did you mean `Nodes`?
    x.topo:3: `Podsize 3`, but with two tiers all 16 hosts are one pod
      fix: write `Podsize 16`
    x.topo:2: `4` is not a valid value for `Tiers`
      fix: write a whole number from 2 to 3
    x.topo:5: `0` is not a valid value for `Downlink_speed_Gbps`
      fix: write a number of Gb/s above 0, such as 12.5, up to 100000
    x.topo:8: `0` is not a valid value for `Downlink_Latency_ns`
      fix: write a whole number from 1 to 1000000000
    x.topo:8: unknown word `Downl`
      fix: use `Tier`, `Downlink_speed_Gbps`, `Radix_Down`, `Radix_Up`, `Downlink_Latency_ns`, `Switch_Latency_ns`, `Oversubscribed`, `Bundle`, `Queue_Up` or `Queue_Down`
    x.topo:1: there is no `Nodes` line
      fix: add the number of hosts, as in `Nodes 128`
    ");
}

/// Two hosts on each of two switches.
const GRAPH: &str = "6 2 5\n4 5\n0 4 100Gbps 1000ns 0\n1 4 100Gbps 1000ns 0\n2 5 100Gbps 1000ns 0\n3 5 100Gbps 1000ns 0\n4 5 400Gbps 1000ns 0\n";

#[test]
fn fabrics_of_hpcc() {
    let bench = Bench::new("hpcc-fabrics");
    bench.write("s.toml", "[topology]\nfile = \"x.txt\"\n");
    bench.write("x.txt", GRAPH);
    let built = bench.succeed(&["topology", "s.toml"]);
    assert!(built.contains("4 hosts, 2 switches, 5 links"), "{built}");
    assert!(!built.contains("NICs"), "{built}");
    bench.write(
        "x.txt",
        &(GRAPH.replace("6 2 5", "6 2 6") + "0 5 25Gbps 1us 0\n"),
    );
    let built = bench.succeed(&["topology", "s.toml", "--links"]);
    for part in [
        "NICs             5\n",
        "2 links between 8 pairs of hosts",
        "3 links between 4 pairs of hosts",
        "100Gbps of host 0; NICs have 25Gbps, 100Gbps",
        "host0.1-switch5",
    ] {
        assert!(built.contains(part), "{part}: {built}");
    }
    let mut errors = Vec::new();
    for text in [
        GRAPH.replace("6 2 5", "6 2"),
        GRAPH.replace("6 2 5", "6 2 4"),
        GRAPH.replace("6 2 5", "6 2 6"),
        GRAPH.replace("6 2 5", "6 2 five"),
        GRAPH.replace("4 5\n0", "4 4\n0"),
        GRAPH.replace("4 5\n0", "4\n0"),
        GRAPH.replace("4 5 400Gbps", "4 6 400Gbps"),
        GRAPH.replace("4 5 400Gbps", "4 5 400GBPS"),
        GRAPH.replace("400Gbps 1000ns", "400Gbps 1000"),
        GRAPH.replace("400Gbps 1000ns 0", "400Gbps 1000ns 1"),
        GRAPH.replace("400Gbps 1000ns 0", "400Gbps 1000ns"),
        GRAPH.replace("3 5 100", "2 5 100"),
        GRAPH[..GRAPH.len() / 2].to_string(),
    ] {
        bench.write("x.txt", &text);
        errors.push(bench.refuse(&["run", "s.toml"]));
    }
    bench.write("x.txt", &GRAPH.replace("4 5 400", "0 5 400"));
    errors.push(bench.refuse(&[
        "run",
        "s.toml",
        "--set",
        "workload.kind=flows",
        "--set",
        "workload.flows=[\"0->2 1MB\", \"1->2 1MB\"]",
    ]));
    bench.write("x.txt", GRAPH);
    errors.push(bench.refuse(&["run", "s.toml", "--set", "topology.format=htsim"]));
    errors.push(bench.refuse(&["run", "s.toml", "--set", "topology.format=ns3"]));
    bench.write("x.txt", TOPO);
    errors.push(bench.refuse(&["run", "s.toml", "--set", "topology.format=hpcc"]));
    assert_snapshot!(errors.join("\n"), @r#"
    x.txt:1: the first line has 3 words, or 6 with GPUs, but it has 2
      fix: write `node_num switch_num link_num`, or `node_num gpus_per_server nvswitch_num switch_num link_num gpu_type`
    x.txt:1: no path leads from host 0 to host 2
      fix: add the links that join them, or correct `link_num`: the lines from 7 on are not used
    x.txt:7: line 1 announces 6 links, but the file has 5
      fix: write 5 as `link_num`, or restore the missing lines if the file was cut short
    x.txt:1: `five` is not a valid value for `link_num`
      fix: write a whole number from 0 to 16777216
    x.txt:2: switch 4 is listed twice
      fix: name each switch once
    x.txt:2: line 1 announces 2 switches, but the file names 1
      fix: write the numbers of all switches on the second line
    x.txt:7: node 6 does not exist
      fix: name a node from 0 to 5, or correct `node_num`
    x.txt:7: `400GBPS` is not a valid value for `rate`
      fix: write a whole number of bit/s above zero, as in `100Gbps` or `25000000000bps`
    x.txt:7: a delay of 1000s
      fix: write 1ns to 1s; a number without unit is in seconds
    x.txt:7: `1` is not a valid value for `error_rate`
      fix: write the probability that a packet is lost, from 0 to below 1
    x.txt:7: a link has 5 words, but this line has 4
      fix: write `src dst rate delay error_rate`, each on a separate line
    x.txt:1: host 3 has no link
      fix: join each host to a switch or to another host, or list the node as a switch
    x.txt:5: a link has 5 words, but this line has 3
      fix: write `src dst rate delay error_rate`, each on a separate line
    s.toml:2: flow 2 (1->2): no path leads from host 1 to host 2, and hosts do not forward
      fix: add links between the switches of the two (of rails: `spines`, or `pxn` for an all-to-all), or leave the flow out
    x.txt:1: unknown word `6`
      fix: use `Nodes`, `Tiers`, `Podsize` or `Tier`
    --set topology.format=ns3: `topology.format` cannot be "ns3"
      fix: expected one of "auto", "htsim", "hpcc", "infragraph", "astra-sim", "nccl"
    x.txt:1: the first line has 3 words, or 6 with GPUs, but it has 2
      fix: write `node_num switch_num link_num`, or `node_num gpus_per_server nvswitch_num switch_num link_num gpu_type`
    "#);
}

#[test]
fn flows_of_hpcc() {
    let bench = Bench::new("hpcc-flows");
    bench.write("graph.txt", GRAPH);
    let scenario = "[topology]\nfile = \"graph.txt\"\n[[workload]]\nfile = \"x.txt\"\n";
    bench.write("s.toml", scenario);
    let mut errors = Vec::new();
    for text in [
        "1\n0 1 3 100 5\n",
        "2\n0 1 3 100 5 2\n",
        "1 0 1 3 100 5 2\n",
        "1\n0 4 3 100 5 2\n",
        "1\n0 0 3 100 5 2\n",
        "1\n0 1 0 100 5 2\n",
        "1\n0 1 3 99999 5 2\n",
        "1\n0 1 3 100 0 2\n",
        "1\n0 1 3 100 5 2s\n",
        "1\n0 1 3 100 5 2.00000000000005\n",
        "1\n0 1 3 100 5 9999999\n",
        "1\n0 1 3 100 18446744073709551615 2\n",
    ] {
        bench.write("x.txt", text);
        errors.push(bench.refuse(&["run", "s.toml"]));
    }
    bench.write("x.txt", "1\n0 1 3 100 5 2\n");
    errors.push(bench.refuse(&["run", "s.toml", "--set", "workload.format=htsim"]));
    errors.push(bench.refuse(&["run", "s.toml", "--set", "workload.start-unit=us"]));
    errors.push(bench.refuse(&["run", "s.toml", "--fct-txt", "."]));
    errors.push(bench.refuse(&["run", "s.toml", "--fct-txt", "graph.txt/fct.txt"]));
    errors.push(bench.refuse(&["run", "s.toml", "--out", "r", "--fct-txt", "r/summary.json"]));
    errors.push(bench.refuse(&["run", "s.toml", "--htsim-txt", "-", "--json"]));
    errors.push(bench.refuse(&["run", "s.toml", "--htsim-txt", "f", "--fct-txt", "f"]));
    assert_snapshot!(errors.join("\n"), @r#"
    x.txt:2: a flow has 6 words, but this line has 5
      fix: write `src dst pg dport size start`, each on a separate line
    x.txt:2: line 1 announces 2 flows, but the file has 1
      fix: write 1 as `flow_num`, or restore the missing lines if the file was cut short
    x.txt:1: the first line is the number of flows and nothing else
      fix: write the number on a separate line above the flows
    x.txt:2: node 4 is not a host of the topology, which has 4
      fix: name a host from 0 to 3, or choose the topology that belongs to the file
    x.txt:2: host 0 sends to itself
      fix: choose another destination
    x.txt:2: `pg` 0 is the class of acknowledgements and other control packets, which is neither marked nor paused
      fix: write a priority from 1 to 7; 3 is usual
    x.txt:2: `99999` is not a valid value for `dport`
      fix: write a whole number from 0 to 65535
    x.txt:2: `0` is not a valid value for `size`
      fix: write a whole number from 1 to 18446744073709551615
    x.txt:2: `2s` is not a valid value for `start`
      fix: write a number of seconds, as in 2.000000025
    x.txt:2: a start at 2.00000000000005 s is finer than a picosecond
      fix: round it to 12 decimals
    s.toml:4: flow 1 (0->1) starts too late
      fix: start flows within 2592000s (30 days)
    s.toml:4: flow 1 (0->1) carries 18446744073709551615B, which takes longer than 30 days at the 100Gbps of the slowest link
      fix: send a smaller message, or use faster links
    x.txt:1: unknown word `1`
      fix: use `Nodes`, `Connections`, `Triggers`, `Failures`, `trigger` or `failure`
    --set workload.start-unit=us: `start-unit` of the file workload: the unit "us" for a file in HPCC's format, whose starts are in seconds
      fix: leave it out, or change the numbers in the file
    cannot write .: is a directory
      fix: name a file that you may write with `--fct-txt`
    cannot create the folder of graph.txt/fct.txt: File exists (os error 17)
      fix: name a file that you may write with `--fct-txt`
    --fct-txt r/summary.json: this is another file of the results
      fix: choose another name
    --htsim-txt -: `--json` also prints to standard output
      fix: name a file
    --htsim-txt f: `--fct-txt` also writes there
      fix: choose another name
    "#);
}

#[test]
fn files_that_cannot_be_read_or_written() {
    let bench = Bench::new("files");
    bench.write("a-file", "not a folder\n");
    std::fs::create_dir(bench.path("foreign")).unwrap();
    bench.write("foreign/thesis.tex", "do not delete\n");
    let errors = [
        bench.refuse(&["run", "quickstart", "--set", "workload.file=no.cm"]),
        bench.refuse(&["run", "quickstart", "--set", "topology.file=no.topo"]),
        bench.refuse(&["run", "quickstart", "--set", "topology.file=foreign"]),
        bench.refuse(&["run", "quickstart", "--out", "a-file"]),
        bench.refuse(&["run", "quickstart", "--out", "a-file/below"]),
        bench.refuse(&["run", "quickstart", "--out", "foreign"]),
    ];
    let folder = bench.path("").display().to_string();
    assert_snapshot!(errors.join("\n").replace(&folder, "FOLDER/"), @r"
    --set workload.file=no.cm: cannot read no.cm: No such file or directory (os error 2)
      fix: name a file that exists and that you may read
    --set topology.file=no.topo: cannot read no.topo: No such file or directory (os error 2)
      fix: name a file that exists and that you may read
    --set topology.file=foreign: cannot read foreign: this is a folder, and only regular files are read
      fix: name a file in it
    --out a-file: `FOLDER/a-file` is not a folder: choose another name for the results, or move it away
      fix: name a folder with `--out` that does not exist yet, or that holds earlier results
    --out a-file/below: failed to find the folder `a-file/below`: Not a directory (os error 20)
      fix: name a folder with `--out` that does not exist yet, or that holds earlier results
    --out foreign: the folder `FOLDER/foreign` holds something other than Clearway results (no valid `summary.json`) and is left alone: choose another folder for the results, or delete this one
      fix: name a folder with `--out` that does not exist yet, or that holds earlier results
    ");
    assert_eq!(bench.read("foreign/thesis.tex"), "do not delete\n");
}

#[test]
fn quantities_without_units_or_with_unknown_ones() {
    let bench = Bench::new("quantities");
    assert_snapshot!(bench.refuse_overrides(&[
        &["workload.message=2"],
        &["workload.message=\"2\""],
        &["workload.message=2.5"],
        &["workload.message=2parsec"],
        &["topology.link-rate=400"],
        &["topology.link-rate=400GBps"],
        &["topology.link-delay=1"],
        &["stop.at-most=5"],
        &["switch.queue=5"],
        &["switch.queue=5bpd"],
        &["transport.payload=4096"],
        &["transport.ack-size=64"],
        &["observe.series.every=1"],
        &["workload.start=7"],
        &["workload.kind=ring-all-reduce", "workload.size=2"],
    ]), @r#"
    --set workload.message=2: `workload.message` cannot be 2
      fix: expected a size such as "2MB", "64KiB" or "4096B"; a size has a unit, one of B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB: write "2B" if that is meant
    --set workload.message="2": `workload.message` cannot be "2"
      fix: expected a size such as "2MB", "64KiB" or "4096B"; a size has a unit, one of B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB: write "2B" if that is meant
    --set workload.message=2.5: `workload.message` cannot be 2.5
      fix: expected a size such as "2MB", "64KiB" or "4096B"; a size has a unit, one of B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB: write "2.5B" if that is meant
    --set workload.message=2parsec: `workload.message` cannot be "2parsec"
      fix: expected a size such as "2MB", "64KiB" or "4096B"; there is no unit `parsec` of a size; the units are B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB
    --set topology.link-rate=400: `topology.link-rate` cannot be 400
      fix: expected a rate such as "400Gbps"; a rate has a unit, one of bps, Kbps, Mbps, Gbps, Tbps, b/s, Kb/s, Mb/s, Gb/s, Tb/s, bit/s, Kbit/s, Mbit/s, Gbit/s, Tbit/s, kbps, G, T: write "400Gbps" if that is meant
    --set topology.link-rate=400GBps: `topology.link-rate` cannot be "400GBps"
      fix: expected a rate such as "400Gbps"; write "3.2Tbps": rates are in bits, and a byte has 8
    --set topology.link-delay=1: `topology.link-delay` cannot be 1
      fix: expected a duration such as "1us" or "250ns"; a duration has a unit, one of s, ms, us, µs, ns, ps: write "1us" if that is meant
    --set stop.at-most=5: `stop.at-most` cannot be 5
      fix: expected a duration such as "1us" or "250ns"; a duration has a unit, one of s, ms, us, µs, ns, ps: write "5us" if that is meant
    --set switch.queue=5: `switch.queue` cannot be 5
      fix: expected a size such as "100KB", "25%bdp" or "5bdp", or what a link sends in a time such as "32us"; a size has a unit, one of B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB, bdp, %bdp: write "5B" if that is meant
    --set switch.queue=5bpd: `switch.queue` cannot be "5bpd"
      fix: expected a size such as "100KB", "25%bdp" or "5bdp", or what a link sends in a time such as "32us"; there is no unit `bpd` of a size; the units are B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB, bdp, %bdp
    --set transport.payload=4096: `transport.payload` cannot be 4096
      fix: expected a size such as "2MB", "64KiB" or "4096B"; a size has a unit, one of B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB: write "4096B" if that is meant
    --set transport.ack-size=64: `transport.ack-size` cannot be 64
      fix: expected a size such as "2MB", "64KiB" or "4096B", or "auto"; a size has a unit, one of B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB: write "64B" if that is meant
    --set observe.series.every=1: `observe.series.every` cannot be 1
      fix: expected a duration such as "1us", "auto" or "off"; a duration has a unit, one of s, ms, us, µs, ns, ps: write "1us" if that is meant
    --set workload.start=7: `workload.start` cannot be 7
      fix: expected an instant such as "0s" or "12.5us"; a duration has a unit, one of s, ms, us, µs, ns, ps: write "7us" if that is meant
    --set workload.size=2: `workload.size` cannot be 2
      fix: expected a size such as "2MB", "64KiB" or "4096B"; a size has a unit, one of B, KB, kB, MB, GB, TB, KiB, MiB, GiB, TiB: write "2B" if that is meant
    "#);
    // Zero is the same in all units.
    let small = [
        "run",
        "--quiet",
        "--set",
        "topology.hosts=16",
        "--set",
        "topology.hosts-per-leaf=4",
        "--set",
        "workload.message=4KB",
    ];
    let with = |zero: &'static str| [&small[..], &["--set", zero, "--out", "zero"]].concat();
    for zero in [
        "workload.start=0",
        "workload.start=\"0\"",
        "switch.ecn.kmin=0",
        "transport.scope-idle=0",
    ] {
        bench.succeed(&with(zero));
    }
}

#[test]
fn keys_of_other_sections_and_kinds() {
    let bench = Bench::new("owners");
    bench.write("web.txt", "0 0\n1000 50\n2000 100\n");
    assert_snapshot!(bench.refuse_overrides(&[
        &["spray=oblivious"],
        &["spary=oblivious"],
        &["hosts=4"],
        &["qps=2"],
        &["transport.qps=2"],
        &["transport.queue=1MB"],
        &["switch.buffer=2MB"],
        &["switch.spray=single"],
        &["topology.radix=4"],
        &["topology.seed=4"],
        &["workload.senders=3"],
        &["topology.hosts=0"],
        &["topology.hosts=1"],
        &["stop.at-most=0"],
        &["workload.file=web.txt"],
        &["switch=3"],
        &["switch={kind=lossy}"],
        &["workload={}"],
        &["workload.attack={kind=\"staggered\",host=\"0-3\"}"],
    ]), @r#"
    --set spray=oblivious: the scenario has no key `spray`
      fix: did you mean `transport.spray`?
    --set spary=oblivious: the scenario has no key `spary`
      fix: did you mean `transport.spray`?
    --set hosts=4: the scenario has no key `hosts`
      fix: did you mean `workload.hosts` or `topology.hosts`?
    --set qps=2: the scenario has no key `qps`
      fix: did you mean `transport.qps`?
    --set transport.qps=2: a transport of reliability "selective-repeat", controller "strack", spray "adaptive" and feedback "none" has no key `qps`
      fix: `qps` is a key of `transport.reliability = "go-back-n"`: choose that, or leave the key out
    --set transport.queue=1MB: a transport of reliability "selective-repeat", controller "strack", spray "adaptive" and feedback "none" has no key `queue`
      fix: did you mean `switch.queue`?
    --set switch.buffer=2MB: a lossy switch has no key `buffer`
      fix: `buffer` is a key of `switch.kind = "shared-buffer"`: choose that, or leave the key out
    --set switch.spray=single: a lossy switch has no key `spray`
      fix: did you mean `transport.spray`?
    --set topology.radix=4: a topology of kind "leaf-spine" has no key `radix`
      fix: `radix` is a key of `topology.kind = "fat-tree"`: choose that, or leave the key out
    --set topology.seed=4: a topology of kind "leaf-spine" has no key `seed`
      fix: did you mean `seed`?
    --set workload.senders=3: a workload of kind "permutation" has no key `senders`
      fix: `senders` is a key of `workload.kind = "incast"`: choose that, or leave the key out
    --set topology.hosts=0: impossible topology: no hosts
      fix: use at least two hosts
    --set topology.hosts=1: impossible topology: `hosts` = 1 is not a multiple of `hosts-per-leaf` = 16
      fix: use whole leaves, for instance `hosts` = 16, or another `hosts-per-leaf`
    --set stop.at-most=0: `stop.at-most` of no time: the run ends before it begins
      fix: give it a time such as "50ms", or leave it out
    --set workload.file=web.txt: `file` of the file workload: web.txt is a distribution of sizes, not a file of flows
      fix: draw flows from it: `kind = "poisson"` with `sizes = "web.txt"` instead of `file`
    --set switch=3: `switch` is a section
      fix: set a key of it, as in `switch.kind=…`, or several in an inline table, as in `switch={kind="…"}`
    --set switch={kind=lossy}: not an inline table of TOML: string values must be quoted, expected literal string
      fix: put texts in quotes, as in `--set 'switch={kind="shared-buffer",buffer="2MB"}'`
    --set workload={}: an empty inline table
      fix: write keys into it
    --set workload.attack={kind="staggered",host="0-3"}: a workload of kind "permutation" has no key `attack.host`
      fix: did you mean `attack.hosts`? The keys are: attack.above, attack.breaks, attack.bytes, attack.from, attack.gap, attack.hosts, attack.kind, attack.lasts, attack.qps, attack.share, attack.target, count, hosts, message, name, period, period-jitter, priority, redraw, start, tenant
    "#);
    assert_snapshot!(bench.refuse_scenarios(&[
        "seed = 1\nname = \"x\"\nseed = 2\n",
        "[switch]\nqueue = \"1MB\"\n[topology]\nhosts = 4\n[switch]\nkind = \"lossy\"\n",
        "[switch]\necn.kmin = \"1KB\"\necn.kmax = \"1KB\"\necn.kmin = \"2KB\"\n",
        "[topology]\nhosts = 4\n[transport]\nspray = \"single\"\nspray = \"adaptive\"\n",
        "[transport]\nkind = \"rocev2\"\n[[workload]]\nkind = \"incast\"\nsenders = 3\nsenders = 4\n",
    ]), @r"
    s.toml:3: `seed` stands here a second time; first on line 1
      fix: remove one of them
    s.toml:5: `[switch]` stands here a second time; first on line 1
      fix: write all its keys below one of them, and remove the other
    s.toml:4: `ecn.kmin` stands here a second time; first on line 2
      fix: remove one of them
    s.toml:5: `spray` stands here a second time; first on line 4
      fix: remove one of them
    s.toml:6: `senders` stands here a second time; first on line 5
      fix: remove one of them
    ");
}

#[test]
fn inline_tables_are_settings() {
    let bench = Bench::new("inline");
    let run = |out: &str, settings: &[&str]| {
        let mut arguments = vec!["run", "--quiet", "--out", out];
        let small = [
            "topology.hosts=16",
            "topology.hosts-per-leaf=4",
            "workload.message=4MB",
        ];
        for setting in small.iter().chain(settings) {
            arguments.extend(["--set", setting]);
        }
        bench.succeed(&arguments);
        bench.read(&format!("{out}/scenario.toml"))
    };
    let tables = run(
        "tables",
        &[
            "switch={buffer=\"20MB\",kind=\"shared-buffer\"}",
            "workload[0].attack={kind=\"staggered\",hosts=\"0-3\",bytes=\"1bdp\"}",
            "stop={at-most=\"5ms\"}",
        ],
    );
    let single = run(
        "single",
        &[
            "switch.kind=shared-buffer",
            "switch.buffer=20MB",
            "workload.attack.kind=staggered",
            "workload.attack.hosts=0-3",
            "workload.attack.bytes=1bdp",
            "stop.at-most=5ms",
        ],
    );
    assert_eq!(tables, single);
    assert!(tables.contains("attack.bytes = \"1bdp\"  # "), "{tables}");
    // The resolved scenario is read back as the same scenario.
    bench.succeed(&["run", "tables/scenario.toml", "--quiet", "--out", "again"]);
    assert_eq!(bench.read("again/scenario.toml"), tables);
    let hash = |out: &str| {
        clearway_report::Summary::read(bench.path(out))
            .expect("results")
            .scenario
            .hash
    };
    assert_eq!(hash("again"), hash("single"));
}

#[test]
fn keys_of_other_fabrics_are_told_from_those_of_a_scale_up_fabric() {
    let bench = Bench::new("scale-up-owners");
    let refuse = |setting: &&str| {
        let error = bench.refuse(&["run", "nvlink-64", "--set", setting]);
        format!("{error}\n")
    };
    let settings = [
        "transport.spray=adaptive",
        "spray=adaptive",
        "switch.queue=1MB",
        "switch.kind=shared-buffer",
        "topology.hosts=64",
        "topology.links=[\"leaf0-spine0 down\"]",
        "workload.message=1MB",
        "workload.file=x.txt",
        "topology.tokens=3",
        "topology.seed=3",
        "topology.gpu=64",
        "injection.wm-maxi=2",
    ];
    let text: String = settings.iter().map(refuse).collect();
    assert_snapshot!(text, @r#"
    --set transport.spray=adaptive: `transport.spray` is a key of packet fabrics: a scale-up fabric has no `[transport]`
      fix: choose an injection control in `[injection]`; `clearway list injection` names them
    --set spray=adaptive: the scenario has no key `spray`
      fix: `spray` is a key of packet fabrics: leave it out
    --set switch.queue=1MB: the switch of a scale-up fabric has no key `queue`
      fix: `queue` is a key of packet fabrics: the keys are: input-buffer, latency, output-queue, reduction-table, replication
    --set switch.kind=shared-buffer: the switch of a scale-up fabric has no key `kind`
      fix: `kind` is a key of packet fabrics: the keys are: input-buffer, latency, output-queue, reduction-table, replication
    --set topology.hosts=64: a topology of kind "nvlink" has no key `hosts`
      fix: `hosts` is a key of packet fabrics: the keys are: cycle, gpus, gpus-per-leaf, header-flits, links-per-spine, payload-flits, spines
    --set topology.links=["leaf0-spine0 down"]: a topology of kind "nvlink" has no key `links`
      fix: `links` is a key of packet fabrics: the keys are: cycle, gpus, gpus-per-leaf, header-flits, links-per-spine, payload-flits, spines
    --set workload.message=1MB: a workload of kind "collective" has no key `message`
      fix: `message` is a key of packet fabrics: the keys are: initiators, members, name, operation, random-members, transactions
    --set workload.file=x.txt: a workload of kind "collective" has no key `file`
      fix: `file` is a key of `workload.kind = "trace"`: choose that, or leave the key out
    --set topology.tokens=3: a topology of kind "nvlink" has no key `tokens`
      fix: did you mean `injection.tokens`?
    --set topology.seed=3: a topology of kind "nvlink" has no key `seed`
      fix: did you mean `seed`?
    --set topology.gpu=64: a topology of kind "nvlink" has no key `gpu`
      fix: did you mean `gpus`? The keys are: cycle, gpus, gpus-per-leaf, header-flits, links-per-spine, payload-flits, spines
    --set injection.wm-maxi=2: injection control "3cpo" has no key `wm-maxi`
      fix: did you mean `wm-max`? The keys are: arbiter, base-md, carry-cap, channels, equivalent-of-sends, handover, initial-rtt, latency-max, latency-threshold, read-latency, remote-scaling, remote-scaling-from, remote-scaling-to, response-queue, scale-sends, skew-correction, token-cap, token-need, tokens, wm-increase, wm-initial, wm-max, wm-min, write-latency
    "#);
}

#[test]
fn combinations_that_hurt_are_warned_of() {
    let bench = Bench::new("warnings");
    bench.write("empty.toml", "# nothing yet\n");
    let warnings = |arguments: &[&str]| {
        let end = ["--set", "stop.at-most=1us", "--out", "out", "--no-report"];
        let all = [&["run"], arguments, &end].concat();
        let output = bench.output(&all);
        assert_eq!(output.status.code(), Some(1), "{all:?}");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let own = errors.lines().filter(|line| line.starts_with("warning"));
        own.map(|line| format!("{line}\n")).collect::<String>()
    };
    let set = |settings: &[&'static str]| {
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let all: Vec<&str> = ["incast-32"].into_iter().chain(settings).collect();
        warnings(&all)
    };
    let text = [
        set(&["transport.kind=dctcp", "transport.spray=oblivious"]),
        set(&["transport.kind=rocev2", "switch.kind=lossy"]),
        set(&[
            "transport.kind=hpcc",
            "transport.spray=adaptive",
            "switch.kind=shared-buffer",
        ]),
        set(&["transport.max-cwnd=50%bdp"]),
        set(&["transport.controller=constant", "transport.window=10KB"]),
        warnings(&["empty.toml"]),
    ]
    .concat();
    assert_snapshot!(text, @r#"
    warning: `transport.reliability` = "go-back-n" retransmits every packet after one that arrives out of order, and `transport.spray` = "oblivious" reorders packets; set `transport.spray` to "single", or `transport.reliability` to "selective-repeat"
    warning: `transport.controller` = "dcqcn" with go-back-N is made for lossless networks, and `switch.kind` = "lossy" drops packets when a queue is full: every packet after a loss is retransmitted; set `switch.kind` to "shared-buffer"
    warning: `transport.reliability` = "go-back-n" retransmits every packet after one that arrives out of order, and `transport.spray` = "adaptive" reorders packets; set `transport.spray` to "single", or `transport.reliability` to "selective-repeat"
    warning: `transport.max-cwnd` = 50%bdp is 208448B, less than the bandwidth-delay product of 416896B: a flow alone cannot fill its path
    warning: `transport.window` = 10KB is 10KB, less than the bandwidth-delay product of 416896B: a flow alone cannot fill its path
    warning: empty.toml is empty: this is the default scenario; `clearway explain scenario` lists all keys
    "#);
    for quiet in [
        &["transport.spray=oblivious"][..],
        &["transport.kind=rocev2", "switch.kind=shared-buffer"],
        &["transport.kind=dctcp"],
        &["transport.kind=swift"],
        &["name=x"],
    ] {
        assert_eq!(set(quiet), "", "{quiet:?}");
    }
    for builtin in [
        "quickstart",
        "incast-32",
        "hadoop-320",
        "mix-64",
        "tenants-mixed",
        "training-256",
        "permutation-1k",
    ] {
        assert_eq!(warnings(&[builtin]), "", "{builtin}");
    }
}
