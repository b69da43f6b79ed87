package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// rankPeak is what a process of a mesh needs.
type rankPeak struct {
	Rank   int   `json:"rank"`
	Device int64 `json:"device_peak_bytes"`
	Host   int64 `json:"host_peak_bytes"`
}

// onWire is what a process of a mesh sends in a training step by exchanges of a kind, the
// mean over processes.
type onWire struct {
	Kind   mesh.ConversionKind `json:"kind"`
	Count  int                 `json:"count"`
	Bytes  int64               `json:"bytes"`
	AtMost bool                `json:"at_most,omitempty"`
}

// processes is how many a plan is one of.
func processes(o gomem.Options) int {
	if o.Mesh == nil {
		return 1
	}
	return o.Mesh.Mesh.Processes()
}

// meshed is what the graph is divided over where each of a number of processes is one of a
// mesh, and refuses what these cannot do; nil where a mesh has slices alone, or is none.
func (f planFlags) meshed(size int, unfit ...option) (*mesh.Spec, error) {
	f.size = size
	spec, err := f.mesh()
	if err != nil || spec == nil || spec.Mesh.Processes() == 1 {
		return nil, err
	}
	if name := firstGiven(unfit); name != "" {
		return nil, usagef("--%s and the processes of --mesh %s can't be used together yet: leave "+
			"one of them out", name, f.Mesh)
	}
	return spec, nil
}

// exchanging is the graph whose exchanges a process takes part in: the model's, or its part of
// it.
func (b *built) exchanging(o gomem.Options) (*graph.Graph, error) {
	if processes(o) == 1 {
		return b.model.Graph, nil
	}
	plain := o.Planning()
	plain.NoFusion = true
	all, err := planner.Variants(b.model.Graph, plain, b.targets...)
	if err != nil {
		return nil, inFlags(err)
	}
	return all[0].Graph, nil
}

// ofRanks plans what the other processes of a mesh do, and lists what all need; nothing if
// there is one. The error names the process that it is about.
func ofRanks(ctx context.Context, w io.Writer, b *built, o gomem.Options,
	first planned) (list []rankPeak, err error) {
	n := processes(o)
	if n == 1 {
		return nil, nil
	}
	for rank := range n {
		p := first
		if o.Rank = rank; rank > 0 {
			if p, err = planAll(ctx, w, b, o); err != nil {
				return nil, fmt.Errorf("process %d: %w", rank, err)
			}
		}
		list = append(list, rankPeak{rank, p.Peak(space.Device), p.Peak(space.Host)})
	}
	return list, nil
}

// wireOf is what a process sends in a training step, by kind.
func wireOf(b *built, p planned) (list []onWire) {
	if p.Mesh == nil {
		return nil
	}
	t := b.targets[0]
	for _, x := range p.Mesh.Traffic(t.Fetches, t.Updates) {
		list = append(list, onWire{x.Kind, x.Count, x.Bytes, x.Kind.Some()})
	}
	return list
}

// mostOf are the largest peaks of all processes.
func mostOf(list []rankPeak) (most rankPeak) {
	for _, x := range list {
		most.Device, most.Host = max(most.Device, x.Device), max(most.Host, x.Host)
	}
	return most
}

// printRanks writes what each process of a mesh needs, in one line if it is the same, and
// what it sends.
func (x explanation) printRanks(w io.Writer) {
	if len(x.Ranks) == 0 {
		return
	}
	fmt.Fprintf(w, "\nThis is the plan of process 0 of %d.\n", len(x.Ranks))
	alike := true
	for _, r := range x.Ranks {
		alike = alike && r.Device == x.Ranks[0].Device && r.Host == x.Ranks[0].Host
	}
	for _, r := range x.Ranks {
		if alike {
			fmt.Fprintf(w, "every process: device %s, host %s\n", size(r.Device), size(r.Host))
			break
		}
		fmt.Fprintf(w, "process %d: device %s, host %s\n", r.Rank, size(r.Device), size(r.Host))
	}
	var kinds []string
	total, most := int64(0), ""
	for _, k := range x.Wire {
		own := ""
		if k.AtMost {
			own, most = "at most ", "at most "
		}
		kinds = append(kinds, fmt.Sprintf("%s %s%s in %d", k.Kind, own, size(k.Bytes), k.Count))
		total += k.Bytes
	}
	fmt.Fprintf(w, "each sends %s%s a step", most, size(total))
	if len(kinds) > 0 {
		fmt.Fprintf(w, ":\n  %s", strings.Join(kinds, "\n  "))
	}
	fmt.Fprintln(w)
}
