package command

import (
	"cmp"
	"fmt"
	"math"

	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
)

// rateFlags say how the learning rate runs, where it is not to be the model's own.
type rateFlags struct {
	LR       positive `name:"lr" group:"training" placeholder:"RATE"`
	Schedule string   `group:"training" enum:"${forms}" default:"" placeholder:"FORM"`
	Warmup   *whole   `group:"training" placeholder:"STEPS"`
}

// given reports whether any of them is.
func (f rateFlags) given() bool { return f.LR > 0 || f.Schedule != "" || f.Warmup != nil }

// shape is what a schedule is made of: its form, its peak and its warm-up.
type shape struct {
	form   string
	peak   float64
	warmup int
}

// shapeOf takes a model's own schedule apart.
func shapeOf(s nn.Schedule) shape {
	switch s := s.(type) {
	case nn.InverseSqrt:
		return shape{"inverse-sqrt", s.Scale / math.Sqrt(math.Max(1, float64(s.Warmup))), s.Warmup}
	case nn.Stepwise:
		return shape{"step", s.Rate, s.Warmup}
	case nn.CosineDecay:
		return shape{"cosine", s.Rate, s.Warmup}
	case nn.LinearDecay:
		return shape{"linear", s.Rate, s.Warmup}
	}
	return shape{"constant", float64(s.At(0)), 0}
}

// apply gives a model the learning rate of the flags, over so many steps, and enters them in
// what its checkpoints keep. What is not given is the model's own.
func (f rateFlags) apply(m *models.Model, steps int, numbers map[string]string) error {
	if !f.given() {
		return nil
	}
	own := shapeOf(m.Schedule)
	want := shape{cmp.Or(f.Schedule, own.form), cmp.Or(float64(f.LR), own.peak),
		min(own.warmup, steps/10)} // the model's is for a run of the model's length
	if f.Warmup != nil {
		want.warmup = int(*f.Warmup)
	}
	m.Schedule = want.over(steps)
	if v, ok := m.Schedule.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return usagef("--schedule %s: %w", want.form, err)
		}
	}
	numbers["learning rate"] = want.String()
	if want.form != "constant" && want.form != "inverse-sqrt" {
		numbers["learning rate"] += fmt.Sprintf(" over %d steps", steps)
	}
	return nil
}

// over is the schedule of a run of so many steps: a tenth of the peak is left at the end of
// a cosine, none at that of a line, and steps are at a half and at three quarters.
func (s shape) over(steps int) nn.Schedule {
	switch s.form {
	case "linear":
		return nn.LinearDecay{Rate: s.peak, Warmup: s.warmup, Total: steps}
	case "cosine":
		return nn.CosineDecay{Rate: s.peak, Warmup: s.warmup, Total: steps, Floor: 0.1}
	case "inverse-sqrt":
		warmup := max(1, s.warmup)
		return nn.InverseSqrt{Scale: s.peak * math.Sqrt(float64(warmup)), Warmup: warmup}
	case "step":
		return nn.Stepwise{Rate: s.peak, Warmup: s.warmup, Drops: [4]int{steps / 2, steps * 3 / 4}}
	}
	return nn.Stepwise{Rate: s.peak, Warmup: s.warmup}
}

// String is the shape in words.
func (s shape) String() string {
	return fmt.Sprintf("%s, %.4g after %d steps", s.form, s.peak, s.warmup)
}
