package compile

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan"
)

// TestGoldenPlans prints plans of small graphs. After a change run it with
// -rewrite and read the difference: commit it only if you understand what
// caused it and it is what you want.
//
//	plan nodes=18 partition=3 lookahead=1 strategy=dfs policy=thesis device=4096
func TestGoldenPlans(t *testing.T) {
	datadriven.Walk(t, "testdata/plans", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			m := randgraph.Synthetic(number(t, d, "nodes"))
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

func traffic(p *plan.Plan) string {
	var b strings.Builder
	tr := p.Traffic()
	for w := range plan.Why(len(tr)) {
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
