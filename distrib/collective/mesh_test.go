package collective

import (
	"fmt"
	"testing"
	"time"

	"github.com/gomem/gomem/distrib/memnet"
)

// TestMesh: sums along each axis, and along two of them at once, whose messages share the
// streams between nodes.
func TestMesh(t *testing.T) {
	shape := Mesh{Shape: []int{2, 3, 2}, Names: []string{"batch", "experts", "model"}}
	inWorld(t, 12, memnet.Options{Latency: time.Millisecond}, Options{}, func(w *world) {
		w.must(func(x *node) error {
			axes, err := x.mux.Mesh(shape, members(12)...)
			if err != nil {
				return err
			}
			sums := make([]int64, 3)
			errs := make(chan error)
			for i, name := range shape.Names {
				go func() {
					v := []int64{1 << (4 * x.rank)}
					errs <- AllReduce(background, axes.Axis(name), v, Sum)
					sums[i] = v[0]
					errs <- nil
				}()
			}
			for range 6 {
				if err := <-errs; err != nil {
					return err
				}
			}
			at := shape.Coord(x.rank)
			for i, stride := range []int{6, 2, 1} {
				var want int64
				for j := range shape.Shape[i] {
					want += 1 << (4 * (x.rank + (j-at[i])*stride))
				}
				if sums[i] != want {
					return fmt.Errorf("%s: %x, want %x", shape.Names[i], sums[i], want)
				}
			}
			if axes.Axis("none") != nil {
				return fmt.Errorf("there is an axis of no name")
			}
			return axes.Close()
		})
	})
}

func TestMeshIsChecked(t *testing.T) {
	inWorld(t, 2, memnet.Options{}, Options{}, func(w *world) {
		mux := w.nodes[0].mux
		for _, c := range []struct {
			m    Mesh
			want string
		}{
			{Mesh{[]int{2}, nil}, "collective: a mesh of 1 sizes and 0 names"},
			{Mesh{}, "collective: a mesh of 0 sizes and 0 names"},
			{Mesh{[]int{2, 0}, []string{"a", "b"}},
				`collective: axis "b" of 0 in a mesh of [2 0] (["a" "b"])`},
			{Mesh{[]int{1, 2}, []string{"a", "a"}},
				`collective: axis "a" of 2 in a mesh of [1 2] (["a" "a"])`},
			{Mesh{[]int{3}, []string{"a"}}, "collective: a mesh of [3] has 3 places for 2 nodes"},
		} {
			if _, err := mux.Mesh(c.m, members(2)...); err == nil || err.Error() != c.want {
				t.Errorf("%v: %v, want %s", c.m, err, c.want)
			}
		}
		if _, err := mux.Mesh(Mesh{[]int{2}, []string{"a"}}, 1, 2); err == nil {
			t.Error("a mesh without this node was made")
		}
	})
}
