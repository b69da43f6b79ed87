package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
)

// anyMachines are the machines that are built in, one of drawn rates, and one that was measured
// to take anything for each operation of a graph; in the short form one of the first, and the last.
func anyMachines(t *rapid.T, g *graph.Graph) map[string]machine.Machine {
	all := map[string]machine.Machine{"default": machine.Default()}
	for _, name := range machine.Builtin() {
		p, err := machine.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = p
	}
	rate := func(of string) float64 { return rapid.Float64Range(1e3, 1e15).Draw(t, of) }
	drawn := &machine.Profile{Name: "drawn",
		Device: machine.Rates{FLOPs: rate("FLOPs"), Bytes: rate("bytes"), Launch: 10},
		Host:   machine.Rates{FLOPs: rate("FLOPs"), Bytes: rate("bytes"), Launch: 10},
		In:     rate("in"), Out: rate("out"), DiskRead: rate("read"), DiskWrite: rate("write"),
		ElementBytes: 4}
	local := &machine.Local{Profile: drawn, Measured: map[string]time.Duration{}}
	for _, n := range g.Nodes() {
		if n.Executes() {
			local.Measured[machine.Signature(n)] = time.Duration(
				rapid.Int64Range(1, 1e9).Draw(t, "measured"))
		}
	}
	if !longtest.Enabled() {
		return map[string]machine.Machine{machine.H200: all[machine.H200], "measured": local}
	}
	all["drawn"], all["measured"] = drawn, local
	return all
}

// grantedBy is what of memories is granted at least by options: of each without a limit of the
// others, of the others beside that, and what a byte less than both is refused for.
func grantedBy(t rapid.TB, g *graph.Graph, o Options, targets []Target, of ...space.ID) string {
	ctx, said := context.Background(), ""
	least := func(o Options, of space.ID) int64 {
		n, err := LeastOf(ctx, g, o, of, targets...)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, of := range of {
		alone, beside := least(o, of), o
		*beside.Budget(of) = alone
		said += fmt.Sprintf("%s from %d, with %d of the %s; ", of, alone,
			least(beside, other(of)), other(of))
		*beside.Budget(of)--
		if err := Fits(ctx, g, beside, targets...); err != nil {
			said += err.Error() + "\n"
		}
	}
	return said
}

// checkPrices demands that machines differ in nothing that is refused.
func checkPrices(t rapid.TB, g *graph.Graph, o Options, targets []Target,
	machines map[string]machine.Machine, of ...space.ID) {
	want := ""
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		o.Machine = machines[name]
		have := grantedBy(t, g, o, targets, of...)
		if want == "" {
			want = have
		}
		if have != want {
			t.Fatalf("%s: on %s\n%s\nwant\n%s", o, name, have, want)
		}
	}
}

// TestPricesRefuseNothing: what a machine takes decides what is fast, and nothing of what is
// refused: whatever the prices, of any graph each memory's minimum is the same, and so are
// refusals, to the last word.
func TestPricesRefuseNothing(t *testing.T) {
	draws(t, 1, 5, func(t *rapid.T) {
		g, targets := anyTargets(t)
		o := anyOptions(t)
		o.Policy = rapid.SampledFrom([]Policy{Auto, Auto, Auto, Thesis}).Draw(t, "of them")
		if rapid.IntRange(0, 3).Draw(t, "disk") == 0 {
			o.DiskBytes = 1 << 40
		}
		of := []space.ID{space.Device, space.Host}
		if !longtest.Enabled() {
			of = []space.ID{rapid.SampledFrom(of).Draw(t, "space")}
		}
		checkPrices(t, g, o, targets, anyMachines(t, g), of...)
	})
}

// TestPricesRefuseNoModel: so of a model whose candidates that compute segments again need the
// least of the host.
func TestPricesRefuseNoModel(t *testing.T) {
	longtest.Skip(t)
	g, target := deep(t)
	machines := rapid.Custom(func(t *rapid.T) map[string]machine.Machine {
		return anyMachines(t, g)
	}).Example(1)
	checkPrices(t, g, Options{Policy: Auto}, []Target{target}, machines, space.Device, space.Host)
}
