package thesis

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
)

// maxima are the largest n under vanilla and under the thesis' policy.
type maxima struct{ vanilla, placed int }

func (m maxima) ratio() float64 {
	if m.vanilla == 0 {
		return nan
	}
	return float64(m.placed) / float64(m.vanilla)
}

// maxima searches by planning alone.
func (r *runner) maxima(ctx context.Context, w workload, size string) (maxima, error) {
	v, err := r.largest(ctx, w, size, vanilla())
	if err != nil {
		return maxima{}, err
	}
	p, err := r.largest(ctx, w, size, placed(w.partition))
	return maxima{v, p}, err
}

// confirm executes the maximum for a step and reports that one more is refused.
// It is "-" where nothing is run.
func (r *runner) confirm(ctx context.Context, w workload, n int) (string, error) {
	if !r.runs() {
		return "-", nil
	}
	device, host := caps(r.Size)
	o := placed(w.partition)
	o.DeviceBytes, o.HostBytes = device, host
	m, err := w.build(r.Size, n)
	if err != nil {
		return "", err
	}
	once := *r
	once.Runs = 1
	if _, err := once.rounds(ctx, 0, side{m, o}); err != nil {
		return "", fmt.Errorf("%s with %d: %w", w.name, n, err)
	}
	more, err := w.build(r.Size, n+1)
	if err != nil {
		return "", err
	}
	no, err := refused(ctx, more, placed(w.partition), device, host)
	if err != nil || no {
		return "runs; +1 refused", err
	}
	return "runs; +1 fits too", nil
}

// batches is table 6.5.
func (r *runner) batches(ctx context.Context) (Table, error) {
	t := Table{
		Title: "Table 6.5: the largest batch",
		Header: []string{"model", "TensorFlow", "TensorFlowMem", "ratio",
			"12 GiB, planned: vanilla", "gomem", "ratio",
			"192 MiB: vanilla", "gomem", "ratio", "executed"},
	}
	for _, row := range []struct {
		workload
		tf, mem int
	}{{transformer, 11264, 25600}, {moe, 4, 40}, {resnet, 57, 186}, {wgan, 90, 324}} {
		w := row.workload
		cells := []any{fmt.Sprintf("%s (%s)", w.name, w.unit), row.tf, row.mem,
			float64(row.mem) / float64(row.tf)}
		for _, size := range []string{full, replica} {
			m, err := r.maxima(ctx, w, size)
			if err != nil {
				return t, err
			}
			cells = append(cells, w.amount(m.vanilla), w.amount(m.placed), m.ratio())
			if size != replica {
				continue
			}
			executed, err := r.confirm(ctx, w, m.placed)
			if err != nil {
				return t, err
			}
			cells = append(cells, executed)
		}
		t.row(cells...)
	}
	t.note("gomem is the thesis policy with its settings: partitions of 20 operations. At most " +
		"64 GiB, or 1 GiB, of host memory are used.")
	t.note("MoE's memory is not monotone in the batch: tokens are gated in groups, whose size " +
		"has to divide it. The maximum is one that is found from below.")
	return t, nil
}

// throughput is table 6.6: the speed at the largest batch.
func (r *runner) throughput(ctx context.Context) (Table, error) {
	t := Table{
		Title: "Table 6.6: speed at the largest batch, s64",
		Header: []string{"model", "thesis: TensorFlow", "TensorFlowMem", "ratio",
			"vanilla, units/s", "gomem", "ratio", "auto", "ratio", "κ"},
	}
	if !r.runs() {
		t.note("Speeds need a size that is run.")
		return t, nil
	}
	for _, row := range []struct {
		workload
		tf, mem float64
	}{{transformer, 8731, 3699}, {moe, 4.6, 5.2}, {resnet, 50, 27}, {wgan, 7.9, 4.5}} {
		w := row.workload
		m, err := r.maxima(ctx, w, replica)
		if err != nil {
			return t, err
		}
		speeds, kappa, err := r.speeds(ctx, w, m)
		if err != nil {
			return t, err
		}
		t.row(fmt.Sprintf("%s (%s)", w.name, w.unit), row.tf, row.mem, row.mem/row.tf,
			speeds[0], speeds[1], speeds[1]/speeds[0], speeds[2], speeds[2]/speeds[0], kappa)
	}
	t.note("Copies are slowed down to the κ that the thesis' machine had for the model (see " +
		"table 6.4), scaled by width. auto keeps within the same 192 MiB, and uses them.")
	return t, nil
}

// speeds are units a second of vanilla at its largest batch, and of the thesis'
// policy and of auto at theirs.
func (r *runner) speeds(ctx context.Context, w workload, m maxima) ([]float64, float64, error) {
	small, err := w.build(replica, m.vanilla)
	if err != nil {
		return nil, 0, err
	}
	large, err := w.build(replica, m.placed)
	if err != nil {
		return nil, 0, err
	}
	mem := placed(w.partition)
	mem.DeviceBytes, mem.HostBytes = caps(replica)
	auto := mem
	auto.Policy = planner.Auto
	times, err := r.time(ctx, w.kappa(), side{small, vanilla()}, side{large, mem},
		side{large, auto})
	if err != nil {
		return nil, 0, err
	}
	var out []float64
	for i, n := range []int{m.vanilla, m.placed, m.placed} {
		out = append(out, float64(n*w.words)/times.seconds[i])
	}
	return out, times.kappa, nil
}

// depth is table 6.7.
func (r *runner) depth(ctx context.Context) (Table, error) {
	t := Table{
		Title: "Table 6.7: the deepest ResNet, [3, 32, x, 3]",
		Header: []string{"images", "TensorFlow layers", "TensorFlowMem", "12 GiB, planned: vanilla",
			"gomem", "parameters",
			"192 MiB: vanilla", "gomem", "executed"},
	}
	for _, row := range []struct {
		images  map[string]int
		tf, mem string
	}{
		{map[string]int{full: 16, replica: 4}, "504", "1,916 (697 million)"},
		{map[string]int{full: 32, replica: 8}, "-", "1,001 (385 million)"},
	} {
		w := deepResNet(row.images)
		var cells []any
		cells = append(cells, fmt.Sprintf("%d (s64: %d)", row.images[full], row.images[replica]),
			row.tf, row.mem)
		for _, size := range []string{full, replica} {
			m, err := r.maxima(ctx, w, size)
			if err != nil {
				return t, err
			}
			cells = append(cells, layers(m.vanilla), layers(m.placed))
			if size == full {
				deepest, err := w.build(full, m.placed)
				if err != nil {
					return t, err
				}
				cells = append(cells, deepest.Graph.Parameters())
				continue
			}
			executed, err := r.confirm(ctx, w, m.placed)
			if err != nil {
				return t, err
			}
			cells = append(cells, executed)
		}
		t.row(cells...)
	}
	return t, nil
}

// experts is table 6.8.
func (r *runner) experts(ctx context.Context) (Table, error) {
	t := Table{
		Title: "Table 6.8: the most experts a layer, 8 pairs, partitions of 200",
		Header: []string{"memory", "TensorFlow", "TensorFlowMem", "vanilla", "gomem", "parameters",
			"ratio", "executed"},
	}
	for _, size := range []string{full, replica} {
		w := wideMoE()
		m, err := r.maxima(ctx, w, size)
		if err != nil {
			return t, err
		}
		widest, err := w.build(size, m.placed)
		if err != nil {
			return t, err
		}
		executed := "planned"
		if size == replica {
			if executed, err = r.confirm(ctx, w, m.placed); err != nil {
				return t, err
			}
		}
		t.row(map[string]string{full: "12 GiB", replica: "192 MiB"}[size], "12 (0.66 billion)",
			"48 (2.5 billion)",
			m.vanilla, m.placed, widest.Graph.Parameters(), m.ratio(), executed)
	}
	t.note("Experts have 4,096 hidden units (512 at s64) and are reached by gather and scatter, " +
		"as in the thesis' section 6.5.3.")
	return t, nil
}

// lengths is table 6.9.
func (r *runner) lengths(ctx context.Context) (Table, error) {
	t := Table{
		Title: "Table 6.9: DeepSpeech, unrolled, 128 utterances (16 at s64): seconds a step by " +
			"frames",
		Header: []string{"frames", "TensorFlow s", "TensorFlowMem s", "ratio", "vanilla s",
			"gomem s", "ratio", "κ"},
	}
	device, host := caps(replica)
	for _, row := range []struct {
		frames  int
		tf, mem float64
	}{{100, 1.15, 1.56}, {200, 2.3, 3.03}, {400, 4.64, 6.03}, {800, nan, 12}, {1600, nan, nan}} {
		if !r.runs() {
			break
		}
		m, err := deepspeech.build(replica, row.frames)
		if err != nil {
			return t, err
		}
		mem := placed(deepspeech.partition)
		mem.DeviceBytes, mem.HostBytes = device, host
		seconds, kappa, err := r.lengthTimes(ctx, m, mem, device, host)
		if err != nil {
			return t, err
		}
		t.row(row.frames, row.tf, row.mem, row.mem/row.tf, seconds[0], seconds[1],
			seconds[1]/seconds[0], kappa)
	}
	for _, size := range []string{full, replica} {
		m, err := r.maxima(ctx, deepspeech, size)
		if err != nil {
			return t, err
		}
		t.note("The longest utterances: %s frames under vanilla and %s with gomem at %s (%.1f "+
			"times); in the thesis 400 and 800.",
			grouped(m.vanilla), grouped(m.placed), size, m.ratio())
	}
	t.note("A dash under vanilla: it does not fit into 192 MiB; its time without that limit " +
		"sets κ.")
	return t, nil
}

// lengthTimes are the times of a step under vanilla, not a number if it does not
// fit, and under the thesis' policy.
func (r *runner) lengthTimes(ctx context.Context, m *models.Model, mem planner.Options, device,
	host int64) ([]float64, float64, error) {
	times, err := r.time(ctx, replicaKappa, side{m, vanilla()}, side{m, mem})
	if err != nil {
		return nil, 0, err
	}
	seconds := times.seconds
	if !times.need[0].within(device, host) {
		seconds[0] = nan
	}
	return seconds, times.kappa, nil
}
