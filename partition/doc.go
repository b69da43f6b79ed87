// Package partition cuts a graph into partitions of a fixed number of
// operations (J. Wei, thesis 2019, section 6.3). Partitions run in sequence, at
// most two at a time; within one, operations run in parallel.
//
// All strategies walk the graph from operation to operation that is ready, that
// is, whose predecessors have been visited, and close a partition whenever it
// has the given number of operations. They differ in which ready operation they
// visit next:
//
//   - [DFS] is Algorithm 4: the one that became ready last (a stack). Values
//     are consumed soon after they are made.
//   - [Depth] is the depth-guided traversal of section 6.3.4: the one with the
//     longest path to the end of the graph, so that a partition holds
//     operations of similar depth.
//   - [DFSDepth] is DFS with depth-based prioritisation, section 6.3.4: depth
//     first, but among the operations that one visit makes ready, the deepest
//     is visited first.
//   - [BreadthFirst] visits in order of readiness (a queue), as TensorFlow's
//     executor does: the order of the vanilla baseline.
//
// The thesis does not say in which order the successors of a node, or the
// initial nodes, are pushed. Here successors are pushed in order of creation, as
// the algorithm is written, and the initial nodes so that the first created is
// visited first.
//
// What it does not do: look at bytes, unless it is asked to ([Bounded]). A partition
// of huge operations is as long as one of small ones.
package partition
