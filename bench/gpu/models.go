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
var variants = []string{"eager", "save_on_cpu", "checkpoint", "fsdp_offload"}

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
	return steps{warm: 3, least: 3, most: 30, seconds: 5}
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
const compares = "medians of up to 30 steps or 5 s. gomem's peaks of memory are its plans', " +
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
				cut = append(cut, b.compare(ctx, c, l, in)...)
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
	}
	b.missed(cut, "for want of time")
	return errors.Join(b.failed...)
}

// sides are those that are measured under a limit: where there is none, PyTorch's ways to need
// less memory are slower than the plain one, whatever the precision, as those in f32 show.
func (b *bench) sides(l limits, in precision.Precision) []string {
	sides := slices.Concat(own, variants)
	switch {
	case b.emulate && l.device > 0: // which nothing holds PyTorch to on a processor
		return own
	case l.device == 0 && !in.Plain():
		return sides[:len(own)+1]
	}
	return sides
}

// compare writes the rows of a model under a limit, and returns those for which there was no
// time. What fails is a row that says so, and others go on; if it is gomem, the command fails in
// the end.
func (b *bench) compare(ctx context.Context, c config, l limits,
	in precision.Precision) (cut []string) {
	for i, side := range b.sides(l, in) {
		what := fmt.Sprintf("%s in %s under %s", c.Kind, in, l)
		if !b.left() {
			cut = append(cut, what+" by "+side)
			continue
		}
		var r result
		var err error
		if i < len(own) {
			n := b.steps()
			n.eager = i > 0
			r, err = trained(ctx, c, l, in, n)
		} else {
			r, err = b.peer(ctx, c, l, in, side)
			side = "PyTorch " + side
		}
		first := []string{c.Kind, string(in), l.String()}
		if e, ok := errors.AsType[*torch.ErrMissing](err); ok {
			b.row(append(first, "PyTorch", "missing: "+e.Reason)...)
			return cut
		}
		if err != nil {
			r.Refused = "failed: " + err.Error()
			if i < len(own) {
				b.failed = append(b.failed, fmt.Errorf("%s: %w", what, err))
			}
		}
		b.row(append(append(first, side), r.cells()...)...)
	}
	return cut
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
		return append(cells, r.Refused, "", "", "", "")
	}
	hidden := ""
	if r.Hidden > 0 {
		hidden = fmt.Sprintf("%.1f", 100*r.Hidden)
	}
	return append(cells, ms(r.Seconds), mib(r.Peak), mib(r.Host), fmt.Sprintf("%.4f", r.Loss),
		hidden)
}
