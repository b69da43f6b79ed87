// Package plan is the boundary between deciding and doing: a [Plan] is a list
// of steps with every address and every wait in it. Nothing above a plan
// touches a device; nothing below it makes a choice.
//
// # What a plan promises
//
// [Verify] proves these from the plan and the graph alone; it shares no code
// with the planner.
//
//   - Every read sees the value that the graph says, in the version the graph's
//     order says; a slot is written before it is read.
//   - The plan is for this graph: its header has the graph's digest, and nodes,
//     operations and names are those of the graph.
//   - Every step is of an engine that can do it, and touches only memory that the
//     engine reaches; every address is aligned as its space demands.
//   - Every variable and constant has one slot of its own, that no copy, result or
//     scratch is laid over: at the end it holds the variable's last version.
//   - No two slots that are live during the same step overlap.
//   - Two steps that touch the same bytes, one of them writing, are ordered: by
//     their stream, or by a chain of waits. This holds for the bytes, so it
//     covers a slot and those that had its addresses before, and copies, which
//     run on streams of their own.
//   - What is sent to other workers is the network's until it is awaited, in the same
//     bytes: no step reads, writes or copies them in between. Sends are in the graph's
//     order, which is the same on all workers, whatever their plans; so no worker waits
//     for what another sends only after it has had what it waits for. Of a variable that
//     workers share, the network may have the bytes when the step starts: it is awaited
//     before anything else touches it, and sent after its update.
//   - What devices exchange with each other is a whole exchange in one step, in the graph's order
//     among what is sent. Others copy the operand until that step is done, so nobody writes it.
//   - In a plan that gathers, for networks of jobs that go on without a lost worker, an await
//     starts after every send before it is done.
//   - No more partitions are in flight than its window w has: when a step of
//     partition p+w starts, every step of partition p is done.
//   - Every live node runs: an update once, a pure operation as often as its
//     results are made, every time from the same operands. No operation sees a
//     variable after its update. Fetched values are in host memory at the end.
//   - Every byte of every slot is used, the high-water mark of every space is the
//     one in the header, and it is within the budget.
//
// The order of the steps is one of the many in which they may run. Because
// conflicting steps are ordered, every other order that the streams and waits
// allow computes the same bits.
//
// # Text
//
// [Plan.WriteTo] prints a plan one slot and one step a line; [Parse] reads it
// back as the same plan, down to names with line breaks. Its last line says how
// much there was: a text that is cut off is no plan. Two plans are compared with
// any line-based diff.
package plan
