package command

import (
	"cmp"
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

// rankPeak is what a process of a mesh needs, or the worker of one of several devices.
type rankPeak struct {
	Rank   int    `json:"rank"`
	On     string `json:"device,omitempty"` // of several
	Device int64  `json:"device_peak_bytes"`
	Host   int64  `json:"host_peak_bytes"`
}

// name is what it is called.
func (r rankPeak) name() string { return cmp.Or(r.On, fmt.Sprintf("process %d", r.Rank)) }

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

// ofRanks plans what the other processes of a mesh do, or the workers of other devices, if there
// are several, and lists what all need; nothing if there is one. The error names whom it is about.
func ofRanks(ctx context.Context, w io.Writer, b *built, o gomem.Options, first planned,
	devices []string) (list []rankPeak, err error) {
	n := max(processes(o), len(devices))
	if n == 1 {
		return nil, nil
	}
	for rank := range n {
		p, x := first, rankPeak{Rank: rank}
		if len(devices) > 1 {
			x.On = devices[rank]
		}
		if rank > 0 {
			if p, err = ofRank(ctx, w, b, o, x); err != nil {
				return nil, fmt.Errorf("%s: %w", x.name(), err)
			}
		}
		x.Device, x.Host = p.Peak(space.Device), p.Peak(space.Host)
		list = append(list, x)
	}
	return list, nil
}

// ofRank plans what one does that is not the first.
func ofRank(ctx context.Context, w io.Writer, b *built, o gomem.Options, x rankPeak) (planned,
	error) {
	if processes(o) > 1 {
		o.Rank = x.Rank
	}
	if x.On != "" {
		var err error
		o.Machine = nil // that of the first device
		if o, err = b.priced(o, x.On); err == nil {
			o, err = b.measured(ctx, w, o, func() {})
		}
		if err != nil {
			return planned{}, err
		}
	}
	return planAll(ctx, w, b, o)
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
	of := "process 0"
	if on := x.Ranks[0].On; on != "" {
		of = on + ", the first"
	}
	fmt.Fprintf(w, "\nThis is the plan of %s of %d.\n", of, len(x.Ranks))
	alike := x.Ranks[0].On == "" // devices are named
	for _, r := range x.Ranks {
		alike = alike && r.Device == x.Ranks[0].Device && r.Host == x.Ranks[0].Host
	}
	for _, r := range x.Ranks {
		if alike {
			fmt.Fprintf(w, "every process: device %s, host %s\n", size(r.Device), size(r.Host))
			break
		}
		fmt.Fprintf(w, "%s: device %s, host %s\n", r.name(), size(r.Device), size(r.Host))
	}
	if !x.apart { // they exchange gradients
		return
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
