package thesis

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem/planner"
)

// machines is how many the thesis had.
const machines = 4

// clustering is a row of tables 6.10 and 6.14, with what the thesis had. A guess is where the
// search begins: what is found does not depend on it, but how long that takes.
type clustering struct {
	mixture
	guess      map[string]int
	experts    int
	parameters string
}

// clustered are the rows: the mixture on four machines, the experts divided among them and
// all else on each.
var clustered = []clustering{
	{mixture{name: "vanilla (TensorFlow)", vanilla: true, best: true, dense: true, usual: true,
		mesh: "experts:4x1", step: 4}, map[string]int{full: 412, replica: 376, small: 32}, 52,
		"2.7 billion"},
	{mixture{name: "thesis policy (TensorFlowMem)", best: true, dense: true, usual: true,
		mesh: "experts:4x1", step: 4}, map[string]int{full: 1280, replica: 2376, small: 120}, 160,
		"8.1 billion"},
	{mixture{name: "+ device shape 5 (+ VMesh)", best: true, dense: true, usual: true,
		mesh: "experts:4x5", step: 20}, map[string]int{full: 1280, replica: 2360, small: 120}, 200,
		"10.1 billion"},
	{mixture{name: "+ sparse (+ SparseMoE)", best: true, usual: true, mesh: "experts:4x1",
		step: 4}, map[string]int{full: 2504, replica: 2336, small: 120}, 400, "20.2 billion"},
}

// scheduled is table 6.10: without slices.
func (r *runner) scheduled(ctx context.Context) (Table, error) {
	return r.processes(ctx, "6.10", clustered[:2])
}

// sliced is table 6.14: all that the thesis had.
func (r *runner) sliced(ctx context.Context) (Table, error) {
	return r.processes(ctx, "6.14", clustered)
}

// processes is a table of rows, the first of which the others are compared with.
func (r *runner) processes(ctx context.Context, id string, rows []clustering) (Table, error) {
	t := Table{
		Title: fmt.Sprintf("Table %s: the most experts a layer on %d machines, 8 pairs, %s", id,
			machines, r.Size),
		Header: []string{"", "thesis: experts", "parameters", "ratio", "experts", "parameters",
			"ratio", "least device MiB", "executed"},
	}
	first := 0
	for _, row := range rows {
		n, executed, err := r.mostOfAll(ctx, row.mixture, row.guess[r.Size])
		if err != nil {
			return t, err
		}
		if first == 0 {
			first = n
		}
		m, err := row.build(r.Size, n)
		if err != nil {
			return t, err
		}
		device, err := row.leastDevice(ctx, r.Size, n)
		if err != nil {
			return t, err
		}
		t.row(row.name, row.experts, row.parameters,
			float64(row.experts)/float64(rows[0].experts), n, m.Graph.Parameters(),
			float64(n)/float64(first), float64(device)/mib, executed)
	}
	device, host := caps(r.Size)
	t.note("Each machine has %d MiB of device and %d MiB of host memory; one more expert for each "+
		"is refused. Experts have 2,048 hidden units (256 at s64), the thesis' twice as many. "+
		"Operations are fused.", device>>20, host>>20)
	t.note("More dense experts than 1,280 are refused at base, whatever the memory: there is no " +
		"room for a token of each. The replica's groups have an eighth of the tokens; there the " +
		"capacity factor grows so that each dense expert has room for one.")
	return t, nil
}

// mostOfAll is the largest number of experts that fits on every process, while more of them are
// refused or make no model, and what was done to know it.
func (r *runner) mostOfAll(ctx context.Context, x mixture, guess int) (int, string, error) {
	a, err := r.most(ctx, x, r.Size, guess)
	n, next := a.Most, a.Next
	for ; n > 0 && err == nil; n -= x.step {
		var how string
		if how, err = r.everywhere(ctx, x, n); err == nil {
			return n, how + beyond(n, next), nil
		}
		if _, short := errors.AsType[*planner.ErrOutOfMemory](err); short {
			next, err = n, nil
		}
	}
	return n, "-", err
}

// beyond says what is known of more experts: the next number is refused, or, if it is 0, is
// none of a model.
func beyond(n, next int) string {
	if next == 0 {
		return "; more make no model"
	}
	return fmt.Sprintf("; +%d refused", next-n)
}

// everywhere has so many experts on all processes: run where they can be joined, which plans
// them, too, and else planned.
func (r *runner) everywhere(ctx context.Context, x mixture, experts int) (string, error) {
	if r.runs() && r.Join != nil {
		return r.together(ctx, x, experts)
	}
	m, err := x.build(r.Size, experts)
	if err != nil {
		return "", err
	}
	for x.rank = 1; x.rank < machines; x.rank++ {
		o, err := x.options(r.Size)
		if err != nil {
			return "", err
		}
		r.progress("%s, %s: planning %d experts, process %d", x.name, r.Size, experts, x.rank)
		if err := planner.Fits(ctx, m.Graph, o, objective(m)); err != nil {
			return "", fmt.Errorf("process %d: %w", x.rank, err)
		}
	}
	return "planned", nil
}
