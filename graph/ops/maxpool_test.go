package ops

import (
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// TestBadPlaces: a place outside the window or the image is an error that shows
// it.
func TestBadPlaces(t *testing.T) {
	w := Window{Size: [2]int{2, 2}, Pad: [4]int{1, 1, 0, 0}}.defaults()
	for _, place := range []byte{0, 2, 4, 255} { // the window's left column is outside
		places, y, x := tensor.New(tensor.Of(graph.U8, 1, 1, 2, 2)),
			tensor.New(tensor.Of(graph.F32, 1, 1, 2, 2)),
			tensor.New(tensor.Of(graph.F32, 1, 1, 3, 3))
		copy(places.U8(), []byte{3, 3, place, 0})
		for _, c := range []struct {
			op      graph.Op
			in, out tensor.View
		}{{maxPoolGrad{w, 3, 3}, y, x}, {maxPoolPick{w}, x, y}} {
			fn, err := kernel.Lookup(kernel.CPU, c.op)
			if err != nil {
				t.Fatal(err)
			}
			err = fn(c.op, &kernel.Call{In: []tensor.View{places, c.in}, Out: []tensor.View{c.out}})
			if err == nil || !strings.Contains(err.Error(), "at position 2 is outside the image") {
				t.Errorf("%s at place %d: error is %v", c.op.Name(), place, err)
			}
		}
	}
}
