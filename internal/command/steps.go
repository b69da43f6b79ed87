package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/planner/simulate"
)

// stepsFlag is --steps, which may have conditions or not.
type stepsFlag struct {
	given bool
	query profile.Query
}

// Decode reads conditions where there are any: what comes next is one if it has an
// equals sign and is no flag.
func (s *stepsFlag) Decode(ctx *kong.DecodeContext) error {
	s.given = true
	next := ctx.Scan.Peek()
	text, ok := next.Value.(string)
	joined := next.Type == kong.FlagValueToken
	if !joined && (!ok || strings.HasPrefix(text, "-") || !strings.Contains(text, "=")) {
		return nil
	}
	ctx.Scan.Pop()
	var err error
	s.query, err = profile.ParseQuery(text)
	return err
}

// list prints the steps that meet the conditions. When they are done is simulated by the prices
// that plans are made by.
func (s stepsFlag) list(w, stderr io.Writer, p planned) error {
	steps, model := p.training(), p.Results[0].Model
	var run profile.Run
	took := ""
	if s.query.Timed() {
		t := simulate.Simulate(steps, p.Graph, model)
		run = profile.Simulated(t)
		took = fmt.Sprintf(", which take %.4g ms on %s,", milliseconds(t.Step), model.Name())
	}
	found := false
	for i := range steps.Steps {
		if !s.query.Selects(steps, run, i) {
			continue
		}
		found = true
		if _, err := fmt.Fprintln(w, steps.StepString(i)); err != nil {
			return err
		}
	}
	if !found {
		fmt.Fprintf(stderr, "gomem: none of %s%s meets the conditions\n",
			counted(len(steps.Steps), "step"), took)
	}
	return nil
}
