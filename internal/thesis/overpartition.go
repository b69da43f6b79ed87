package thesis

import (
	"context"
	"fmt"
	"sort"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/fit"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// mixture is a way to train the MoE with 8 pairs in partitions of 200.
type mixture struct {
	name    string
	vanilla bool
	best    bool   // gomem's own graph, of fused operations, not the fine lowering
	mesh    string // "" divides nothing
	step    int    // experts come in multiples of it, so that a mesh divides them; 0 is 1
	dense   bool   // tokens are dispatched by products, not by gather and scatter
	usual   bool   // experts of 2,048 hidden units (256 at s64), not twice as many
	rank    int    // of the processes of a mesh of several
}

// config is the model with so many experts a layer.
func (x mixture) config(size string, experts int) (models.MoEConfig, error) {
	c, err := models.NewMoEConfig(size)
	c.Pairs, c.Experts, c.Sparse, c.Fine = 8, experts, !x.dense, !x.best
	if !x.usual {
		c.ExpertHidden *= 2
	}
	if x.dense && size != full { // fewer tokens may not mean fewer experts
		c.CapacityTrain = max(c.CapacityTrain, float64(experts)/float64(c.Group))
		c.CapacityEval = max(c.CapacityEval, c.CapacityTrain)
	}
	return c, err
}

// build builds it.
func (x mixture) build(size string, experts int) (*models.Model, error) {
	c, err := x.config(size, experts)
	return model(c, err, models.MoE)
}

// tooMany reports whether a number of experts makes no model: more than there is room for
// tokens of each.
func (x mixture) tooMany(size string, experts int) bool {
	c, err := x.config(size, experts)
	return err == nil && c.Validate() != nil
}

// options are the decisions, within the caps of a size.
func (x mixture) options(size string) (planner.Options, error) {
	o := placed(200)
	if x.vanilla {
		o = vanilla()
	}
	o.NoFusion = !x.best
	o.DeviceBytes, o.HostBytes = caps(size)
	o.Rank = x.rank
	var err error
	if x.mesh != "" {
		o.Mesh, err = mesh.Parse(x.mesh, "")
	}
	return o, err
}

// fits reports whether a number of experts has a plan within the caps, and how much of them
// it takes.
func (x mixture) fits(ctx context.Context, size string, experts int) (fit.Outcome, error) {
	o, err := x.options(size)
	if err != nil {
		return fit.Outcome{}, err
	}
	m, err := x.build(size, experts)
	if err != nil {
		return fit.Outcome{}, err
	}
	ok, load, err := planner.Probe(ctx, m.Graph, o, objective(m))
	return fit.Outcome{Fits: ok, Load: load}, err
}

// most is the largest number of experts that fits, searched for from a guess, and the next
// one, which is refused.
func (r *runner) most(ctx context.Context, x mixture, size string,
	guess int) (fit.Answer, error) {
	step := max(x.step, 1)
	limit := sort.Search(1<<16/step, func(i int) bool { return x.tooMany(size, (i+1)*step) })
	a, err := fit.Largest(guess/step, 1, limit, func(i int) (fit.Outcome, error) {
		r.progress("%s, %s: planning %d experts", x.name, size, i*step)
		return x.fits(ctx, size, i*step)
	})
	a.Most, a.Next = a.Most*step, a.Next*step
	return a, err
}

// leastDevice is the least device memory that so many experts need within the host's cap.
func (x mixture) leastDevice(ctx context.Context, size string, experts int) (int64, error) {
	o, err := x.options(size)
	if err != nil {
		return 0, err
	}
	m, err := x.build(size, experts)
	if err != nil {
		return 0, err
	}
	return planner.LeastOf(ctx, m.Graph, o, space.Device, objective(m))
}

// confirm executes a step of the most experts within the caps, and says how many more are
// refused. It is "-" where nothing is run.
func (x mixture) confirm(ctx context.Context, r *runner, a fit.Answer) (string, error) {
	if !r.runs() {
		return "-", nil
	}
	experts := a.Most
	m, err := x.build(r.Size, experts)
	if err != nil {
		return "", err
	}
	o, err := x.options(r.Size)
	if err != nil {
		return "", err
	}
	s, err := gomem.Compile(ctx, m.Graph, gomem.Options{}.With(o), objective(m))
	if err != nil {
		return "", err
	}
	defer s.Close()
	if _, err := step(ctx, s, m); err != nil {
		return "", fmt.Errorf("%s, %d experts: %w", x.name, experts, err)
	}
	return fmt.Sprintf("runs; +%d refused", a.Next-a.Most), nil
}

// overpartitioned is a row of table 6.13, with what the thesis had.
type overpartitioned struct {
	mixture
	guess               int
	experts, parameters string
}

// overpartitions are the rows. A guess is what the smaller of both sizes is expected to come
// to, since a probe that fits costs less than one that does not, and aims as well. What a mesh
// saves is the device's, and the host is full: with slices it is that without.
var overpartitions = []overpartitioned{
	{mixture{name: "vanilla (TensorFlow)", vanilla: true}, 39, "12", "0.66 billion"},
	{mixture{name: "thesis policy (TensorFlowMem)"}, 166, "48", "2.5 billion"},
	{mixture{name: "+ batch:2,experts:2 (+ VMesh 4)", mesh: "batch:2,experts:2", step: 4}, 164,
		"56", "2.9 billion"},
	{mixture{name: "+ experts:4", mesh: "experts:4", step: 4}, 164, "-", "-"},
	{mixture{name: "vanilla, gomem's graph", vanilla: true, best: true}, 40, "-", "-"},
	{mixture{name: "thesis policy", best: true}, 304, "-", "-"},
	{mixture{name: "+ batch:2,experts:2", best: true, mesh: "batch:2,experts:2", step: 4}, 304,
		"-", "-"},
	{mixture{name: "+ experts:4", best: true, mesh: "experts:4", step: 4}, 304, "-", "-"},
}

// overpartition is table 6.13: one device, whose operations are cut into slices.
func (r *runner) overpartition(ctx context.Context) (Table, error) {
	return r.slices(ctx, overpartitions)
}

// slices is a table of rows.
func (r *runner) slices(ctx context.Context, rows []overpartitioned) (Table, error) {
	t := Table{
		Title: "Table 6.13: the most experts a layer on one device in slices, 8 pairs",
		Header: []string{"", "thesis: experts", "parameters", "12 GiB, planned: experts",
			"parameters", "least MiB", "192 MiB: experts", "least MiB", "executed"},
	}
	for _, row := range rows {
		cells := []any{row.name, row.experts, row.parameters}
		var a fit.Answer
		for _, size := range []string{full, replica} {
			var err error
			if a, err = r.most(ctx, row.mixture, size, row.guess); err != nil {
				return t, err
			}
			n := a.Most
			device, err := row.leastDevice(ctx, size, n)
			if err != nil {
				return t, err
			}
			cells = append(cells, n)
			if size == full {
				m, err := row.build(size, n)
				if err != nil {
					return t, err
				}
				cells = append(cells, m.Graph.Parameters())
			}
			cells = append(cells, float64(device)/mib)
		}
		executed, err := row.confirm(ctx, r, a)
		if err != nil {
			return t, err
		}
		t.row(append(cells, executed)...)
	}
	t.note("The first four rows are of the fine lowering without fusion, as table 6.8: experts "+
		"of 4,096 hidden units (512 at s64), by gather and scatter. The others are of the graph "+
		"that gomem train plans, of fused operations. Within %d GiB, or 1 GiB, of host memory.", 64)
	t.note("Least is the device memory without which so many experts are refused.")
	return t, nil
}
