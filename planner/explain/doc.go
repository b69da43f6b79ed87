// Package explain says what there is to say where no plan fits: how much is short, what sets that,
// and what would help.
//
// It only asks. [Refusal] and [Gentlest] ask a search that found nothing (package candidates) for
// the smallest budget that works, name the operation that sets it with what is there then, and try
// what a user could change, the gentlest first: the first change that fits is the [Remedy].
package explain
