package thesis

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
)

// stages are the sides of the ablation: the thesis' three, and what gomem makes
// of the memory that the thesis' average leaves it.
var stages = []string{"vanilla", "+partition", "+placement", "auto"}

// share is the part of vanilla's peak that TensorFlowMem needs on average: 3.8 of
// 10.8 GB.
const share = 3.8 / 10.8

// stageOptions are the decisions of the stages; the last has a budget, unless
// even the least is more.
func stageOptions(ctx context.Context, m *models.Model, size int) ([]planner.Options, error) {
	v, err := planned(ctx, m, vanilla())
	if err != nil {
		return nil, err
	}
	auto := planner.Options{Policy: planner.Auto, Partition: size, NoFusion: true}
	lowest, err := least(ctx, m, auto)
	if err != nil {
		return nil, err
	}
	auto.DeviceBytes = max(lowest.device, int64(share*float64(v.device)))
	return []planner.Options{vanilla(), partitioned(size), placed(size), auto}, nil
}

// ablated is a model under the stages.
type ablated struct {
	name    string
	need    []need
	seconds []float64
	kappa   float64
}

// ablation is table 6.4 and figure 6.8.
func (r *runner) ablation(ctx context.Context) (Table, error) {
	t := Table{
		Title: fmt.Sprintf("Table 6.4, figure 6.8: ablation at TensorFlow's largest batch, %s",
			r.Size),
		Header: []string{"", "vanilla MiB", "+partition", "+placement", "auto", "less: +placement",
			"less: auto", "time: +partition", "+placement", "auto"},
	}
	var all, own []ablated
	for _, w := range five {
		a, err := r.ablate(ctx, w, replicaKappa)
		if err != nil {
			return t, err
		}
		all = append(all, a)
		t.row(append([]any{fmt.Sprintf("%s, %s %s", w.name, w.amount(w.ablation[r.Size]), w.unit)},
			a.cells()...)...)
		if w.own > 0 && r.runs() {
			if a, err = r.ablate(ctx, w, w.own/width); err != nil {
				return t, err
			}
			t.row(append([]any{fmt.Sprintf("the same at its own κ = %.0f", a.kappa)},
				a.cells()...)...)
		}
		own = append(own, a)
	}
	for _, average := range []struct {
		name    string
		without string
		thesis  []any
	}{
		{"average", "", []any{"10.8 GB", "4.8", "3.8", "-", "64.8 %", "-", 1.8, 2.2, "-"}},
		{"average without MoE", moe.name,
			[]any{"11.0 GB", "4.4", "4.0", "-", "63.6 %", "-", 1.55, 1.85, "-"}},
	} {
		t.row(append([]any{average.name}, mean(all, average.without)...)...)
		if r.runs() {
			t.row(append([]any{average.name + ", own κ"}, mean(own, average.without)...)...)
		}
		t.row(append([]any{"thesis, " + average.name}, average.thesis...)...)
	}
	if r.runs() {
		t.note("Times are relative to vanilla, with copies slowed down to κ = %.0f at the speed "+
			"of vanilla's step: that of the thesis' machine (730), scaled by the replicas' width.",
			all[0].kappa)
		t.note("The thesis' machine was slower at MoE and WGAN-GP (table 6.6: 0.77 and 0.50 " +
			"TFLOP/s, 3.2 at the others), so that copies weighed less: at their own κ.")
	} else {
		t.note("Planned, not run.")
	}
	t.note("auto has %.0f %% of vanilla's peak as its budget, what TensorFlowMem needed on "+
		"average, and plans for copies that are as slow.", 100*share)
	t.figures = append(t.figures, ablationFigures(all, r.runs())...)
	return t, nil
}

func (r *runner) ablate(ctx context.Context, w workload, kappa float64) (ablated, error) {
	r.progress("%s: planning", w.name)
	m, err := w.build(r.Size, w.ablation[r.Size])
	if err != nil {
		return ablated{}, err
	}
	options, err := stageOptions(ctx, m, w.partition)
	if err != nil {
		return ablated{}, err
	}
	a := ablated{name: w.name}
	if r.runs() {
		var sides []side
		for _, o := range options {
			sides = append(sides, side{m, o})
		}
		t, err := r.time(ctx, kappa, sides...)
		a.need, a.seconds, a.kappa = t.need, t.seconds, t.kappa
		return a, err
	}
	for _, o := range options {
		n, err := planned(ctx, m, o)
		if err != nil {
			return a, err
		}
		a.need = append(a.need, n)
	}
	return a, nil
}

const mib = 1 << 20

// cells are a row of the table behind the name.
func (a ablated) cells() []any {
	var out []any
	for _, n := range a.need {
		out = append(out, float64(n.device)/mib)
	}
	out = append(out, percent(a.saved(2)), percent(a.saved(3)))
	for i := 1; i < len(stages); i++ {
		out = append(out, a.slower(i))
	}
	return out
}

// saved is the part of vanilla's peak that a stage saves.
func (a ablated) saved(stage int) float64 {
	return 1 - float64(a.need[stage].device)/float64(a.need[0].device)
}

// slower is a stage's time relative to vanilla's, or not a number.
func (a ablated) slower(stage int) float64 {
	if len(a.seconds) == 0 {
		return nan
	}
	return a.seconds[stage] / a.seconds[0]
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// mean averages peaks, savings and times over models, as the thesis does: sizes
// and ratios are averaged, not divided after averaging.
func mean(all []ablated, without string) []any {
	n := 0.0
	sums := make([]float64, 9)
	for _, a := range all {
		if a.name == without {
			continue
		}
		n++
		for i, x := range a.need {
			sums[i] += float64(x.device) / mib
		}
		sums[4] += a.saved(2)
		sums[5] += a.saved(3)
		for i := 1; i < len(stages); i++ {
			sums[5+i] += a.slower(i)
		}
	}
	var out []any
	for i, s := range sums {
		if i == 4 || i == 5 {
			out = append(out, percent(s/n))
		} else {
			out = append(out, s/n)
		}
	}
	return out
}

// ablationFigures are figures 6.8a and 6.8b.
func ablationFigures(all []ablated, timed bool) []figure {
	memory := figure{file: "fig6.8a", title: "Figure 6.8a: device memory", y: "of vanilla's peak",
		bars: true}
	times := figure{file: "fig6.8b", title: "Figure 6.8b: time of a step", y: "of vanilla's time",
		bars: true}
	for i, name := range stages {
		m, s := series{name: name}, series{name: name}
		for _, a := range all {
			m.y = append(m.y, 1-a.saved(i))
			s.y = append(s.y, a.slower(i))
		}
		memory.series, times.series = append(memory.series, m), append(times.series, s)
	}
	for _, a := range all {
		memory.labels, times.labels = append(memory.labels, a.name), append(times.labels, a.name)
	}
	if !timed {
		return []figure{memory}
	}
	return []figure{memory, times}
}
