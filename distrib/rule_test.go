package distrib_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/longtest"
)

// normals are numbers of a generator.
func normals(rng *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(rng.NormFloat64())
	}
	return out
}

// allRules are all rules, fresh.
func allRules() map[string]distrib.Rule {
	return map[string]distrib.Rule{
		"add":         &distrib.Additive{Decay: 0.5},
		"momentum":    &distrib.Momentum{Mu: 0.9, Decay: 0.01},
		"adam":        &distrib.Adam{Decay: 0.01},
		"adarevision": &distrib.AdaRevision{Alpha: 0.1},
	}
}

// TestRulesWorkRowByRow: rows together or one by one, dense or not, have the same bits.
func TestRulesWorkRowByRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := drawShape(t)
		together, single := allRules(), allRules()
		start := dyadic(t, rows*cols, "start")
		var updates []distrib.Update
		for range 3 {
			updates = append(updates, drawUpdate(t, rows, cols))
		}
		for name := range together {
			w, v := slices.Clone(start), slices.Clone(start)
			for _, u := range updates {
				together[name].Apply(w, cols, &distrib.Entry{U: u})
				for row := range rows {
					part := distrib.AsDense(u)[row*cols : (row+1)*cols]
					single[name].Apply(v[row*cols:(row+1)*cols], cols, &distrib.Entry{
						Ref: distrib.Ref{Row: int32(row), N: 1}, U: part})
				}
			}
			if !slices.Equal(w, v) {
				t.Fatalf("%s: %v together, %v row by row", name, w, v)
			}
		}
	})
}

// TestRulesGoOnFromTheirState: what is saved and loaded goes on as if nothing had been.
func TestRulesGoOnFromTheirState(t *testing.T) {
	const cols = 5
	for name, rule := range allRules() {
		rng := rand.New(rand.NewPCG(7, 7))
		w := normals(rng, cols)
		at := distrib.Entry{Ref: distrib.Ref{Param: 2, Row: 3, N: 1}}
		step := func(r distrib.Rule, w []float32, g distrib.Dense) {
			e := at
			e.U, e.Tag = g, r.Snapshot(e.Ref)
			r.Apply(w, cols, &e)
		}
		for range 40 {
			step(rule, w, normals(rng, cols))
		}
		moved, other := allRules()[name], slices.Clone(w)
		if s, ok := rule.(distrib.Stateful); ok {
			state := s.Save(nil, 2, 3, cols)
			if err := moved.(distrib.Stateful).Load(2, 3, cols, state); err != nil {
				t.Fatal(err)
			}
			most := s.StateBytes([]*distrib.Param{{Rows: 1, Cols: cols}})
			if have := int64(4 * len(state)); have > most || have == 0 {
				t.Errorf("%s: %d bytes of state where %d are the most", name, have, most)
			}
			if none := s.Save(nil, 2, 4, cols); len(none) != 0 {
				t.Errorf("%s: a row without updates has a state", name)
			}
		}
		for range 40 {
			g := normals(rng, cols)
			step(rule, w, g)
			step(moved, other, g)
		}
		if !slices.Equal(w, other) {
			t.Errorf("%s: %v, and from the state %v", name, w, other)
		}
	}
}

func TestRulesRefuseForeignState(t *testing.T) {
	for name, rule := range allRules() {
		s, ok := rule.(distrib.Stateful)
		if !ok {
			continue
		}
		var shape *distrib.ShapeError
		if err := s.Load(0, 0, 4, make([]float32, 7)); !errors.As(err, &shape) {
			t.Errorf("%s: %v", name, err)
		}
		rule.Apply(make([]float32, 4), 4, &distrib.Entry{U: distrib.Dense{1, 2, 3, 4}})
		if err := s.Load(0, 0, 4, nil); err != nil || len(s.Save(nil, 0, 0, 4)) != 0 {
			t.Errorf("%s: no state does not forget one; %v", name, err)
		}
	}
}

// TestRulesAsPyTorch: Momentum as torch.optim.SGD, Adam as torch.optim.AdamW.
func TestRulesAsPyTorch(t *testing.T) {
	longtest.Skip(t)
	const n, steps = 6, 50
	rng := rand.New(rand.NewPCG(3, 3))
	start := normals(rng, n)
	var grads [][]float32
	for range steps {
		grads = append(grads, normals(rng, n))
	}
	var want map[string][]float32
	askPython(t, `
def run(make):
    w = torch.tensor(x["start"], requires_grad=True)
    opt = make([w])
    for g in x["grads"]:
        w.grad = torch.tensor(g)
        opt.step()
    return w.tolist()
print(json.dumps({
    "momentum": run(lambda w: torch.optim.SGD(w, lr=0.1, momentum=0.9)),
    "adam": run(lambda w: torch.optim.AdamW(w, lr=0.01, weight_decay=0.1)),
}))`, map[string]any{"start": start, "grads": grads}, &want)
	for name, rule := range map[string]distrib.Rule{
		"momentum": &distrib.Momentum{Mu: 0.9},
		"adam":     &distrib.Adam{LR: 0.01, Decay: 0.1},
	} {
		w := slices.Clone(start)
		for _, g := range grads {
			u := slices.Clone(distrib.Dense(g))
			if name == "momentum" {
				u = make(distrib.Dense, n)
				distrib.Dense(g).AddTo(u, n, -0.1)
			}
			rule.Apply(w, n, &distrib.Entry{U: u})
		}
		for i := range w {
			if math.Abs(float64(w[i]-want[name][i])) > 1e-5 {
				t.Errorf("%s: element %d is %v, PyTorch's %v", name, i, w[i], want[name][i])
			}
		}
	}
}

// TestAdaRevisionWithoutDelayIsAdaGrad, to the bit.
func TestAdaRevisionWithoutDelayIsAdaGrad(t *testing.T) {
	const n = 8
	rng := rand.New(rand.NewPCG(5, 5))
	rule := &distrib.AdaRevision{Alpha: 0.5}
	w, ref, squares := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range squares {
		squares[i] = 1
	}
	for range 100 {
		g := normals(rng, n)
		r := distrib.Ref{N: 1}
		tag := rule.Snapshot(r)
		rule.Apply(w, n, &distrib.Entry{Ref: r, Tag: tag, U: distrib.Dense(g)})
		rule.Release(r, tag)
		for i, v := range g {
			squares[i] += float32(v * v)
			rate := float32(0.5) / float32(math.Sqrt(float64(squares[i])))
			ref[i] -= float32(rate * v)
		}
	}
	if !slices.Equal(w, ref) {
		t.Errorf("%v, AdaGrad %v", w, ref)
	}
	if rule.Live() != 0 {
		t.Errorf("%d snapshots are left", rule.Live())
	}
}

// revisions is AdaRevision in double precision for one element, with the sum of gradients
// of every version.
type revisions struct {
	alpha, w, z, top float64
	sums             []float64
}

func (r *revisions) apply(g float64, from int) {
	now := r.sums[len(r.sums)-1]
	missed := now - r.sums[from]
	before := r.alpha / math.Sqrt(r.top)
	r.z += g*g + 2*g*missed
	r.top = max(r.top, r.z)
	rate := r.alpha / math.Sqrt(r.top)
	r.w += -rate*g + (before-rate)*missed
	r.sums = append(r.sums, now+g)
}

// TestAdaRevisionWithDelay: several workers that refresh when they like, and sometimes one
// of two rows, compared with a reference that remembers everything.
func TestAdaRevisionWithDelay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rows = 2
		rule := &distrib.AdaRevision{Alpha: 0.3, Snapshots: 100}
		var ref [rows]revisions
		for i := range ref {
			ref[i] = revisions{alpha: 0.3, z: 1, top: 1, sums: []float64{0}}
		}
		w := make([]float32, rows)
		type held struct {
			tag  distrib.Version
			from int
		}
		workers := rapid.IntRange(1, 4).Draw(t, "workers")
		have := make([][rows]held, workers)
		refresh := func(worker, row int, first bool) {
			h, r := &have[worker][row], distrib.Ref{Row: int32(row), N: 1}
			old := h.tag
			h.tag, h.from = rule.Snapshot(r), len(ref[row].sums)-1
			if !first {
				rule.Release(r, old)
			}
		}
		for i := range workers * rows {
			refresh(i/rows, i%rows, true)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			worker, row := rapid.IntRange(0, workers-1).Draw(t, "worker"),
				rapid.IntRange(0, rows-1).Draw(t, "row")
			if rapid.Bool().Draw(t, "refresh") {
				refresh(worker, row, false)
				continue
			}
			g := float32(rapid.IntRange(-16, 16).Draw(t, "g")) / 8
			h := have[worker][row]
			rule.Apply(w[row:row+1], 1, &distrib.Entry{
				Ref: distrib.Ref{Row: int32(row), N: 1}, Tag: h.tag, U: distrib.Dense{g}})
			ref[row].apply(float64(g), h.from)
		}
		for row := range rows {
			if math.Abs(float64(w[row])-ref[row].w) > 1e-4 {
				t.Fatalf("row %d: %v, reference %v", row, w[row], ref[row].w)
			}
		}
		for i := range workers * rows {
			rule.Release(distrib.Ref{Row: int32(i % rows), N: 1}, have[i/rows][i%rows].tag)
		}
		if rule.Live() != 0 || rule.Forgotten != 0 {
			t.Fatalf("%d snapshots are left, %d forgotten", rule.Live(), rule.Forgotten)
		}
	})
}

// TestAdaRevisionKeepsToItsCap: also when nobody ever releases, and steps stay finite.
func TestAdaRevisionKeepsToItsCap(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	rule := &distrib.AdaRevision{Alpha: 0.3, Snapshots: 5}
	w := make([]float32, 3*4)
	var tags []distrib.Version
	full := false
	for step := range 200 {
		r := distrib.Ref{Row: int32(step % 3), N: 1}
		tags = append(tags, rule.Snapshot(r))
		tag := tags[rng.IntN(len(tags))]
		rule.Apply(w[4*r.Row:][:4], 4, &distrib.Entry{Ref: r, Tag: tag,
			U: distrib.Dense(normals(rng, 4))})
		if rule.Live() > 5 {
			t.Fatalf("%d snapshots", rule.Live())
		}
		full = full || rule.Full()
	}
	if !full || rule.Forgotten == 0 {
		t.Errorf("never full, %d forgotten", rule.Forgotten)
	}
	if norm := distrib.Dense(w).Norm(); !(norm < 100) {
		t.Errorf("the weights are %v", w)
	}
	for row := range 3 {
		rule.Drop(0, int32(row))
	}
	if rule.Live() != 0 {
		t.Errorf("%d snapshots of no rows", rule.Live())
	}
}

// TestMovedRowsCountAsJustSent: updates from values of before a row came here have missed
// what came since, and nothing of what came with it.
func TestMovedRowsCountAsJustSent(t *testing.T) {
	const cols = 2
	r := distrib.Ref{Row: 4, N: 1}
	entry := func(tag distrib.Version, v float32) *distrib.Entry {
		return &distrib.Entry{Ref: r, Tag: tag, U: distrib.Dense{v, v}}
	}
	from := &distrib.AdaRevision{Alpha: 1}
	w := make([]float32, cols)
	for range 5 {
		from.Apply(w, cols, entry(from.Snapshot(r), 2))
	}
	run := func(followed bool) []float32 {
		to, w := &distrib.AdaRevision{Alpha: 1}, slices.Clone(w)
		old := to.Snapshot(r) // before the row is there
		if err := to.Load(0, 4, cols, from.Save(nil, 0, 4, cols)); err != nil {
			t.Fatal(err)
		}
		if !followed {
			old = to.Snapshot(r)
		}
		to.Apply(w, cols, entry(to.Snapshot(r), 1))
		to.Apply(w, cols, entry(old, 1))
		return w
	}
	if a, b := run(true), run(false); !slices.Equal(a, b) {
		t.Errorf("%v from a value of before, %v from one of just after", a, b)
	}
}

// TestAdaRevisionSharesSnapshots: clients with the same version are one snapshot.
func TestAdaRevisionSharesSnapshots(t *testing.T) {
	rule := &distrib.AdaRevision{Alpha: 1}
	all := distrib.Ref{}
	rule.Apply(make([]float32, 2), 1, &distrib.Entry{U: distrib.Dense{1, 1}})
	for range 10 {
		rule.Snapshot(all)
	}
	if rule.Live() != 2 {
		t.Errorf("%d snapshots of two rows", rule.Live())
	}
	for range 10 {
		rule.Release(all, rule.Snapshot(all))
		rule.Release(all, 2)
	}
	if rule.Live() != 0 {
		t.Errorf("%d snapshots are left", rule.Live())
	}
}
