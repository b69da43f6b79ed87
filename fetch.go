package gomem

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/plan"
)

// fetch is a value that a target fetches. A plan computes it, or it is in a leaf.
type fetch struct {
	at   plan.Fetch // in the plan's memory; in the bytes of an input or a constant
	kind graph.Kind // of what it is in
	leaf graph.Value
}

// fetchesOf finds the fetches of a target that is planned. inputs has the model's, by
// name.
func fetchesOf(t Target, p *plan.Plan, inputs map[string]graph.Value) []fetch {
	var out []fetch
	computed := p.Fetches
	for _, v := range t.Fetches {
		root, off := v.Resolve()
		f := fetch{kind: root.Node.Kind, leaf: root}
		f.at = plan.Fetch{Value: v.String(), Type: v.Type(), Ref: plan.Ref{Off: off}}
		switch f.kind {
		case graph.KindCompute:
			f.at, computed = computed[0], computed[1:]
		case graph.KindInput:
			f.leaf = inputs[root.Node.Name]
		case graph.KindVariable:
			i := slices.IndexFunc(p.Variables, func(b plan.Binding) bool {
				return b.Node == root.Node.ID
			})
			f.at.Ref.Slot = p.Variables[i].Slot
		}
		out = append(out, f)
	}
	return out
}

// fetchLeaves puts the fetches that leaves have into out, before a step.
func (t *target) fetchLeaves(ctx context.Context, out []Tensor, feeds Feeds) error {
	for i, f := range t.fetches {
		switch f.kind {
		case graph.KindInput:
			out[i] = f.part(feeds[f.leaf])
		case graph.KindConstant:
			out[i] = f.part(f.leaf.Node.Data)
		case graph.KindVariable:
			if err := t.exec.Settle(ctx, f.leaf.Node.Name); err != nil {
				return fmt.Errorf("fetch %s: %w", f.at.Value, err)
			}
			if err := t.fetch(&out[i], f); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetchResults puts the fetches that the plan has computed into out, after a step.
func (t *target) fetchResults(out []Tensor) error {
	for i, f := range t.fetches {
		if f.kind == graph.KindCompute {
			if err := t.fetch(&out[i], f); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetch copies a value out of the plan's memory.
func (t *target) fetch(out *Tensor, f fetch) error {
	*out = tensor.New(f.at.Type)
	if err := t.exec.Fetch(f.at, out.Data); err != nil {
		return fmt.Errorf("fetch %s: %w", f.at.Value, err)
	}
	return nil
}

// part is a copy of the part of a leaf's bytes that is fetched.
func (f fetch) part(leaf Tensor) Tensor {
	out := tensor.New(f.at.Type)
	copy(out.Data, leaf.Data[f.at.Ref.Off:])
	return out
}
