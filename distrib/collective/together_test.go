package collective_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
)

// TestTogether: all nodes have a group of all; the error of one is all others' end, and a node that
// ends early takes nothing from those that still wait for what it has sent.
func TestTogether(t *testing.T) {
	sums := make([]int32, 3)
	errs := collective.Together(memnet.New(3, memnet.Options{}), collective.Options{},
		func(g *collective.Group) error {
			x := []int32{int32(g.Rank() + 1)}
			err := collective.AllReduce(t.Context(), g, x, collective.Sum)
			sums[g.Rank()] = x[0]
			return err
		})
	if err := errors.Join(errs...); err != nil || !slices.Equal(sums, []int32{6, 6, 6}) {
		t.Errorf("%v, %v", sums, err)
	}
	boom := errors.New("boom")
	errs = collective.Together(memnet.New(3, memnet.Options{}), collective.Options{},
		func(g *collective.Group) error {
			if g.Rank() == 1 {
				return boom
			}
			return collective.Barrier(t.Context(), g)
		})
	if errs[0] == nil || !errors.Is(errs[1], boom) || errs[2] == nil {
		t.Errorf("%v", errs)
	}
	errs = collective.Together(memnet.New(2, memnet.Options{}), collective.Options{Chunk: 1},
		func(*collective.Group) error { return nil })
	if errs[0] == nil || errs[1] == nil {
		t.Errorf("options that will not do: %v", errs)
	}
}
