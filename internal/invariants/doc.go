// Package invariants says whether expensive self-checks are compiled in.
//
// Code asks with `if invariants.Enabled { … }`; the constant is false in an
// ordinary build, so the check and what it needs cost nothing. Built with
// `-tags invariants`, what an operation is about to write is poisoned first, so
// that nothing it leaves out goes unnoticed, and kernels check their bounds.
package invariants
