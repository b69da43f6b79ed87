package command

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/distrib/gbt"
	"github.com/gomem/gomem/distrib/snapshot"
	"github.com/gomem/gomem/distrib/workload"
	"github.com/gomem/gomem/internal/workers"
)

// maxSample bounds a line that has a sample, in bytes.
const maxSample = 16 << 20

// says is a task that predicts by what is learnt.
type says interface {
	runner
	Says(learnt workload.State) (workload.Says, error)
}

// tables predicts with a model without layers.
func (c *predictCmd) tables(e *env, run tablesRun) error {
	for _, o := range slices.Concat(c.given(), c.planFlags.given()) {
		if o.given && (o.name != "top" || !slices.Contains([]string{"lda", "mlr", "mf"},
			run.Model)) {
			return usagef("--%s does nothing for %s, which the tables are of: leave it out",
				o.name, run.Model)
		}
	}
	r := newReply(e, c.JSON, "")
	var err error
	switch {
	case run.LDA != nil:
		err = c.topics(e, run, r)
	case run.Matrix != nil:
		err = c.elements(e, run, r)
	case run.Shape != nil:
		err = c.samples(e, run, r)
	default:
		err = fmt.Errorf("%s: the run there was saved by a version that predicted nothing with "+
			"--model %s: go on for an epoch with train --resume, and it can be", c.From, run.Model)
	}
	if err == nil && r.failed > 0 {
		err = errSome
	}
	return err
}

// learnt is what the newest snapshot of a run has of a task.
func learnt(from location, task runner) (workload.State, error) {
	s, err := workers.ReadSnapshot(snapshot.Open(string(from)), tablesAfter(task))
	if err != nil {
		return workload.State{}, err
	}
	return s.State, nil
}

// predictor is the task that a run is of, without its data.
func (run tablesRun) predictor() (says, error) {
	if err := run.Shape.Check(); err != nil {
		return nil, err
	}
	like := run.Shape.Empty()
	switch run.Model {
	case "mlr":
		return &workload.MLR{Train: like}, nil
	case "lr":
		return &workload.LR{Train: like}, nil
	case "lasso", "l1-lr":
		return &workload.L1{Train: like}, nil
	case "gbt":
		if run.Trees != nil {
			m, err := run.Trees.model(1, 1, 0)
			if err != nil {
				return nil, err
			}
			m.Train = like
			return m, nil
		}
	}
	return nil, fmt.Errorf("it says too little of its --model %s", run.Model)
}

// samples says something of each line of the inputs.
func (c *predictCmd) samples(e *env, run tablesRun, r *reply) error {
	task, err := run.predictor()
	if err != nil {
		return fmt.Errorf("%s: %w", c.From, err)
	}
	state, err := learnt(c.From, task)
	if err != nil {
		return err
	}
	says, err := task.Says(state)
	if err != nil {
		return fmt.Errorf("%s: %w", c.From, err)
	}
	show := run.shown(int(c.Top))
	inputs := slices.Clone(c.Inputs)
	for i := range inputs {
		inputs[i] = strings.TrimPrefix(inputs[i], "libsvm:")
	}
	lines := newLineReader(inputs, e.stdin, maxSample)
	for q, ok := lines.one(); ok; q, ok = lines.one() {
		index, value, there, err := run.Shape.Sample(q.Value)
		if err = cmp.Or(q.Err, err); err != nil {
			r.fail(q.Input, q.Line, err)
		} else if there {
			x, text := show(says(index, value))
			r.predicted(q, x, text)
		}
	}
	return nil
}

// predicted shows what is said of a line.
func (r *reply) predicted(q question[string], x map[string]any, text string) {
	x["type"], x["input"], x["line"] = "prediction", q.Input, q.Line
	r.show(x, text+"\n")
}

// labelShare is a class, as files call it, and how likely it is.
type labelShare struct {
	Class int     `json:"class"`
	Share float64 `json:"share"`
}

// shown is how what a model says is shown: of some classes the likeliest, if more than one is
// wanted.
func (run tablesRun) shown(top int) func(said []float64) (map[string]any, string) {
	switch {
	case run.Model == "mlr":
		return func(said []float64) (map[string]any, string) {
			var all []labelShare
			for _, t := range about(said, max(top, 1)) {
				all = append(all, labelShare{run.Shape.Class(t.Topic), t.Share})
			}
			x := map[string]any{"class": all[0].Class, "classes": all}
			if top == 0 {
				return x, strconv.Itoa(all[0].Class)
			}
			return x, spaced(all, func(c labelShare) string {
				return fmt.Sprintf("%d:%.3f", c.Class, c.Share)
			})
		}
	case run.Shape.Numbers || run.Trees != nil && run.Trees.Loss == gbt.Squares.String():
		return func(said []float64) (map[string]any, string) {
			return map[string]any{"value": said[0]}, fmt.Sprintf("%.6g", said[0])
		}
	}
	return func(said []float64) (map[string]any, string) {
		class := 0
		if said[0] > 0.5 {
			class = 1
		}
		return map[string]any{"class": run.Shape.Class(class), "probability": said[0]},
			fmt.Sprintf("%.6g", said[0])
	}
}

// spaced is texts with spaces between them.
func spaced[T any](all []T, text func(T) string) string {
	texts := make([]string, len(all))
	for i, x := range all {
		texts[i] = text(x)
	}
	return strings.Join(texts, " ")
}
