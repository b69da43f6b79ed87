package mesh_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/mesh"

	"github.com/gomem/gomem/graph"
)

// TestParse: what is printed is read back, and bad text is refused with what is wrong.
func TestParse(t *testing.T) {
	for _, good := range []struct{ mesh, layout, text string }{
		{"batch:2", "", "batch:2"},
		{"batch:2,experts:4", "", "batch:2,experts:4"},
		{"experts:4x5", "", "experts:4x5"},
		{"a:1x3", "a=a", "a:3"},
		{"rows:2", "batch=rows", "rows:2 batch=rows"},
		{"m:2", "*/ff/w0:1=m,*/ff/w1:0=m", "m:2 */ff/w0:1=m,*/ff/w1:0=m"},
	} {
		s, err := mesh.Parse(good.mesh, good.layout)
		if err != nil || s.String() != good.text {
			t.Errorf("%q %q: %v, %v; want %q", good.mesh, good.layout, s, err, good.text)
		}
	}
	for _, bad := range []struct{ mesh, layout, why string }{
		{"", "", "is no axis of a mesh"},
		{"batch", "", "is no axis of a mesh"},
		{"batch:", "", `"" is no number`},
		{"batch:two", "", `"two" is no number`},
		{"batch:2x", "", `"" is no number`},
		{"batch:0", "", "out of range"},
		{"batch:-1", "", "out of range"},
		{"batch:99999999", "", "out of range"},
		{"batch:2,batch:2", "", "twice"},
		{"b c:2", "", "no name"},
		{"a:2,b:2,c:2,d:2,e:2", "", "1 to 4 axes"},
		{"a:1000,b:1000", "", "more than 4096 coordinates"},
		{"batch:2", "batch", "no assignment"},
		{"batch:2", "=batch", "no assignment"},
		{"batch:2", "batch=", "no assignment"},
		{"batch:2", "batch=rows", `no axis "rows": it has batch`},
		{"batch:2", "batch=batch,batch=batch", "there twice"},
		{"batch:2,rows:2", "batch=batch", "nothing is divided along axis rows"},
		{"m:2", "*/w0=m", "want an axis by number"},
		{"m:2", "*/w0:-1=m", "want an axis by number"},
		{"m:2", "*/w0:x=m", "want an axis by number"},
	} {
		_, err := mesh.Parse(bad.mesh, bad.layout)
		if err == nil || !strings.Contains(err.Error(), bad.why) {
			t.Errorf("%q %q: %v; want %q", bad.mesh, bad.layout, err, bad.why)
		}
	}
}

// TestPieces: pieces of a value, cut along any axes, make it up again, and each has what a
// plain loop over its elements says.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rank := rapid.IntRange(0, 4).Draw(t, "rank")
		parts, sizes := make([]int, rank), make([]int, rank)
		count, elems := 1, 1
		for k := range parts {
			parts[k] = rapid.IntRange(1, 3).Draw(t, "parts")
			sizes[k] = parts[k] * rapid.IntRange(0, 3).Draw(t, "size")
			count, elems = count*parts[k], elems*sizes[k]
		}
		whole := tensor.New(tensor.Of(graph.I32, sizes...))
		for i := range whole.I32() {
			whole.I32()[i] = int32(i) + 1
		}
		again := tensor.New(whole.Type)
		for c := range count {
			p := mesh.Piece{Cut: make([]graph.Part, rank)}
			for k, rest := rank-1, c; k >= 0; k-- {
				if parts[k] > 1 {
					p.Cut[k] = graph.Part{N: parts[k], I: rest % parts[k]}
				}
				rest /= parts[k]
			}
			piece := p.Of(whole)
			for i, x := range piece.I32() {
				if want := at(whole, p, piece.Type, i); x != want {
					t.Fatalf("element %d of piece %v of %s is %d, want %d", i, p.Cut,
						whole.Type, x, want)
				}
			}
			p.Into(again, piece)
		}
		if string(again.Data) != string(whole.Data) {
			t.Fatalf("pieces of %v make %v", whole, again)
		}
	})
}

// at is the element of the whole that is element i of a piece.
func at(whole tensor.View, p mesh.Piece, piece graph.Type, i int) int32 {
	index, step := 0, 1
	for k := piece.Rank() - 1; k >= 0; k-- {
		n := piece.Size(k)
		index += (p.Cut[k].I*n + i%n) * step
		step *= whole.Type.Size(k)
		i /= n
	}
	return whole.I32()[index]
}
