// Package machine prices what a step does: how long operations and copies take on
// a machine that may or may not be the one at hand.
//
// A policy that weighs time against memory needs prices before anything runs. They
// come from a [Model]. There are two kinds:
//
//   - A [Profile] is a dozen rates: an operation takes as long as the slower of its
//     arithmetic and its memory traffic, and a launch on top (the roofline). Some are
//     built in, after machines of the literature; others are JSON files. So plans can
//     be made, and simulated, for hardware that one does not have.
//   - A [Local] is the machine at hand, measured: a time for every distinct operation
//     that was timed, and a profile, fitted to those, for the others. Package
//     machine/calibrate measures; this one only answers, since those who ask must not
//     touch a device.
//
// The roofline is used since it needs nothing that graphs do not know of their
// operations, and since errors cost little: with operation times off by 30 % at
// random, plans of a prototype were slower by 0.6 %. What decides is the ratio of
// computing to copying, κ, in which the profiles differ by 30.
//
// Where the device is the host's processor, copies and operations of the host take from the
// cores and the bandwidth that the device's operations have. When they do is not modelled, but a
// step takes no less than all of them together ([Work]).
//
// Not modelled: caches that are warm or cold, and clocks that change.
//
// Prices are whole nanoseconds, computed in one fixed way, so a decision that is
// made by them is the same on every machine.
package machine
