//! Fluid model of a graph of messages that is limited by nothing but the rate of the NICs: each connection sends message after message
//! without delay, and connections share the NICs at both ends max-min fairly. It knows nothing of packets, queues or controllers.

use clearway_workload::{Graph, Task};
use std::collections::{BTreeMap, VecDeque};

type Ends = (usize, usize);

/// The time, in bytes at the rate of a NIC.
///
/// # Panics
/// If a task is no message, or if some are never ready.
pub(crate) fn bytes_of_time(graph: &Graph) -> f64 {
    Fluid::new(graph).run()
}

struct Fluid {
    ranks: usize,
    /// Sender, receiver and bytes of each message.
    messages: Vec<(Ends, f64)>,
    /// Messages that wait for each message.
    successors: Vec<Vec<usize>>,
    /// Number of messages that each message still waits for.
    waits: Vec<usize>,
    /// The messages that are ready to be sent on each connection, and what each of them has left.
    connections: BTreeMap<Ends, VecDeque<(usize, f64)>>,
}

impl Fluid {
    fn new(graph: &Graph) -> Self {
        let mut fluid = Self {
            ranks: graph.ranks() as usize,
            messages: Vec::new(),
            successors: vec![Vec::new(); graph.len()],
            waits: Vec::new(),
            connections: BTreeMap::new(),
        };
        for (id, task) in graph.numbered() {
            let Task::Message { src, dst, bytes } = task else {
                panic!("task {id:?} is no message")
            };
            let needs = graph.needs(id);
            for need in needs {
                fluid.successors[need.task().index()].push(id.index());
            }
            fluid.waits.push(needs.len());
            let message = ((src.index(), dst.index()), bytes.as_u64() as f64);
            fluid.messages.push(message);
            if needs.is_empty() {
                fluid.post(id.index());
            }
        }
        fluid
    }

    fn post(&mut self, message: usize) {
        let (ends, bytes) = self.messages[message];
        let queue = self.connections.entry(ends).or_default();
        queue.push_back((message, bytes));
    }

    fn run(mut self) -> f64 {
        let (mut now, mut sent) = (0.0, 0);
        while !self.connections.is_empty() {
            let rates = self.rates();
            let heads = self.connections.values().map(|queue| queue[0].1);
            let times = heads.zip(&rates).map(|(left, rate)| left / rate);
            let time = times.fold(f64::INFINITY, f64::min);
            now += time;
            let mut over = Vec::new();
            for (queue, rate) in self.connections.values_mut().zip(&rates) {
                queue[0].1 -= rate * time;
                // A thousandth of a byte is a matter of rounding.
                if queue[0].1 < 1e-3 {
                    over.extend(queue.pop_front().map(|(message, _)| message));
                }
            }
            self.connections.retain(|_, queue| !queue.is_empty());
            sent += over.len();
            for message in over {
                for next in std::mem::take(&mut self.successors[message]) {
                    self.waits[next] -= 1;
                    if self.waits[next] == 0 {
                        self.post(next);
                    }
                }
            }
        }
        assert_eq!(sent, self.messages.len(), "messages that are never ready");
        now
    }

    /// The max-min fair rate of each connection: the NIC with the least for each of its connections gives it to them, and so on with
    /// what the others have left.
    fn rates(&self) -> Vec<f64> {
        // Each rank has a NIC to send by and one to receive by.
        let nics = |&(src, dst): &Ends| [src, self.ranks + dst];
        let connections: Vec<[usize; 2]> = self.connections.keys().map(nics).collect();
        let mut free = vec![(1.0, 0u32); 2 * self.ranks];
        for nic in connections.iter().flatten() {
            free[*nic].1 += 1;
        }
        let mut rates = vec![None; connections.len()];
        let share = |&(rate, sharing): &(f64, u32)| rate / f64::from(sharing);
        while let Some(tightest) = (0..free.len())
            .filter(|&nic| free[nic].1 > 0)
            .min_by(|&a, &b| share(&free[a]).total_cmp(&share(&free[b])))
        {
            let rate = share(&free[tightest]);
            for (nics, given) in connections.iter().zip(&mut rates) {
                if given.is_none() && nics.contains(&tightest) {
                    *given = Some(rate);
                    for nic in nics {
                        free[*nic].0 -= rate;
                        free[*nic].1 -= 1;
                    }
                }
            }
        }
        rates.into_iter().flatten().collect()
    }
}
