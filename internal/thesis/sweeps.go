package thesis

import (
	"context"
	"fmt"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/simulate"
)

// figure64 is the model of figure 6.4: the MoE at TensorFlow's largest batch.
func (r *runner) figure64() (*models.Model, error) { return moe.build(r.Size, 4) }

// timeline is figure 6.4: the device's memory in the course of a step, in the time
// that it takes on the thesis' machine.
func (r *runner) timeline(ctx context.Context) (Table, error) {
	t := Table{
		Title: fmt.Sprintf("Figure 6.4: device memory in the course of a step, MoE, 4 pairs, %s",
			r.Size),
		Header: []string{"", "thesis GB", "of vanilla's", "peak MiB", "of vanilla's"},
	}
	f := figure{file: "fig6.4", title: t.Title,
		x: "ms, simulated on the thesis' machine", y: "MiB"}
	m, err := r.figure64()
	if err != nil {
		return t, err
	}
	prices, err := r.titan()
	if err != nil {
		return t, err
	}
	var first float64
	for _, s := range []struct {
		name    string
		thesis  float64
		options planner.Options
	}{{"vanilla", 9.5, vanilla()}, {"+partition", 6.8, partitioned(20)},
		{"+placement", 3.3, placed(20)}} {
		c, err := planner.Compile(ctx, m.Graph, objective(m), s.options)
		if err != nil {
			return t, err
		}
		peak := float64(c.Plan.Spaces[space.Device].Bytes) / mib
		if first == 0 {
			first = peak
		}
		t.row(s.name, s.thesis, s.thesis/9.5, peak, peak/first)
		line, err := curve(s.name, m, c.Plan, prices)
		if err != nil {
			return t, err
		}
		f.series = append(f.series, line)
	}
	t.figures = []figure{f}
	return t, nil
}

// titan is the thesis' machine. For the replica, which does fewer operations a byte,
// what moves bytes is as much faster, so that copies weigh what they did there.
func (r *runner) titan() (*machine.Profile, error) {
	p, err := machine.Named(machine.TitanXThesis)
	if err == nil && r.Size == replica {
		p.In, p.Out = width*p.In, width*p.Out
		p.Host.FLOPs, p.Host.Bytes = width*p.Host.FLOPs, width*p.Host.Bytes
	}
	return p, err
}

// curve is the device's memory over the time of a step: the most bytes in each of
// equal parts of it.
func curve(name string, m *models.Model, p *plan.Plan, prices *machine.Profile) (series, error) {
	var nodes []*graph.Node
	for _, s := range p.Steps {
		if _, launch := s.Do.(plan.Launch); launch {
			nodes = append(nodes, m.Graph.Node(s.Node))
		}
	}
	times := simulate.Simulate(p, m.Graph, prices.For(m.Name, nodes))
	x, err := profile.New(profile.Input{Plan: p, Graph: m.Graph,
		Predicted: profile.Simulated(times)})
	if err != nil {
		return series{}, err
	}
	out := series{name: name}
	line := x.Report.Spaces[space.Device].Predicted
	for i, b := range line.Bytes {
		out.x = append(out.x, float64(i)*line.StepMS/float64(len(line.Bytes)))
		out.y = append(out.y, float64(b)/mib)
	}
	return out, nil
}

// sweep is a model under options that differ in one respect.
func (r *runner) sweep(ctx context.Context, t *Table, m *models.Model, names []any,
	options []planner.Options) (peaks, seconds []float64, err error) {
	sides := []side{{m, vanilla()}}
	for _, o := range options {
		sides = append(sides, side{m, o})
	}
	times := timing{seconds: make([]float64, len(sides)), kappa: nan}
	if r.runs() {
		if times, err = r.time(ctx, replicaKappa, sides...); err != nil {
			return nil, nil, err
		}
	}
	for i, o := range options {
		n, err := planned(ctx, m, o)
		if err != nil {
			return nil, nil, err
		}
		slower := times.seconds[i+1] / times.seconds[0]
		t.row(names[i], float64(n.device)/mib, float64(n.traffic.In())/mib,
			float64(n.traffic.Out())/mib, slower)
		peaks, seconds = append(peaks, float64(n.device)/mib), append(seconds, slower)
	}
	if r.runs() {
		t.note("Times are relative to vanilla, at κ = %.0f.", times.kappa)
	}
	return peaks, seconds, nil
}

// strategies is figure 6.6: the orders in which partitions are cut.
func (r *runner) strategies(ctx context.Context) (Table, error) {
	t := Table{
		Title: fmt.Sprintf("Figure 6.6: orders of partitioning, MoE, 64 experts, 16 pairs, "+
			"partitions of 200, %s", r.Size),
		Header: []string{"order", "device MiB", "in MiB", "out MiB", "time"},
	}
	c, err := models.NewMoEConfig(r.Size)
	c.Experts, c.Pairs, c.Sparse, c.Fine = 64, 16, true, true
	m, err := model(c, err, models.MoE)
	if err != nil {
		return t, err
	}
	var names []any
	var options []planner.Options
	for _, s := range []partition.Strategy{partition.DFS, partition.DFSDepth, partition.Depth} {
		names = append(names, strings.ToUpper(string(s)))
		options = append(options, planner.Options{Strategy: s, Partition: 200,
			NoFusion: true})
	}
	peaks, _, err := r.sweep(ctx, &t, m, names, options)
	if err != nil {
		return t, err
	}
	t.note("Thesis: DFS needs the least memory and time, then DFS-DEPTH, then DEPTH.")
	f := figure{file: "fig6.6", title: t.Title, y: "device MiB", bars: true,
		series: []series{{name: "peak", y: peaks}}}
	for _, n := range names {
		f.labels = append(f.labels, fmt.Sprint(n))
	}
	t.figures = []figure{f}
	return t, nil
}

// partitionSizes is figure 6.7.
func (r *runner) partitionSizes(ctx context.Context) (Table, error) {
	t := Table{
		Title:  fmt.Sprintf("Figure 6.7: sizes of partitions, MoE, 8 pairs, %s", r.Size),
		Header: []string{"operations a partition", "device MiB", "in MiB", "out MiB", "time"},
	}
	m, err := moe.build(r.Size, 8)
	if err != nil {
		return t, err
	}
	var names []any
	var options []planner.Options
	memory, times := series{name: "device MiB"}, series{name: "time, of vanilla's"}
	for _, size := range []int{5, 10, 20, 50, 100, 200, 500} {
		names, options = append(names, size), append(options, placed(size))
		memory.x, times.x = append(memory.x, float64(size)), append(times.x, float64(size))
	}
	if memory.y, times.y, err = r.sweep(ctx, &t, m, names, options); err != nil {
		return t, err
	}
	t.note("Thesis: larger partitions need more memory and less time.")
	t.figures = []figure{
		{file: "fig6.7-memory", title: "Figure 6.7: memory by size of partitions",
			x: "operations a partition", y: "device MiB", series: []series{memory}},
	}
	if r.runs() {
		t.figures = append(t.figures, figure{file: "fig6.7-time",
			title: "Figure 6.7: time by size of partitions", x: "operations a partition",
			y: "of vanilla's", series: []series{times}})
	}
	return t, nil
}
