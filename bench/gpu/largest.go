//go:build linux && amd64 && !nocuda

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/torch"
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

// growths are MoE by its experts, ResNet by the blocks of its third stage, the others being 6, 32
// and 6 (Wang et al., SuperNeurons, 2018), and the Transformer and ResNet-152 by their batches.
func growths(small bool) []growing {
	size, experts, blocks, batch, limit := "base", 64, 200, 32, 20000
	if small {
		size, experts, blocks, batch, limit = "s512", 4, 1, 1, 4
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
		{"Transformer", "pairs a step", batch, limit, func(n int) (config, error) {
			c, err := models.NewTransformerConfig(size)
			c.Pairs = n
			return transformerOf(c), err
		}},
		{"ResNet-152", "images a step", batch, limit, func(n int) (config, error) {
			c, err := models.NewResNetConfig(size)
			if err != nil {
				return config{}, err
			}
			c.Images = n
			c.Blocks, err = models.ResNetBlocks(c.Depth)
			return resNetOf(c), err
		}},
	}
}

// largest looks for the largest models that a limit is enough for, and runs steps of them.
func largest(ctx context.Context, b *bench) error {
	caps := b.caps()
	l := caps[len(caps)-1]
	b.title("Largest models", fmt.Sprintf("With %s of the GPU's memory and %s of the host's, in "+
		"single precision. gomem's is the largest for which there is a plan, whose step then was "+
		"run, and came to the peak that the plan has, to the byte. PyTorch's is found by steps, "+
		"of which the smallest that failed is at most a sixteenth larger, where its allocator may "+
		"take as much of the GPU's memory, and all of the host's. A search ends after %v.",
		size(int(l.device)), size(int(l.host)), searching))
	b.head(3, "model", "in what", "side", "largest", "smallest refused", "parameters", "step ms",
		"peak MiB", "host MiB")
	sides := slices.Concat(own[:1], variants[:1], variants[plain:]) // compiling takes long
	var cut []string
	for _, g := range growths(b.emulate) {
		for _, side := range sides {
			row := fmt.Sprintf("%s in %s by %s", g.name, g.what, side)
			cells, err := b.once(ctx, row, func(ctx context.Context) (outcome, error) {
				cells, err := b.grow(ctx, g, l, side)
				o, missing := outcomeOf(result{}, side, err)
				if err == nil {
					o.cells = [][]string{cells}
				}
				return o, missing
			})
			switch e, missing := errors.AsType[*torch.ErrMissing](err); {
			case missing:
				cells = [][]string{{"missing: " + e.Reason}}
			case errors.Is(err, errTime):
				cut = append(cut, row)
			case err != nil:
				return err
			}
			b.rowsOf([]string{g.name, g.what, called(side)}, cells)
		}
	}
	b.missed(cut)
	return nil
}

// grow is the row of a side: as long as there is time, gomem plans, and PyTorch runs steps.
func (b *bench) grow(ctx context.Context, g growing, l limits, side string) ([]string, error) {
	if side != own[0] {
		return b.growTorch(ctx, g, l, side)
	}
	began := time.Now()
	answer, err := fit.Largest(g.start, 1, g.limit, func(n int) (fit.Outcome, error) {
		if time.Since(began) > searching {
			return fit.Outcome{}, errNear
		}
		c, err := g.of(n)
		if err != nil {
			return fit.Outcome{}, err
		}
		return fits(ctx, c, l)
	})
	if errors.Is(err, errNear) {
		err = nil
	}
	if err != nil || answer.Most == 0 {
		return found(answer, result{}), err
	}
	c, err := g.of(answer.Most)
	if err != nil {
		return nil, err
	}
	r, err := trained(ctx, c, l, precision.F32, b.probing())
	return found(answer, r), err
}

// probing are the steps of a model that may be too large.
func (b *bench) probing() steps { return steps{warm: 2, least: 1, most: 2, seconds: 1} }

// errNear ends a search that has come near enough, or has taken long enough.
var errNear = errors.New("near enough")

// searching is after how long no more probes are made.
const searching = patience * 2 / 3

// growTorch searches by steps, in one process.
func (b *bench) growTorch(ctx context.Context, g growing, l limits, side string) (cells []string,
	err error) {
	var best result
	good, bad, began := 0, g.limit+1, time.Now()
	err = b.torch(ctx, func(p *torch.Process) error {
		answer, err := fit.Largest(g.start, 1, g.limit, func(n int) (o fit.Outcome, err error) {
			c, err := g.of(n)
			if err != nil {
				return o, err
			}
			r, err := answered(p, b.asked(c, l, precision.F32, side, b.probing()))
			switch {
			case err != nil:
				return o, fmt.Errorf("at %d: %w", n, err)
			case r.Refused != "":
				bad = n
			default:
				good, best = n, r
			}
			o = fit.Outcome{Fits: r.Refused == "", Load: r.Load}
			if bad <= g.limit && bad-good <= good/16 || time.Since(began) > searching {
				err = errNear
			}
			return o, err
		})
		if errors.Is(err, errNear) {
			answer, err = fit.Answer{Most: good, Next: bad % (g.limit + 1)}, nil
		}
		cells = found(answer, best)
		return err
	})
	return cells, err
}

// found are the cells of an answer and of the steps of what is largest.
func found(a fit.Answer, r result) []string {
	next := "–"
	if a.Next > 0 {
		next = fmt.Sprint(a.Next)
	}
	cells := []string{fmt.Sprint(a.Most), next}
	if a.Most == 0 {
		return cells
	}
	return append(cells, r.cells()[:4]...)
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
