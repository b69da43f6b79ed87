package program

import (
	"context"
	"fmt"
	"time"
)

// Pass is one decision.
type Pass struct {
	Name string
	Run  func(*Program) error
}

// Timing is how long a pass took.
type Timing struct {
	Pass string
	Took time.Duration
}

// Run applies the passes in order and checks the program after each. Errors
// carry the pass's name.
func Run(ctx context.Context, p *Program, passes []Pass) ([]Timing, error) {
	var timings []Timing
	for _, pass := range passes {
		if err := ctx.Err(); err != nil {
			return timings, err
		}
		start := time.Now()
		err := pass.Run(p)
		if err == nil {
			err = p.check()
		}
		if err != nil {
			return timings, fmt.Errorf("pass %s: %w", pass.Name, err)
		}
		timings = append(timings, Timing{pass.Name, time.Since(start)})
	}
	return timings, nil
}
