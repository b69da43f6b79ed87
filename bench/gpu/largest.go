//go:build linux && amd64 && !nocuda

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/internal/fit"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
)

// growing is a model of any number of experts, or blocks.
type growing struct {
	name, what   string
	start, limit int
	of           func(n int) (config, error)
}

// growths are MoE by its experts and ResNet by the blocks of its third stage, the others being
// 6, 32 and 6 (Wang et al., SuperNeurons, 2018).
func growths(small bool) []growing {
	size, experts, blocks, limit := "base", 64, 200, 20000
	if small {
		size, experts, blocks, limit = "s512", 8, 1, 8
	}
	return []growing{
		{"MoE", "experts a layer", experts, limit, func(n int) (config, error) {
			c, err := models.NewMoEConfig(size)
			c.Experts = max(2, n)
			return moeOf(c), err
		}},
		{"ResNet", "blocks of the third stage", blocks, limit, func(n int) (config, error) {
			c, err := models.NewResNetConfig(size)
			c.Blocks, c.Images = [4]int{6, 32, n, 6}, 16
			if small {
				c.Blocks, c.Images = [4]int{1, 1, n, 1}, 2
			}
			return resNetOf(c), err
		}},
	}
}

// errTime ends a search.
var errTime = errors.New("for want of time")

// largest looks for the largest models that a limit is enough for, by planning, and runs steps
// of them.
func largest(ctx context.Context, b *bench) error {
	caps := b.caps()
	l := caps[len(caps)-1]
	b.title("Largest models", fmt.Sprintf("With %s of the GPU's memory and %s of the host's: the "+
		"largest for which there is a plan, whose step then was run, and came to the peak that "+
		"the plan has, to the byte.", size(int(l.device)), size(int(l.host))))
	b.head(2, "model", "in what", "largest", "smallest refused", "parameters", "step ms",
		"peak MiB", "host MiB")
	for _, g := range growths(b.emulate) {
		if err := b.grow(ctx, g, l); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) grow(ctx context.Context, g growing, l limits) error {
	answer, err := fit.Largest(g.start, 1, g.limit, func(n int) (fit.Outcome, error) {
		if !b.left() {
			return fit.Outcome{}, errTime
		}
		c, err := g.of(n)
		if err != nil {
			return fit.Outcome{}, err
		}
		return fits(ctx, c, l)
	})
	if err != nil && !errors.Is(err, errTime) {
		return err
	}
	refused := "none up to " + fmt.Sprint(g.limit)
	if answer.Next > 0 {
		refused = fmt.Sprint(answer.Next)
	} else if err != nil {
		refused = "not searched for, " + err.Error()
	}
	cells := []string{g.name, g.what, fmt.Sprint(answer.Most), refused}
	if answer.Most == 0 {
		b.row(append(cells, "", "", "", "")...)
		return nil
	}
	c, err := g.of(answer.Most)
	if err != nil {
		return err
	}
	r, err := trained(ctx, c, l, precision.F32, steps{warm: 2, least: 1, most: 2, seconds: 1})
	if err != nil {
		return fmt.Errorf("%s with %d %s: %w", g.name, answer.Most, g.what, err)
	}
	b.row(append(cells, r.cells()[:4]...)...)
	return nil
}

// fits reports whether there is a plan.
func fits(ctx context.Context, c config, l limits) (fit.Outcome, error) {
	m, err := c.build()
	if err != nil {
		return fit.Outcome{}, err
	}
	o := l.options(precision.F32)
	_, err = gomem.Plan(ctx, m.Graph, o, training(m))
	if e, ok := errors.AsType[*planner.ErrOutOfMemory](err); ok {
		return fit.Outcome{Load: float64(e.Need) / float64(max(1, e.Budget))}, nil
	}
	return fit.Outcome{Fits: err == nil}, err
}
