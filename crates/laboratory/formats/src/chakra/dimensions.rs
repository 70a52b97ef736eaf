//! Ranks by their coordinates in the dimensions of a network.

use super::node::Fault;
use super::roofline::Roofline;
use clearway_workload::graph::Rank;

/// Facts about ranks that traces of Chakra do not have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChakraOptions {
    /// Roofline that estimates computations without a duration; none: they take no time.
    pub roofline: Option<Roofline>,
    /// Ranks in each dimension, of which the first changes fastest; an empty list: there are no dimensions.
    pub dimensions: Vec<u32>,
}

/// The ranks, in ascending order, that differ from `rank` in the `involved` dimensions alone. Further entries of `involved`, for dimensions
/// that the network does not have, are not used: ASTRA-sim's traces often list four.
pub(super) fn row(
    sizes: &[u32],
    ranks: u32,
    (rank, involved): (Rank, &[bool]),
) -> Result<Vec<Rank>, Fault> {
    const FIX: &str = "write `dimensions` in the workload, such as [8, 4], or use a network with dimensions; or name the ranks as a process group";
    let fault = |message: String| Fault {
        message,
        fix: FIX.into(),
    };
    let named = "names some dimensions as `involved_dim`";
    if sizes.is_empty() {
        return Err(fault(format!("{named}, but the ranks have none")));
    }
    let product = sizes.iter().map(|&size| u64::from(size));
    if product.product::<u64>() != u64::from(ranks) {
        let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
        let sizes = sizes.join(" x ");
        return Err(fault(format!("{named}, but {ranks} ranks are not {sizes}")));
    }
    if involved.len() < sizes.len() {
        let (given, all) = (involved.len(), sizes.len());
        return Err(fault(format!(
            "{named}, but for {given} dimensions of {all}"
        )));
    }
    let mut members = vec![rank.0];
    let mut stride = 1;
    for (&size, &is_involved) in sizes.iter().zip(involved) {
        if is_involved {
            let own = rank.0 / stride % size * stride;
            let along = (0..size).map(|place| place * stride);
            let with = |offset: u32| members.iter().map(move |member| member - own + offset);
            members = along.flat_map(with).collect();
        }
        stride *= size;
    }
    Ok(members.into_iter().map(Rank).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_planes() {
        let of = |rank, involved: &[bool]| {
            let members = row(&[2, 3, 2], 12, (Rank(rank), involved)).ok().unwrap();
            members.into_iter().map(|rank| rank.0).collect::<Vec<u32>>()
        };
        assert_eq!(of(7, &[true, false, false]), [6, 7]);
        assert_eq!(of(7, &[false, true, false, true]), [7, 9, 11]);
        assert_eq!(of(7, &[true, false, true]), [0, 1, 6, 7]);
        assert_eq!(of(7, &[false, false, false]), [7]);
    }
}
