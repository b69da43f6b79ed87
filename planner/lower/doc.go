// Package lower makes a plan of a schedule: slots of stays, addresses of slots, steps of events,
// and waits of addresses. It decides nothing but addresses.
//
// # Four states
//
// A schedule ([program.Schedule]) is all that is decided of a step: events in one order, and the
// stays of values in memories, each from an event to another. [Of] makes its sketch: every stay
// becomes a slot, or a part of the life of the slot whose bytes it takes over. [Sketch.Pack] fixes
// addresses, and [Sketch.Plan] writes the plan down: an event is a step, and slots get the names
// and types of what they hold. [AddWaits] gives the steps their waits.
//
//	schedule → sketch → packed → plan
//
// Only the last state costs what a plan costs. Whoever has a hundred schedules to choose from makes
// a hundred sketches, packs a dozen, and writes one plan.
//
// # Why bounds hold before packing
//
// A sketch has no addresses, but what it says then holds whatever they will be.
//
// At every event some slots are live, and no two of them share an address. So a space has at least
// the sum of their bytes, each rounded up to a line of memory but for the highest: the most of that
// over all events is [Sketch.Load]. All slots side by side are always a packing, so none needs more
// than [Sketch.Apart]. A budget below the first is out of the question, and one from the second on
// is no question; in between there must be addresses to know.
//
// A step takes at least what [Sketch.Time] says without addresses: every event waits for its stream
// and for the values that it touches, whatever addresses there are. With addresses an event waits
// for those, too, which makes it later and never sooner. Then the time is what package simulate
// says of the plan, to the nanosecond, and the peaks are the plan's, to the byte.
//
// # Why waits follow from addresses
//
// Streams run on their own, and a wait is all that holds one back for another. Two steps must be in
// order if they touch the same bytes of the same slot and one of them writes, or if they touch two
// slots that have an address in common: one after the other, as their lives are. The latter is all
// that the reuse of memory asks for: whoever is the first to touch a slot waits for all that
// touched the slots that had its addresses last. No step allocates or frees, so nothing of it
// depends on timing: any run that keeps to the waits has every byte to itself when it needs it, and
// the peak of a run is the highest address, which is known before the first step. As far as the
// schedule keeps partitions two apart (J. Wei, Scheduling for Efficient Large-Scale Machine
// Learning Training, thesis 2019, chapter 6, runs at most two at a time), a wait says that as well.
// A wait that follows from others is left out.
//
// # More than the lowest addresses
//
// The lowest packing is what decides whether a plan fits, and does not depend on budgets. Where
// there is more memory it is not the best: whoever takes an address waits for those that had it
// just before. [Sketch.Ring] leaves addresses alone for a while. Where the lowest packing is a
// little too high, [Sketch.Press] looks longer; and what found no room at all, [Sketch.Spare] tells
// the search that decided. [Sketch.Lift] only lets a plan take more than it needs.
package lower
