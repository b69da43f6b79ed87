package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/gomem/gomem/internal/profile"
	"github.com/gomem/gomem/plan"
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

// list prints the steps that meet the conditions.
func (s stepsFlag) list(w, stderr io.Writer, p *plan.Plan) error {
	found := false
	for i := range p.Steps {
		if !s.query.Selects(p, i) {
			continue
		}
		found = true
		if _, err := fmt.Fprintln(w, p.StepString(i)); err != nil {
			return err
		}
	}
	if !found {
		fmt.Fprintf(stderr, "gomem: none of %s meets the conditions\n",
			counted(len(p.Steps), "step"))
	}
	return nil
}
