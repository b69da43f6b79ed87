package thesis

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine/calibrate"
)

// priced are sides in which auto plans for what is timed: operations as they were measured
// here, and copies of a speed.
func (r *runner) priced(ctx context.Context, speed float64, sides []side) ([]side, error) {
	sides = slices.Clone(sides)
	for i := range sides {
		s := &sides[i]
		if s.options.Policy != planner.Auto {
			continue
		}
		r.progress("%s: measuring operations", s.model.Name)
		dir, err := os.MkdirTemp("", "gomem-thesis-*")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		c, err := calibrate.Open(ctx, calibrate.Options{Cache: dir, Limit: time.Minute})
		if err != nil {
			return nil, err
		}
		if err := c.Measure(ctx, s.model.Graph.Nodes()); err != nil {
			return nil, err
		}
		local := c.Local()
		local.Profile.In, local.Profile.Out = speed, speed
		s.options.Machine = local
	}
	return sides, nil
}
