package planner

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
)

// TestGoldenPlans prints plans of small graphs. After a change run it with
// -rewrite and read the difference: commit it only if you understand what
// caused it and it is what you want.
//
//	plan nodes=18 partition=3 lookahead=1 strategy=dfs policy=thesis device=4096
//	plan graph=views partition=3
func TestGoldenPlans(t *testing.T) {
	datadriven.Walk(t, "testdata/plans", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			m := goldenModel(t, d)
			o := Options{
				Policy: Policy(word(d, "policy")), Strategy: partition.Strategy(word(d,
					"strategy")),
				Partition: number(t, d, "partition"), Lookahead: number(t, d, "lookahead"),
				Streams: number(t, d, "streams"), DeviceBytes: int64(number(t, d, "device")),
				NoPlacement: d.HasArg("no-placement"), NoSwap: d.HasArg("no-swap"),
			}
			r, err := Compile(context.Background(), m.Graph, training(m), o)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			if d.Cmd == "traffic" {
				return traffic(r.Plan)
			}
			var b strings.Builder
			if _, err := r.Plan.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			return strings.ReplaceAll(b.String(), " of 9223372036854775807", "")
		})
	})
}

// goldenModel is the graph of a golden plan: synthetic, of so many nodes, or the
// one of views.
func goldenModel(t *testing.T, d *datadriven.TestData) *randgraph.Model {
	if word(d, "graph") == "views" {
		return views()
	}
	return randgraph.Synthetic(number(t, d, "nodes"))
}

// views is a step with parts of a packed variable, a view of a view, operations
// that work in place, scratch, and half of a value fetched.
func views() *randgraph.Model {
	g := graph.New()
	x, lr := g.Input("x", tensor.Of(graph.F32, 4, 6)), g.Input("lr", tensor.Of(graph.F32))
	w := g.Variable("w", tensor.Of(graph.F32, 2, 6, 6), graph.Init{})
	scale := g.Variable("scale", tensor.Of(graph.F32, 6), graph.Init{Scale: 1})
	parts := ops.Unstack(w)
	h := ops.Softmax(ops.Relu(ops.MatMul(x, parts[1])))
	rows := ops.Split(ops.ReshapeSizes(h, 2, 12), 2)
	y := ops.RMSNorm(ops.MatMul(ops.Concat(0, ops.ReshapeSizes(rows[1], 2, 6),
		ops.ReshapeSizes(rows[0], 2, 6)), parts[0]), scale, 1e-6)
	loss := ops.Mean(ops.Square(y))
	m := &randgraph.Model{Graph: g, Inputs: []graph.Value{x, lr},
		Fetches: []graph.Value{loss, ops.Split(y, 2)[1]}}
	for i, dw := range autodiff.Grad(loss, w, scale) {
		v := []graph.Value{w, scale}[i]
		m.Updates = append(m.Updates, ops.SGD(v, dw, lr).ID)
	}
	return m
}

func traffic(p *plan.Plan) string {
	var b strings.Builder
	tr := p.Traffic()
	for w := range space.Reason(len(tr)) {
		fmt.Fprintf(&b, "%s %d\n", w, tr[w])
	}
	fmt.Fprintf(&b, "in %d out %d launches %d partitions %d\n", tr.In(), tr.Out(), p.Launches(),
		p.Parts)
	return b.String()
}

func word(d *datadriven.TestData, key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return a.Vals[0]
		}
	}
	return ""
}

func number(t *testing.T, d *datadriven.TestData, key string) int {
	w := word(d, key)
	if w == "" {
		return 0
	}
	n, err := strconv.Atoi(w)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
