package graph

import "github.com/gomem/gomem/plan/space"

// Device is what a graph's plans are for, where that is not the reference. What is nil is as there.
type Device struct {
	// Scratch says what workspace executing a node takes, in bytes, instead of its operation, which
	// speaks for the kernels of the reference.
	Scratch func(*Node) int64
	// Hosted says which nodes every plan has on the host, with all that depends on them: since the
	// device computes them to other bits than the host, and where they are computed would be a
	// plan's choice.
	Hosted func(*Node) bool
	// Library says which library of the device computes a node there, "" where the device's own
	// kernels do. Which one it is may show in the bits, so it is the same in every plan.
	Library func(*Node) string
	// Align is what values' addresses are multiples of; 0 is as the host's kernels like them. It is
	// more where the bits of results may depend on addresses.
	Align space.Align
}

// Staged is the part of a variable or constant that is copied to the device for a reader of v: an
// offset and a size in bytes. Where bits may depend on addresses it begins so much before v that v
// is as aligned there as it is where the whole is.
func (v Value) Staged() (root Value, off, size int64) {
	root, off = v.Resolve()
	size = v.Type().Bytes()
	if d := root.Node.graph.device; d != nil && d.Align > 0 {
		before := off - d.Align.Down(off)
		return root, off - before, size + before
	}
	return root, off, size
}
