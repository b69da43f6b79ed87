// Package outlook says of a program that is decided what every schedule of it needs and takes at
// least: before one is made.
//
// Of a hundred ways to partition a graph most lose, and a schedule of each would take most of a
// planner's time. Partitions, places and gaps say enough to know it: what is on the device at each
// operation whenever its copies run, and how long operations and copies take in that order, if
// nothing waits for an address. Both are bounds from below, so nothing that would win is left out.
package outlook
