package nn_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/nn"
)

// TestSchedules: rates at the corners of every schedule.
func TestSchedules(t *testing.T) {
	for _, test := range []struct {
		schedule nn.Schedule
		want     map[int]float64
	}{
		{nn.Constant(0.25), map[int]float64{0: 0.25, 1 << 20: 0.25}},
		{nn.InverseSqrt{Scale: 2, Warmup: 4}, map[int]float64{0: 0.25, 3: 1, 15: 0.5, 99: 0.2}},
		{nn.InverseSqrt{Scale: 2, Warmup: 4, Total: 100, Decay: 10},
			map[int]float64{3: 1, 95: 2 / math.Sqrt(96) / 2, 100: 0, 200: 0}},
		{nn.Stepwise{Rate: 1, Warmup: 2, Drops: [4]int{10, 20}},
			map[int]float64{0: 0.5, 1: 1, 9: 1, 10: 0.1, 20: 0.01}},
		{nn.LinearDecay{Rate: 1, Warmup: 10, Total: 110},
			map[int]float64{0: 0.1, 9: 1, 10: 1, 60: 0.5, 110: 0, 999: 0}},
		{nn.LinearDecay{Rate: 2, Total: 100, Floor: 0.1}, map[int]float64{0: 2, 50: 1.1, 100: 0.2}},
		{nn.CosineDecay{Rate: 1, Warmup: 10, Total: 110},
			map[int]float64{0: 0.1, 10: 1, 60: 0.5, 35: 0.5 + math.Sqrt2/4, 110: 0, 999: 0}},
		{nn.CosineDecay{Rate: 2, Total: 100, Floor: 0.1}, map[int]float64{0: 2, 50: 1.1, 100: 0.2}},
	} {
		for step, want := range test.want {
			if have := float64(test.schedule.At(step)); math.Abs(have-want) > 1e-6 {
				t.Errorf("%#v at %d is %v, want %v", test.schedule, step, have, want)
			}
		}
	}
}

// TestSchedulesAreSmooth: a rate is positive until the end, never above its peak, and
// does not jump.
func TestSchedulesAreSmooth(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		warmup := rapid.IntRange(0, 50).Draw(rt, "warmup")
		total := warmup + rapid.IntRange(100, 300).Draw(rt, "steps")
		floor := rapid.Float64Range(0, 1).Draw(rt, "floor")
		for _, s := range []nn.Schedule{
			nn.LinearDecay{Rate: 1, Warmup: warmup, Total: total, Floor: floor},
			nn.CosineDecay{Rate: 1, Warmup: warmup, Total: total, Floor: floor},
		} {
			before := s.At(max(0, warmup-1))
			for step := warmup; step < total; step++ {
				now := s.At(step)
				if !(now > 0 && now <= 1 && now <= before && before-now < 0.02) {
					rt.Fatalf("%#v goes from %v to %v at %d", s, before, now, step)
				}
				before = now
			}
		}
	})
}

// TestBadSchedules: what no run can have is one line.
func TestBadSchedules(t *testing.T) {
	for want, s := range map[string]interface{ Validate() error }{
		"learning rate is 0":          nn.Constant(0),
		"learning rate is NaN":        nn.Constant(nan()),
		"learning rate is +Inf":       nn.LinearDecay{Rate: math.Inf(1), Total: 5},
		"scale is -1":                 nn.InverseSqrt{Scale: -1, Warmup: 1},
		"warm-up is 0 steps":          nn.InverseSqrt{Scale: 1},
		"over -1 of 0 steps":          nn.InverseSqrt{Scale: 1, Warmup: 1, Decay: -1},
		"warm-up is -1 steps":         nn.Stepwise{Rate: 1, Warmup: -1},
		"until step 5: want more":     nn.LinearDecay{Rate: 1, Warmup: 5, Total: 5},
		"ends at 1.5":                 nn.CosineDecay{Rate: 1, Total: 5, Floor: 1.5},
		"ends at NaN":                 nn.CosineDecay{Rate: 1, Total: 5, Floor: math.NaN()},
		"warm-up is -2 steps: want 0": nn.CosineDecay{Rate: 1, Warmup: -2, Total: 5},
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%#v: %v does not say %q", s, err, want)
		}
	}
	for _, s := range []interface{ Validate() error }{nn.Constant(1), nn.Stepwise{Rate: 1},
		nn.InverseSqrt{Scale: 1, Warmup: 1}, nn.LinearDecay{Rate: 1, Total: 1},
		nn.CosineDecay{Rate: 1, Warmup: 3, Total: 4, Floor: 1}} {
		if err := s.Validate(); err != nil {
			t.Errorf("%#v: %v", s, err)
		}
	}
}

// TestInitialValues: variances by fans, of matrices and of filters.
func TestInitialValues(t *testing.T) {
	variance := func(i graph.Init) float64 {
		switch i.Dist {
		case graph.Uniform:
			return i.Scale * i.Scale / 3
		case graph.Truncated:
			const cut = 0.87962566103423978
			return i.Scale * i.Scale * cut * cut
		case graph.Normal:
			return i.Scale * i.Scale
		}
		return 0
	}
	for name, test := range map[string]struct {
		init nn.Init
		want func(in, out float64) float64
	}{
		"glorot": {nn.Glorot, func(in, out float64) float64 { return 2 / (in + out) }},
		"glorot normal": {nn.GlorotNormal,
			func(in, out float64) float64 { return 2 / (in + out) }},
		"he":              {nn.He, func(in, _ float64) float64 { return 2 / in }},
		"he uniform":      {nn.HeUniform, func(in, _ float64) float64 { return 2 / in }},
		"lecun":           {nn.LeCun, func(in, _ float64) float64 { return 1 / in }},
		"lecun truncated": {nn.LeCunTruncated, func(in, _ float64) float64 { return 1 / in }},
		"lecun uniform":   {nn.LeCunUniform, func(in, _ float64) float64 { return 1 / (3 * in) }},
		"normal":          {nn.Normal(0.5), func(_, _ float64) float64 { return 0.25 }},
		"uniform":         {nn.Uniform(3), func(_, _ float64) float64 { return 3 }},
		"truncated": {nn.Truncated(1),
			func(_, _ float64) float64 { return 0.87962566103423978 * 0.87962566103423978 }},
		"zeros": {nn.Zeros, func(_, _ float64) float64 { return 0 }},
	} {
		m := nn.NewModel()
		c := m.Training()
		for v, fans := range map[graph.Value][2]float64{
			c.Param("matrix", test.init, 5, 7):        {5, 7},
			c.Param("filters", test.init, 4, 3, 2, 6): {36, 48},
			c.Param("vector", test.init, 9):           {9, 9},
			c.Param("scalar", test.init):              {1, 1},
		} {
			have, want := variance(v.Node.Init), test.want(fans[0], fans[1])
			if math.Abs(have-want) > 1e-9*(1+want) {
				t.Errorf("%s: variance of %s is %v, want %v", name, v, have, want)
			}
		}
	}
	for want, init := range map[float64]nn.Init{1: nn.Ones, 0.5: nn.Fill(0.5), 0: nil} {
		v := nn.NewModel().Training().Param("v", init, 3)
		if i := v.Node.Init; i.Dist != graph.Constant || i.Scale != want {
			t.Errorf("starts as %+v, want %v", i, want)
		}
	}
}
