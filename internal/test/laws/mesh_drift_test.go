package laws_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// drift is what a model's variables are after some steps; nudged, from weights that begin a
// unit in the last place beside where they would, up and down in turns.
func drift(t *testing.T, m *models.Model, o gomem.Options, steps int, nudged bool) (out []byte) {
	t.Helper()
	ctx := context.Background()
	o.Seed = 3
	s, err := gomem.Compile(ctx, m.Graph, o, train.Targets(&m.Model)...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	is := train.Learnt(m.Graph)
	learnt := slices.DeleteFunc(s.Variables(), func(v graph.Value) bool { return !is(v) })
	for i, v := range learnt {
		if !nudged {
			break
		}
		x, err := s.Get(v)
		if err != nil {
			t.Fatal(err)
		}
		for k, w := range x.F32() {
			x.F32()[k] = math.Nextafter32(w, float32(math.Inf(1-2*((i+k)%2))))
		}
		if err := s.Set(v, x); err != nil {
			t.Fatal(err)
		}
	}
	feeds := thesis.Feeds(m)
	for step := range steps {
		feeds[m.Seed], feeds[m.Step] = gomem.Pair(3, int32(step)), gomem.Scalar(float32(step+1))
		for _, objective := range m.Objectives {
			if _, err := s.Step(ctx, objective.Name, feeds); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, v := range learnt {
		x, err := s.Get(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x.Data...)
	}
	return out
}

// TestMeshesDrift: after 30 steps the weights of a divided model are at most three times as
// far from those of the whole one as the whole one's own are, had they begun a unit in the
// last place beside.
func TestMeshesDrift(t *testing.T) {
	longtest.Skip(t)
	steps := longtest.Count(4, 30)
	for name, list := range meshesOf {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := meshed(name, "s512")
			if err != nil {
				t.Fatal(err)
			}
			want := drift(t, m, gomem.Options{}, steps, false)
			control := apart(want, drift(t, m, gomem.Options{}, steps, true))
			for _, x := range list {
				var o gomem.Options
				if o.Mesh, err = mesh.Parse(x[0], x[1]); err != nil {
					t.Fatal(err)
				}
				got := apart(want, drift(t, m, o, steps, false))
				t.Logf("%s: %.1e, the control %.1e", o.Mesh, got, control)
				if !(got <= 3*control) {
					t.Errorf("%s: weights are off by %.1e after %d steps, a control run by %.1e",
						o.Mesh, got, steps, control)
				}
			}
		})
	}
}
