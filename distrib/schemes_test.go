package distrib_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib"
)

func noSum(context.Context, distrib.Group, []float32) error { return nil }

// TestSchemesAreWhatTheirPapersSay: policies and their numbers.
func TestSchemesAreWhatTheirPapersSay(t *testing.T) {
	three := 3
	for _, c := range []struct {
		name string
		o    distrib.SchemeOptions
		want distrib.Plan
	}{
		{"bsp", distrib.SchemeOptions{}, distrib.Plan{Topology: &distrib.Shards{},
			Consistency: distrib.BSP{}}},
		{"ssp", distrib.SchemeOptions{Staleness: &three, Rule: "adam"}, distrib.Plan{
			Topology: &distrib.Shards{}, Consistency: distrib.SSP{S: 3}, Rule: &distrib.Adam{}}},
		{"bosen", distrib.SchemeOptions{Bandwidth: 200e6, Order: "absmag",
			Rule: "adarevision:0.08", Filter: "fp16"}, distrib.Plan{Topology: &distrib.Shards{},
			Consistency: distrib.SSP{S: 2}, Rule: &distrib.AdaRevision{Alpha: 0.08},
			Up:    distrib.Rounding{As: distrib.F16},
			Pacer: &distrib.LeakyBucket{Mbps: 200, Order: distrib.AbsMag, Window: 8}}},
		{"bosen", distrib.SchemeOptions{}, distrib.Plan{Topology: &distrib.Shards{},
			Consistency: distrib.SSP{S: 2},
			Pacer:       &distrib.LeakyBucket{Mbps: 40, Order: distrib.RelMag, Window: 8}}},
		{"pf", distrib.SchemeOptions{Filter: "dvf:1e-3:5e-3", Staleness: &three}, distrib.Plan{
			Topology: &distrib.Shards{Tree: &distrib.Trees{}}, Down: distrib.Deltas,
			Consistency: distrib.SSP{S: 3}, Up: distrib.DVF{Low: 1e-3, Up: 5e-3},
			DownF: distrib.DVF{Low: 1e-3, Up: 5e-3}}},
		{"bsp", distrib.SchemeOptions{Filter: "powersgd:2,fp16"}, distrib.Plan{
			Topology: &distrib.Shards{Block: 4 << 20}, Consistency: distrib.BSP{},
			Up: distrib.Chain{&distrib.PowerSGD{Rank: 2}, distrib.Rounding{As: distrib.F16}}}},
		{"fabric", distrib.SchemeOptions{}, distrib.Plan{Topology: &distrib.Shards{},
			Consistency: distrib.Async{Delay: 30}}},
		{"fabric", distrib.SchemeOptions{Delay: 7, Rule: "adadelay:2"}, distrib.Plan{
			Topology: &distrib.Shards{}, Consistency: distrib.Async{Delay: 7},
			Rule: &distrib.AdaDelay{C: 2}}},
		{"svb", distrib.SchemeOptions{}, distrib.Plan{Topology: &distrib.All{},
			Consistency: distrib.SSP{}}},
		{"orpheus", distrib.SchemeOptions{Multicast: 2, Select: 9}, distrib.Plan{
			Topology: &distrib.RandomMulticast{Q: 2}, Up: &distrib.SVSelect{C: 9},
			Consistency: distrib.SSP{S: 4}}},
		{"orpheus", distrib.SchemeOptions{Multicast: 2, Receivers: "turns"}, distrib.Plan{
			Topology: &distrib.TurnMulticast{Q: 2}, Up: &distrib.SVSelect{},
			Consistency: distrib.SSP{S: 4}}},
		{"orpheus", distrib.SchemeOptions{Seed: 4}, distrib.Plan{
			Topology: &distrib.RandomMulticast{Seed: 4}, Up: &distrib.SVSelect{Seed: 4},
			Consistency: distrib.SSP{S: 4}}},
	} {
		got, err := distrib.ParseScheme(c.name, c.o)
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: %+v %v, want %+v", c.name, got, err, c.want)
		}
	}
}

// TestEverySchemeIsThere, with a line about it, and each call makes policies of its own.
func TestEverySchemeIsThere(t *testing.T) {
	names, about := distrib.Schemes()
	for i, name := range names {
		o := distrib.SchemeOptions{Reduce: noSum}
		a, err := distrib.ParseScheme(name, o)
		if err != nil || about[i] == "" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b, _ := distrib.ParseScheme(name, o)
		if a == b || a.Topology == b.Topology || a.Pacer != nil && a.Pacer == b.Pacer {
			t.Errorf("%s: two nodes would share state", name)
		}
		ps := []*distrib.Param{{Name: "w", Rows: 4, Cols: 4}}
		if err := a.Bind(viewOf(4), ps); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemesSayWhatIsWrong(t *testing.T) {
	one, less := 1, -1
	for _, c := range []struct {
		name string
		o    distrib.SchemeOptions
		want string
	}{
		{"horovod", distrib.SchemeOptions{}, `no scheme "horovod": there are bsp, ssp, async`},
		{"bsp", distrib.SchemeOptions{Staleness: &one}, "bsp has no use for option staleness"},
		{"ssp", distrib.SchemeOptions{Staleness: &less}, "staleness -1 is negative"},
		{"pf", distrib.SchemeOptions{Bandwidth: 1}, "pf has no use for option bandwidth"},
		{"pf", distrib.SchemeOptions{Order: "absmag"}, "pf has no use for option order"},
		{"bosen", distrib.SchemeOptions{Order: "best"}, `no order "best": there are random, rou`},
		{"async", distrib.SchemeOptions{Order: "absmag"}, "option order needs option bandwidth"},
		{"pf", distrib.SchemeOptions{Multicast: 3}, "pf has no use for option multicast"},
		{"svb", distrib.SchemeOptions{Select: 3}, "svb has no use for option select"},
		{"orpheus", distrib.SchemeOptions{Select: 3, Filter: "fp16"}, "leave one out"},
		{"orpheus", distrib.SchemeOptions{Multicast: -1}, "updates to -1 nodes"},
		{"async", distrib.SchemeOptions{Delay: 3}, "async has no use for option delay"},
		{"fabric", distrib.SchemeOptions{Delay: -3}, "updates -3 late"},
		{"svb", distrib.SchemeOptions{Every: 3}, "svb has no use for option every"},
		{"pf", distrib.SchemeOptions{Rule: "adam"}, "pf has no use for option rule"},
		{"ring", distrib.SchemeOptions{Filter: "fp16", Reduce: noSum}, "no use for option filter"},
		{"ring", distrib.SchemeOptions{}, "ring needs a way to add up over workers"},
		{"orpheus", distrib.SchemeOptions{Receivers: "fixed"}, "is for scheme lossy"},
		{"orpheus", distrib.SchemeOptions{Receivers: "all"}, "there are random, turns and fixed"},
		{"svb", distrib.SchemeOptions{Receivers: "turns"}, "no use for option receivers"},
		{"lossy", distrib.SchemeOptions{}, "lossy needs a way to add up over workers"},
		{"bosen", distrib.SchemeOptions{Bandwidth: -5}, "bandwidth -5 is negative"},
		{"bosen", distrib.SchemeOptions{Bandwidth: math.NaN()}, "bandwidth NaN is negative"},
		{"easgd", distrib.SchemeOptions{Every: -1, Reduce: noSum}, "averages every -1 clocks"},
		{"bsp", distrib.SchemeOptions{Rule: "adam:0"}, `rule "adam:0": 0 is not a positive number`},
		{"bsp", distrib.SchemeOptions{Rule: "lars"}, `no rule "lars": there are add`},
		{"bsp", distrib.SchemeOptions{Filter: "dvf"}, `filter "dvf" is not dvf:DELTA[:`},
		{"bsp", distrib.SchemeOptions{Filter: "fp16:3"}, `filter "fp16:3" is not fp16`},
		{"bsp", distrib.SchemeOptions{Filter: "zip"}, `no filter "zip": there are dvf:DELTA`},
		{"bsp", distrib.SchemeOptions{Filter: "topk:2"}, `filter "topk:2": 2 is no fraction`},
		{"bsp", distrib.SchemeOptions{Filter: "topk:x"}, `filter "topk:x" is not topk:FRACTION`},
		{"bsp", distrib.SchemeOptions{Filter: "fp16,"}, `no filter ""`},
		{"bsp", distrib.SchemeOptions{Filter: "powersgd:1.5"}, "1.5 is no whole number"},
		{"bsp", distrib.SchemeOptions{Filter: "svs:0"}, "0 is no whole number"},
		{"bsp", distrib.SchemeOptions{Filter: "dvf:-1"}, "-1 is not a positive number"},
		{"bsp", distrib.SchemeOptions{Filter: "dvf:1:2:0"}, "0 is not a positive number"},
		{"bsp", distrib.SchemeOptions{Filter: "dvf:1:2:3:4"}, "is not dvf:DELTA[:"},
		{"bsp", distrib.SchemeOptions{Filter: "dvf:NaN"}, "NaN is not a positive number"},
		{"ssp", distrib.SchemeOptions{Rule: "momentum:1"}, "momentum 1 is not in [0, 1)"},
	} {
		_, err := distrib.ParseScheme(c.name, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %+v: %v, want %s", c.name, c.o, err, c.want)
		}
	}
}

func TestFiltersHaveNames(t *testing.T) {
	for text, want := range map[string]distrib.Filter{
		"dvf:1e-3":          distrib.DVF{Low: 1e-3, Up: 1e-3},
		"dvf:1e-3:5e-3:0.5": distrib.DVF{Low: 1e-3, Up: 5e-3, Fast: 5e5},
		"topk:0.01":         distrib.TopK{Frac: 0.01},
		"powersgd:4":        &distrib.PowerSGD{Rank: 4},
		"svs":               &distrib.SVSelect{},
		"bf16":              distrib.Rounding{As: distrib.BF16},
		"topk:0.01, fp16": distrib.Chain{distrib.TopK{Frac: 0.01},
			distrib.Rounding{As: distrib.F16}},
	} {
		if got, err := distrib.ParseFilter(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// TestPickByBytes: large weights of few samples as factors, small ones and convolutions,
// whose samples are many, dense; and what is picked has the least traffic.
func TestPickByBytes(t *testing.T) {
	for _, c := range []struct {
		j, k, s, p, v int
		want          distrib.Way
	}{
		{4096, 4096, 32, 8, 8, distrib.ByFactors},     // VGG's fc7
		{512, 4608, 25088, 8, 8, distrib.ByServers},   // a convolution, by im2col
		{1, 4096, 0, 8, 8, distrib.ByServers},         // a bias
		{4096, 4096, 32, 200, 200, distrib.ByServers}, // too many workers
		{1000, 1000, 0, 8, 2, distrib.ByRing},         // few servers
	} {
		got := distrib.PickByBytes(c.j, c.k, c.s, c.p, c.v)
		if got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		for _, w := range []distrib.Way{distrib.ByServers, distrib.ByRing, distrib.ByFactors} {
			less := w.Traffic(c.j, c.k, c.s, c.p, c.v) < got.Traffic(c.j, c.k, c.s, c.p, c.v)
			if less && !(w == distrib.ByFactors && c.s == 0) {
				t.Errorf("%+v: %v has less traffic than %v", c, w, got)
			}
		}
	}
	// Petuum's survey, 2: of 8 workers that serve too, a weight of 2 x 3 of one sample.
	for w, want := range map[distrib.Way]float64{distrib.ByServers: 2 * 6 * 14. / 8,
		distrib.ByRing: 4 * 6 * 7. / 8, distrib.ByFactors: 2 * 7 * 5} {
		if got := w.Traffic(2, 3, 1, 8, 8); got != want {
			t.Errorf("%v: %v numbers, want %v", w, got, want)
		}
	}
}

func TestHybrid(t *testing.T) {
	ps := []*distrib.Param{{Name: "fc", Rows: 4096, Cols: 4096}, {Name: "bias", Rows: 1, Cols: 9},
		{Name: "fc2", Rows: 4096, Cols: 1024}}
	samples := func(p *distrib.Param) int {
		if p.Rows == 1 {
			return 0
		}
		return 32
	}
	if err := distrib.Hybrid(ps, viewOf(4), samples, noSum); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%T %T", ps[0].Sync.Topology, ps[1].Sync.Topology)
	if got != "*distrib.All *distrib.Shards" || ps[0].Sync != ps[2].Sync {
		t.Error(got)
	}
	if err := distrib.Hybrid(ps, distrib.View{}, samples, noSum); err == nil {
		t.Error("a hybrid of nobody")
	}
}

// TestDrained: what the workers of a node did on their own is in the replica when it is
// averaged.
func TestDrained(t *testing.T) {
	p := &distrib.Param{Rows: 1, Cols: 2, Data: []float32{1, 2}}
	r := &distrib.Round{Params: []*distrib.Param{p, {Rows: 1, Cols: 1, Data: []float32{5}}},
		Drain: func(ref distrib.Ref) distrib.Update {
			if ref.Param == 0 {
				return distrib.Dense{10, 20}
			}
			return nil
		}}
	var seen []float32
	look := distrib.Periodic{Every: 7, Do: func(_ context.Context, r *distrib.Round) error {
		seen = append(append(seen, r.Params[0].Data...), r.Params[1].Data...)
		return nil
	}}
	d := distrib.Drained(look)
	if err := d.Do(t.Context(), r); err != nil || d.Every != 7 ||
		!reflect.DeepEqual(seen, []float32{11, 22, 5}) {
		t.Errorf("%v every %d: %v", seen, d.Every, err)
	}
}
