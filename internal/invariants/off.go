//go:build !invariants

package invariants

// Enabled reports whether the program was built with -tags invariants.
const Enabled = false
