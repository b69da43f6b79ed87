//go:build linux && amd64 && !nocuda

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/graph/precision"
)

// variants are PyTorch's ways to need less memory, the plain one first: peer.py has them.
var variants = []string{"eager", "compile", "save_on_cpu", "checkpoint", "fsdp_offload"}

// plain are those that need no less memory.
const plain = 2

// own are gomem's sides: as it is, and with --no-cuda-graphs.
var own = []string{"gomem", "gomem, one by one"}

// caps are the limits of memory: none, and 12 GiB of the GPU's with 64 GiB of the host's.
func (b *bench) caps() []limits {
	if b.emulate {
		return []limits{{}, {device: 32<<20 + 640<<10, host: 256 << 20}}
	}
	return []limits{{}, {device: 12 << 30, host: 64 << 30}}
}

// steps are those of a row.
func (b *bench) steps() steps {
	if b.emulate {
		return steps{least: 1, most: 1}
	}
	return steps{warm: 3, least: 3, most: 30, seconds: 4}
}

// inF32 measures steps of models in single precision beside all that PyTorch has for them.
func inF32(ctx context.Context, b *bench) error {
	b.title("Steps", "A training step in single precision, TF32 off: "+compares)
	all, err := configs(b.emulate)
	if err != nil {
		return err
	}
	return b.compared(ctx, all, precision.F32)
}

// inLess measures steps of models in the other precisions.
func inLess(ctx context.Context, b *bench) error {
	b.title("Steps in other precisions", "A training step with products in TF32, or in bfloat16 "+
		"with variables of 32 bits, automatic mixed precision on PyTorch's side: "+compares)
	all, err := configs(b.emulate)
	if err != nil {
		return err
	}
	if b.emulate {
		all = all[:1]
	}
	return b.compared(ctx, all, precision.TF32, precision.BF16)
}

// compares says what tables of steps have.
const compares = "medians of up to 30 steps or 4 s. gomem's peaks of memory are its plans', " +
	"which the runs came to, to the byte, with the 32 MiB in which products work; PyTorch's are " +
	"the most its allocators had given out, of the GPU's memory and of pinned memory. What CUDA " +
	"graphs take is in no peak. Hidden is " +
	"what was hidden behind computing of the time that copies took and that could be, in a few " +
	"steps more, which were traced. Models are of the same sizes on both sides, the optimizers " +
	"of one kind; initial values and dropout's noise differ."

// compared writes the rows of models in precisions.
func (b *bench) compared(ctx context.Context, all []config, ins ...precision.Precision) error {
	b.head(4, "model", "precision", "limit of the GPU's memory", "side", "parameters", "step ms",
		"peak MiB", "host MiB", "loss", "hidden %")
	var cut []string
	for _, c := range all {
		for _, l := range b.caps() {
			for _, in := range ins {
				missing, err := b.compare(ctx, c, l, in)
				if err != nil {
					return err
				}
				cut = append(cut, missing...)
			}
		}
	}
	b.missed(cut)
	return nil
}

// sides are those that are measured under a limit. Where there is none, PyTorch's ways to need
// less memory are slower than the plain ones, and CUDA graphs save what they save, whatever the
// precision, as those in f32 show.
func (b *bench) sides(l limits, in precision.Precision) []string {
	switch {
	case b.emulate && l.device > 0: // which nothing holds PyTorch to on a processor
		return own
	case in.Plain():
		return slices.Concat(own, variants)
	case l.device == 0:
		return slices.Concat(own[:1], variants[:plain])
	}
	return slices.Concat(own[:1], variants)
}

// compare writes the rows of a model under a limit, and returns those for which there was no
// time. What fails is a row that says so, and others go on; if it is gomem, the command fails in
// the end.
func (b *bench) compare(ctx context.Context, c config, l limits,
	in precision.Precision) (cut []string, err error) {
	for _, side := range b.sides(l, in) {
		row := fmt.Sprintf("%s in %s under %s by %s", c.Kind, in, l, side)
		first := []string{c.Kind, string(in), l.String()}
		cells, err := b.once(ctx, row, func(ctx context.Context) (outcome, error) {
			r, err := b.stepsOf(ctx, c, l, in, side)
			return outcomeOf(r, side, err)
		})
		switch e, missing := errors.AsType[*torch.ErrMissing](err); {
		case missing:
			b.row(append(first, "PyTorch", "missing: "+e.Reason)...)
			return cut, nil
		case errors.Is(err, errTime):
			cut = append(cut, row)
		case err != nil:
			return cut, err
		}
		b.rowsOf(append(first, called(side)), cells)
	}
	return cut, nil
}

// called is what a table calls a side.
func called(side string) string {
	if slices.Contains(own, side) {
		return side
	}
	return "PyTorch " + side
}

// stepsOf runs a side's steps.
func (b *bench) stepsOf(ctx context.Context, c config, l limits, in precision.Precision,
	side string) (result, error) {
	n := b.steps()
	if !slices.Contains(own, side) {
		return b.peer(ctx, c, l, in, side)
	}
	n.eager = side != own[0]
	return trained(ctx, c, l, in, n)
}

// outcomeOf is the row of a result. An error is a row, too, unless PyTorch is missing.
func outcomeOf(r result, side string, err error) (o outcome, _ error) {
	if _, missing := errors.AsType[*torch.ErrMissing](err); missing {
		return o, err
	}
	if err != nil {
		r.Refused = "failed: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		if slices.Contains(own, side) {
			o.failed = err
		}
	}
	o.cells = [][]string{r.cells()}
	return o, nil
}

func (l limits) String() string {
	if l.device == 0 {
		return "none"
	}
	return size(int(l.device))
}

// cells are those of a row.
func (r result) cells() []string {
	cells := []string{strings.TrimPrefix(fmt.Sprint(r.Parameters), "0")}
	if r.Refused != "" {
		return append(cells, r.Refused)
	}
	hidden := "–"
	if r.Hidden > 0 {
		hidden = fmt.Sprintf("%.1f", 100*r.Hidden)
	}
	return append(cells, ms(r.Seconds), mib(r.Peak), mib(r.Host), fmt.Sprintf("%.4f", r.Loss),
		hidden)
}
