package compile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/go-units"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/space"
)

// ErrOutOfMemory says that no plan fits a budget.
type ErrOutOfMemory struct {
	Target string
	Space  string
	Need   int64 // the smallest budget that works, all else being equal
	Budget int64
	At     string        // the operation at which the most bytes are live
	Op     string        // its operation's name
	In     []string      // its operands and results, largest first
	Live   []plan.Holder // the ten largest holders at that point
	Hint   string        // what would help
}

// Error is one line: what is needed, what sets it, what would help.
func (e *ErrOutOfMemory) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s needs %s (%d bytes) of %s memory, the budget is %s", e.Target,
		units.BytesSize(float64(e.Need)), e.Need, e.Space, units.BytesSize(float64(e.Budget)))
	fmt.Fprintf(&b, "; %s (%s) sets it: %s", e.At, e.Op, strings.Join(e.In, ", "))
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	return b.String()
}

// outOfMemory explains why none of the plans fits: it reports the space that is
// short in the plan that comes closest.
func outOfMemory(ctx context.Context, g *graph.Graph, t Target, o Options,
	rungs []*plan.Plan) error {
	best, space := closest(rungs)
	s := best.Spaces[space]
	e := &ErrOutOfMemory{Target: t.Name, Space: s.Name, Need: s.Bytes, Budget: s.Budget}
	peak := best.Peak(space, 10)
	n := g.Node(best.Steps[peak.Step].Node)
	e.At, e.Op = n.Name, n.OpName()
	e.In = operands(n)
	e.Live = peak.Largest
	e.Hint = advice(ctx, g, t, o, space)
	return e
}

// closest finds the plan with the least device peak among those within the host
// budget, or else the one with the least host peak.
func closest(rungs []*plan.Plan) (*plan.Plan, space.ID) {
	var best *plan.Plan
	for _, p := range rungs {
		if within(p, space.Host) && (best == nil ||
			p.Spaces[space.Device].Bytes < best.Spaces[space.Device].Bytes) {
			best = p
		}
	}
	if best != nil {
		return best, space.Device
	}
	best = slices.MinFunc(rungs, func(a, b *plan.Plan) int {
		return cmp.Compare(a.Spaces[space.Host].Bytes, b.Spaces[space.Host].Bytes)
	})
	return best, space.Host
}

func within(p *plan.Plan, s space.ID) bool { return p.Spaces[s].Bytes <= p.Spaces[s].Budget }

// operands are the operands and results of a node, largest first.
func operands(n *graph.Node) []string {
	var values []graph.Value
	for _, v := range n.In {
		if !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	for i := range n.Out {
		values = append(values, n.Value(i))
	}
	slices.SortStableFunc(values, func(a, b graph.Value) int {
		return cmp.Compare(b.Type().Bytes(), a.Type().Bytes())
	})
	var out []string
	for _, v := range values[:min(3, len(values))] {
		out = append(out, fmt.Sprintf("%s %s %s", v, v.Type(),
			units.BytesSize(float64(v.Type().Bytes()))))
	}
	return out
}

// advice tries what a user could change, the gentlest first, and names the
// first that works.
func advice(ctx context.Context, g *graph.Graph, t Target, o Options, short space.ID) string {
	if short == space.Host {
		return "raise --host-memory or use a smaller model or batch"
	}
	for _, try := range remedies(o) {
		p, _, err := decide(ctx, g, t, try.options)
		if err == nil && fits(lower(p, try.options, lowest(try.options))) {
			return try.flag + " would fit"
		}
	}
	return "use a smaller batch or model, or raise --device-memory"
}

// lowest is the last rung, which needs the least as a rule.
func lowest(o Options) Rung {
	list := rungs(o)
	return list[len(list)-1]
}

type remedy struct {
	flag    string
	options Options
}

func remedies(o Options) []remedy {
	var out []remedy
	add := func(flag string, change func(*Options)) {
		next := o
		change(&next)
		next.EnsureDefaults()
		out = append(out, remedy{flag, next})
	}
	switch {
	case !o.Policy.Partitioned():
		add("--policy thesis", func(n *Options) { *n = Options{DeviceBytes: o.DeviceBytes, HostBytes: o.HostBytes, Streams: o.Streams} })
	case o.NoPlacement || o.NoSwap:
		add("leaving out --no-placement and --no-swap", func(n *Options) {
			n.NoPlacement, n.NoSwap = false, false
		})
	}
	for _, size := range []int{50, 20, 5, 1} {
		if o.Policy.Partitioned() && size < o.Partition {
			add(fmt.Sprintf("--partition %d", size), func(n *Options) { n.Partition = size })
		}
	}
	if o.Policy.Partitioned() && o.Lookahead > 1 {
		add("--lookahead 1", func(n *Options) { n.Lookahead = 1 })
	}
	return out
}
