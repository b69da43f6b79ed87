// Package invariants says whether expensive self-checks are compiled in.
//
// Code asks with `if invariants.Enabled { … }`; the constant is false in an
// ordinary build, so the check and what it needs cost nothing. Built with
// `-tags invariants`, freed device memory is poisoned, kernels check their
// bounds, and passes visit equivalent nodes in a shuffled order.
package invariants
