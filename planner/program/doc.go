// Package program holds the program that passes decide about, and runs them.
//
// A [Program] is a graph with dense tables beside it. Each [Pass] reads the
// graph and earlier tables and fills in one more: which nodes run (Live), in
// which partition (Part) and order (Order), in which space each lives (Place),
// and when values are away from the device (Away). The last table is the
// [Schedule]: every execution and every copy in one order, and what has bytes of
// which memory from when to when. Nothing here computes an address or touches a
// device; lowering turns the schedule, and nothing else, into a plan.
//
// [Run] applies passes in order and checks the tables after each one, so that a
// wrong decision is reported by the pass that made it.
package program
