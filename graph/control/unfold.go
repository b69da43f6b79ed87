package control

import (
	"github.com/gomem/gomem/graph"
)

// A loop is made some iterations at a time by loops of the same body: each begins with the states
// that the one before it left, so that all iterations compute what they did. A gradient's sums over
// iterations are states, too, and go on where they were.

// partsFor is into how many parts a loop is to be cut so that each needs a limit of bytes, or
// little more than it does without rows: rows is what grows with the iterations, fixed the rest.
func partsFor(length int, rows, fixed, limit int64) int {
	room := limit - fixed
	if room <= 0 {
		room = 1 + fixed/16
	}
	return int(max(1, min(int64(length), (rows+room-1)/room)))
}

// bytes is how many values of some types have.
func bytes(list []graph.Type) (n int64) {
	for _, t := range list {
		n += t.Bytes()
	}
	return n
}

// Steps are the iterations.
func (s scan) Steps(in, out []graph.Type, limit int64) (steps, parts int) {
	fixed := s.Same + s.States
	rows := bytes(in[fixed:fixed+s.Xs]) + bytes(out[s.States:])
	all := bytes(in) + bytes(out) + s.Body.frame.bytes
	return s.Length, partsFor(s.Length, rows, all-rows, limit)
}

// Unfold makes the iterations part by part.
func (s scan) Unfold(in []graph.Value, parts int, u graph.Unfolder) [][]graph.Value {
	operands := make([]graph.Value, len(in))
	fixed := s.Same + s.States
	for i, v := range in {
		if i < fixed || i >= fixed+s.Xs {
			operands[i] = u.Whole(v)
		}
	}
	parts = min(parts, s.Length)
	out := make([][]graph.Value, s.results())
	for i := range out {
		out[i] = make([]graph.Value, parts)
	}
	for k := range parts {
		if s.Reverse {
			k = parts - 1 - k
		}
		u.Part(k+1, parts)
		lo, hi := k*s.Length/parts, (k+1)*s.Length/parts
		for i := fixed; i < fixed+s.Xs; i++ {
			operands[i] = u.Rows(in[i], lo, hi)
		}
		for i, v := range u.Node(len(out), "", s.part(lo, hi), operands...) {
			if out[i][k] = v; i < s.States {
				operands[s.Same+i] = v
			}
		}
	}
	for i := range s.States {
		out[i] = []graph.Value{operands[s.Same+i]}
	}
	return out
}

// Steps are the iterations that there may be; a loop that records none has no rows.
func (w while) Steps(in, out []graph.Type, limit int64) (steps, parts int) {
	if !w.Record || w.From > 0 {
		return 1, 1
	}
	rows := bytes(out[w.States+1:])
	all := bytes(in) + bytes(out) + w.scratch()
	return w.Bound, partsFor(w.Bound, rows, all-rows, limit)
}

// Unfold makes the iterations part by part; each goes on from the count of the one before it.
func (w while) Unfold(in []graph.Value, parts int, u graph.Unfolder) [][]graph.Value {
	operands := make([]graph.Value, len(in), len(in)+1)
	for i, v := range in {
		operands[i] = u.Whole(v)
	}
	parts = min(parts, w.Bound)
	out := make([][]graph.Value, 2*w.States+1)
	for k := range parts {
		u.Part(k+1, parts)
		lo, hi := k*w.Bound/parts, (k+1)*w.Bound/parts
		for i, v := range u.Node(len(out), "", w.part(lo, hi), operands...) {
			switch {
			case i < w.States:
				operands[w.Same+i], out[i] = v, []graph.Value{v}
			case i == w.States:
				operands, out[i] = append(operands[:len(in)], v), []graph.Value{v}
			default:
				out[i] = append(out[i], v)
			}
		}
	}
	return out
}
