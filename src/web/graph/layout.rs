//! Places the jobs of a graph: layers from left to right, each job after all that it waits for. Long edges run
//! straight beside the jobs of the layers between, and bend in the last gap.

use std::collections::HashMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GraphEdge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// True if it waits for any end.
    pub(super) any: bool,
}

/// The place of a job, or of an edge that passes a layer: its layer, and the middle of its height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NodePlace {
    pub(super) layer: usize,
    pub(super) y: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct GraphPlaces {
    pub(super) jobs: Vec<NodePlace>,
    /// The height of each edge until the last gap.
    pub(super) edges: Vec<f64>,
    pub(super) layers: usize,
    pub(super) height: f64,
}

/// The distance of the middles of two jobs of a layer.
pub(super) const ROW: f64 = 62.0;
/// The distance of an edge that passes beside jobs.
const LANE: f64 = 24.0;
/// The space above and below.
const EDGE: f64 = 42.0;
/// The number of times that layers are sorted by their neighbours.
const SWEEPS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Slot {
    Job(usize),
    Passing(usize),
}

/// Returns the layer of each job: one after the last that it waits for. Jobs of a circle, which no valid graph
/// has, get a layer too.
fn layers(jobs: usize, edges: &[GraphEdge]) -> Vec<usize> {
    let mut layers = vec![0; jobs];
    for _ in 0..jobs {
        let mut has_moved = false;
        for edge in edges {
            let least = layers[edge.from] + 1;
            if layers[edge.to] < least && least < jobs {
                layers[edge.to] = least;
                has_moved = true;
            }
        }
        if !has_moved {
            break;
        }
    }
    layers
}

pub(super) fn placed(jobs: usize, edges: &[GraphEdge]) -> GraphPlaces {
    let of = layers(jobs, edges);
    let number = of.iter().max().map_or(0, |last| last + 1);
    let mut columns: Vec<Vec<Slot>> = vec![Vec::new(); number];
    for (job, layer) in of.iter().enumerate() {
        columns[*layer].push(Slot::Job(job));
    }
    for (place, edge) in edges.iter().enumerate() {
        for column in columns.iter_mut().take(of[edge.to]).skip(of[edge.from] + 1) {
            column.push(Slot::Passing(place));
        }
    }
    let mut heights: HashMap<(usize, Slot), f64> = HashMap::new();
    for (layer, column) in columns.iter().enumerate() {
        stack(layer, column, &mut heights);
    }
    for sweep in 0..SWEEPS {
        let forward = sweep % 2 == 0;
        for step in 0..number {
            let layer = if forward { step } else { number - 1 - step };
            sort(layer, &mut columns[layer], edges, &of, &heights, forward);
            stack(layer, &columns[layer], &mut heights);
        }
    }
    let tallest = heights.values().fold(0.0_f64, |most, height| most.max(*height));
    center(&columns, &mut heights, tallest);
    let height_of = |layer: usize, slot: Slot| heights.get(&(layer, slot)).copied();
    let job_place =
        |(job, layer)| NodePlace { layer, y: height_of(layer, Slot::Job(job)).unwrap_or_default() };
    let jobs: Vec<NodePlace> = of.iter().copied().enumerate().map(job_place).collect();
    let edge_height = |(place, edge): (usize, &GraphEdge)| {
        let passing = height_of(of[edge.from] + 1, Slot::Passing(place));
        passing.unwrap_or(jobs[edge.from].y)
    };
    let edges = edges.iter().enumerate().map(edge_height).collect();
    GraphPlaces { jobs, edges, layers: number, height: tallest + EDGE }
}

/// Gives the slots of a column their heights, from above.
fn stack(layer: usize, column: &[Slot], heights: &mut HashMap<(usize, Slot), f64>) {
    let mut next = EDGE;
    let mut before: Option<Slot> = None;
    for slot in column {
        let gap = match (before, slot) {
            (None, _) => 0.0,
            (Some(Slot::Job(_)), Slot::Job(_)) => ROW,
            (Some(Slot::Passing(_)), Slot::Passing(_)) => LANE,
            _ => f64::midpoint(ROW, LANE),
        };
        next += gap;
        heights.insert((layer, *slot), next);
        before = Some(*slot);
    }
}

/// Sorts a column by the middle of its neighbours in the layer before, or after.
fn sort(
    layer: usize,
    column: &mut [Slot],
    edges: &[GraphEdge],
    of: &[usize],
    heights: &HashMap<(usize, Slot), f64>,
    forward: bool,
) {
    let own = |slot: Slot| heights.get(&(layer, slot)).copied().unwrap_or_default();
    let end = |at: usize, job: usize, edge: usize| {
        let slot = if of[job] == at { Slot::Job(job) } else { Slot::Passing(edge) };
        heights.get(&(at, slot)).copied()
    };
    let middle = |slot: Slot| {
        let near: Vec<f64> = edges
            .iter()
            .enumerate()
            .filter(|(place, edge)| match slot {
                Slot::Job(job) => job == if forward { edge.to } else { edge.from },
                Slot::Passing(passing) => passing == *place,
            })
            .filter_map(|(place, edge)| {
                if forward {
                    end(layer.checked_sub(1)?, edge.from, place)
                } else {
                    end(layer + 1, edge.to, place)
                }
            })
            .collect();
        if near.is_empty() {
            return own(slot);
        }
        #[expect(clippy::cast_precision_loss, reason = "a few neighbours")]
        let number = near.len() as f64;
        near.iter().sum::<f64>() / number
    };
    let mut keyed: Vec<(f64, Slot)> = column.iter().map(|slot| (middle(*slot), *slot)).collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (place, (_, slot)) in column.iter_mut().zip(keyed) {
        *place = slot;
    }
}

fn center(columns: &[Vec<Slot>], heights: &mut HashMap<(usize, Slot), f64>, tallest: f64) {
    for (layer, column) in columns.iter().enumerate() {
        let Some(last) = column.last().and_then(|slot| heights.get(&(layer, *slot))) else {
            continue;
        };
        let shift = (tallest - last) / 2.0;
        for slot in column {
            if let Some(height) = heights.get_mut(&(layer, *slot)) {
                *height += shift;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: usize, to: usize) -> GraphEdge {
        GraphEdge { from, to, any: false }
    }

    #[test]
    fn job_stands_behind_all_that_it_waits_for() {
        let edges = [edge(0, 1), edge(1, 2), edge(0, 2), edge(3, 2)];
        let places = placed(4, &edges);
        let layers: Vec<usize> = places.jobs.iter().map(|place| place.layer).collect();
        assert_eq!((layers, places.layers), (vec![0, 1, 2, 0], 3));
    }

    #[test]
    fn no_two_jobs_overlap_and_no_edge_runs_behind_a_job() {
        let edges =
            [edge(0, 2), edge(1, 2), edge(2, 3), edge(0, 4), edge(3, 4), edge(1, 4), edge(5, 3)];
        let places = placed(6, &edges);
        for (a, one) in places.jobs.iter().enumerate() {
            for other in places.jobs.iter().skip(a + 1).filter(|other| other.layer == one.layer) {
                assert!((one.y - other.y).abs() >= ROW - 0.1, "{one:?} {other:?}");
            }
            assert!(one.y > 0.0 && one.y < places.height, "{one:?}");
        }
        for (edge, y) in edges.iter().zip(&places.edges) {
            let passed = places.jobs[edge.from].layer + 1..places.jobs[edge.to].layer;
            for job in places.jobs.iter().filter(|job| passed.contains(&job.layer)) {
                assert!((job.y - y).abs() > 22.0, "{edge:?} at {y} passes {job:?}");
            }
        }
    }

    #[test]
    fn circle_and_empty_graph_do_not_hang() {
        let places = placed(3, &[edge(0, 1), edge(1, 2), edge(2, 0)]);
        assert_eq!(places.jobs.len(), 3);
        assert_eq!(placed(0, &[]).layers, 0);
    }
}
