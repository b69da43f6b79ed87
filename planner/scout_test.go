package planner

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
)

// layered is a model of so many layers, and what it is trained and evaluated by.
func layered(t *testing.T, layers int) (*graph.Graph, []Target) {
	t.Helper()
	c, err := models.NewTransformerConfig("s512")
	c.Layers = layers
	m, err := built(c, err, models.Transformer)
	if err != nil {
		t.Fatal(err)
	}
	return m.Graph, targetsOf(m)
}

// TestScout: what a scout says fits does, what it is sure of that it does not does not, and a
// refusal that is a guess is of what it has left out.
func TestScout(t *testing.T) {
	longtest.Skip(t)
	r := rand.New(rand.NewPCG(1, 2))
	guessed := 0
	for round := range longtest.Count(3, 60) {
		o := Options{Policy: Auto, Effort: 40, DeviceBytes: 200<<10 + r.Int64N(400<<10),
			HostBytes: 512<<10 + r.Int64N(3<<20)}
		var scout Scout
		surveyed := round%2 == 0
		for _, layers := range []int{1, 2} {
			if !surveyed {
				continue
			}
			g, targets := layered(t, layers)
			if err := scout.Survey(t.Context(), layers, g, o, targets...); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			layers := 1 + r.IntN(longtest.Count(5, 8))
			g, targets := layered(t, layers)
			w, err := scout.Weigh(t.Context(), layers, g, o, targets...)
			if err != nil || w.Load <= 0 || w.Fits != (w.Load <= 1) || w.Fits && !w.Sure {
				t.Fatalf("%+v, %v", w, err)
			}
			err = Fits(t.Context(), g, o, targets...)
			_, refused := errors.AsType[*ErrOutOfMemory](err)
			switch {
			case err != nil && !refused:
				t.Fatal(err)
			case w.Fits && refused, w.Sure && w.Fits == refused, !surveyed && i == 0 && !w.Sure:
				t.Fatalf("%d layers in %s: the scout says %+v, Fits %v", layers, o, w, err)
			case !w.Sure:
				guessed++
			}
		}
	}
	if guessed == 0 && longtest.Enabled() {
		t.Error("nothing was left out")
	}
}

// TestScoutOfNothing: errors are those of Fits.
func TestScoutOfNothing(t *testing.T) {
	var scout Scout
	want := Fits(t.Context(), nil, Options{}, Target{})
	_, err := scout.Weigh(t.Context(), 1, nil, Options{}, Target{})
	survey := scout.Survey(t.Context(), 1, nil, Options{}, Target{})
	if want == nil || err == nil || err.Error() != want.Error() || survey == nil ||
		survey.Error() != want.Error() {
		t.Errorf("%v and %v, want %v", err, survey, want)
	}
}

// TestTrend: a line through the latest two loads, and more doubt the farther it goes.
func TestTrend(t *testing.T) {
	var none trend
	one := none.learn(10, 0.5)
	two := one.learn(20, 0.75)
	for _, c := range []struct {
		trend
		number, load float64
		hopeless     bool
	}{
		{none, 1e6, 0, false},
		{one, 20, 1, false},
		{one, 24, 1.2, true},
		{two, 30, 1, false},
		{two, 36, 1.15, true},
		{two.learn(40, 1.25), 30, 1, false},
		{two.learn(40, 1.25), 41, 1.275, true},
		{two.learn(30, 1), 31, 1.025, false},
		{two.learn(30, 1), 33, 1.075, true},
		{two.learn(20, 1), 30, 1.5, true}, // the same number again
		{none.learn(1, 0.011).learn(2, 0.022), 100, 1.1, false},
		{none.learn(1, 0.02).learn(2, 0.04), 100, 2, true},
	} {
		if got := c.at(c.number); math.Abs(got-c.load) > 1e-9 ||
			c.trend.hopeless(c.number) != c.hopeless {
			t.Errorf("%v at %v: %v, want %v; hopeless: %t, want %t", c.trend, c.number, got,
				c.load, !c.hopeless, c.hopeless)
		}
	}
}
