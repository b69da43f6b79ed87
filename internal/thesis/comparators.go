package thesis

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
)

// grappler is TensorFlow 1's memory optimizer under a budget.
func grappler(device, host int64) planner.Options {
	return planner.Options{Policy: planner.Grappler, DeviceBytes: device, HostBytes: host}
}

// comparator is table 6.11.
func (r *runner) comparator(ctx context.Context) (Table, error) {
	t := Table{
		Title: "Table 6.11: the largest model with swapping around the estimated peak, planned",
		Header: []string{"model", "thesis: Grappler", "TensorFlowMem", "memory", "vanilla",
			"Grappler-like", "gomem", "gomem / Grappler-like"},
	}
	resnets := deepResNet(map[string]int{full: 16, replica: 4})
	for _, row := range []struct {
		workload
		name, tf, mem string
		amount        func(int) int
	}{
		{resnets, "ResNet, 16 images (layers)", "504", "1,916", layers},
		{wideMoE(), "MoE, 8 pairs (experts)", "12", "48", func(n int) int { return n }},
	} {
		for _, size := range []string{full, replica} {
			m, err := r.maxima(ctx, row.workload, size)
			if err != nil {
				return t, err
			}
			g, err := r.largestGrappler(ctx, row.workload, size, m.vanilla)
			if err != nil {
				return t, err
			}
			memory := map[string]string{full: "12 GiB", replica: "192 MiB"}[size]
			t.row(row.name, row.tf, row.mem, memory, row.amount(m.vanilla), row.amount(g),
				row.amount(m.placed),
				float64(row.amount(m.placed))/float64(row.amount(g)))
		}
	}
	t.note("Grappler-like is --policy grappler: what is idle around the estimated peak is " +
		"swapped until the estimate fits; variables stay on the device.")
	return t, nil
}

// largestGrappler is the largest n that fits with the comparator, told the budget
// as it is. Its plan depends on that, so it is searched for from vanilla's maximum
// up.
func (r *runner) largestGrappler(ctx context.Context, w workload, size string,
	from int) (int, error) {
	device, host := caps(size)
	return bisect(max(1, from), func(n int) (bool, error) {
		r.progress("%s %s, grappler: planning %s %s", w.name, size, w.amount(n), w.unit)
		m, err := w.build(size, n)
		if err != nil {
			return false, err
		}
		f, err := planner.Predict(ctx, m.Graph, objective(m), grappler(device, host))
		return f.Device <= device && f.Host <= host, err
	})
}

// estimator is table 6.12: forecasts of whether a step runs out of memory.
func (r *runner) estimator(ctx context.Context) (Table, error) {
	t := Table{
		Title: fmt.Sprintf("Table 6.12: forecasts around the limit of device memory, %s", r.Size),
		Header: []string{"model", "cap MiB", "Grappler-like: estimate MiB", "forecast", "happens",
			"right",
			"gomem: predicted MiB", "forecast", "happens", "right"},
	}
	right := [2]int{}
	total := 0
	for _, w := range five {
		m, err := w.build(r.Size, w.ablation[r.Size])
		if err != nil {
			return t, err
		}
		limits, err := limitsOf(ctx, w, m)
		if err != nil {
			return t, err
		}
		for _, c := range limits {
			r.progress("%s, %s", w.name, c.name)
			g, p, err := r.forecast(ctx, w, m, c.device)
			if err != nil {
				return t, err
			}
			t.row(append([]any{w.name + ", " + c.name, float64(c.device) / mib},
				append(g.cells(), p.cells()...)...)...)
			total++
			right[0] += g.right()
			right[1] += p.right()
		}
	}
	t.note("Right: Grappler-like %d of %d, gomem %d of %d. What gomem predicts is what the "+
		"executor then finds, to the byte, or the step is an error.", right[0], total, right[1],
		total)
	if r.runs() {
		t.note("gomem's steps that fit were executed, and their peaks were those predicted.")
	}
	t.note("For Grappler-like, what happens is whether the plan that it leads to fits the cap " +
		"when addresses, workspaces and copies are counted.")
	return t, nil
}

// limit is a cap on device memory.
type limit struct {
	name   string
	device int64
}

// limitsOf are caps between what vanilla needs and what gomem needs at least,
// that itself, and a byte less.
func limitsOf(ctx context.Context, w workload, m *models.Model) ([]limit, error) {
	v, err := planned(ctx, m, vanilla())
	if err != nil {
		return nil, err
	}
	n, err := least(ctx, m, placed(w.partition))
	if err != nil {
		return nil, err
	}
	var list []limit
	for _, percent := range []int64{99, 90, 70, 50, 30} {
		list = append(list, limit{fmt.Sprintf("%d %% of vanilla", percent),
			v.device * percent / 100})
	}
	return append(list, limit{"gomem's least", n.device}, limit{"a byte less", n.device - 1}), nil
}

// forecast is a claim about a step, and what happened.
type forecast struct {
	bytes          int64
	fits, happened bool
}

func (f forecast) right() int {
	if f.fits == f.happened {
		return 1
	}
	return 0
}

func (f forecast) cells() []any {
	word := func(fits bool) string {
		if fits {
			return "fits"
		}
		return "OOM"
	}
	return []any{float64(f.bytes) / mib, word(f.fits), word(f.happened),
		map[int]string{0: "no", 1: "yes"}[f.right()]}
}

// forecast compares both planners' forecasts at a cap.
func (r *runner) forecast(ctx context.Context, w workload, m *models.Model,
	device int64) (g, p forecast, err error) {
	f, err := planner.Predict(ctx, m.Graph, objective(m), grappler(device, 0))
	if err != nil {
		return g, p, err
	}
	g = forecast{f.Estimate, f.Estimate <= device, f.Device <= device}
	needs, err := least(ctx, m, placed(w.partition))
	if err != nil {
		return g, p, err
	}
	p = forecast{bytes: needs.device, fits: needs.device <= device}
	o := placed(w.partition)
	no, err := refused(ctx, m, o, device, 0)
	if err != nil {
		return g, p, err
	}
	p.happened = !no
	if p.happened && r.runs() {
		o.DeviceBytes = device
		once := *r
		once.Runs = 1
		_, err = once.rounds(ctx, 0, side{m, o})
	}
	return g, p, err
}
