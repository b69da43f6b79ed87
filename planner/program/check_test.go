package program_test

import (
	"context"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/placement"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/program"
	"github.com/gomem/gomem/planner/schedule"
	"github.com/gomem/gomem/swap"
)

// TestScheduleIsChecked: a schedule that touches what is not there is refused, with
// the event or the stay.
func TestScheduleIsChecked(t *testing.T) {
	copied := func(s *program.Schedule) *program.Event {
		for i := range s.Events {
			if s.Events[i].Copies() && s.Events[i].Reason == space.SwapIn {
				return &s.Events[i]
			}
		}
		t.Fatal("nothing is swapped")
		return nil
	}
	executed := func(s *program.Schedule) *program.Event {
		for i := range s.Events {
			if e := &s.Events[i]; !e.Copies() && len(e.Out) > 0 && len(e.In) > 1 {
				return e
			}
		}
		t.Fatal("nothing runs")
		return nil
	}
	for want, spoil := range map[string]func(s *program.Schedule){
		"stream 9 of":      func(s *program.Schedule) { executed(s).Stream = 9 },
		"partition 5":      func(s *program.Schedule) { executed(s).Part += 500 },
		"stay -5 of":       func(s *program.Schedule) { executed(s).In[0] = -5 },
		"is not in stay":   func(s *program.Schedule) { e := executed(s); e.In[0] = e.In[1] },
		"1 operands":       func(s *program.Schedule) { e := executed(s); e.In = e.In[:1] },
		"result 0 goes to": func(s *program.Schedule) { e := executed(s); e.Out[0] = e.In[0] },
		"before it is":     func(s *program.Schedule) { e := copied(s); e.Src = e.Dst },
		"on the host":      func(s *program.Schedule) { e := copied(s); e.Dst = e.Src },
		"is there from":    func(s *program.Schedule) { s.Stays[copied(s).Dst].From++ },
		"from event":       func(s *program.Schedule) { s.Stays[copied(s).Dst].To = 1 << 30 },
		"comes after it":   func(s *program.Schedule) { s.Stays[4].Over = 4 },
		"has bytes 64 to":  func(s *program.Schedule) { s.Stays[copied(s).Dst].Off = 64 },
		"copies more of":   func(s *program.Schedule) { s.Stays[copied(s).Src].Bytes-- },
		"is never written": func(s *program.Schedule) { s.Fetches[0] = 1 << 20 },
		"is of a view":     func(s *program.Schedule) { s.Stays[0].Value = view(t) },
		"takes over stay 0 ": func(s *program.Schedule) {
			s.Stays[9].Over, s.Stays[9].Bytes = 0, 1<<40
		},
	} {
		m := randgraph.Synthetic(200)
		p := program.New(m.Graph, m.Fetches, m.Updates)
		passes := []program.Pass{program.DeadCode(), partition.Pass(partition.DFS, 5),
			placement.Pass(true), swap.LookAhead(1),
			schedule.Pass(schedule.Options{Partition: 5, Streams: 1, Lookahead: 1})}
		if _, err := program.Run(context.Background(), p, passes); err != nil {
			t.Fatal(err)
		}
		_, err := program.Run(context.Background(), p, []program.Pass{{Name: "spoiler",
			Run: func(p *program.Program) error { spoil(p.Schedule); return nil }}})
		if err == nil || !strings.HasPrefix(err.Error(), "pass spoiler: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v", want, err)
		}
	}
}

// view is a value that is another's bytes.
func view(t *testing.T) graph.Value {
	g := graph.New()
	return ops.ReshapeSizes(g.Input("x", tensor.Of(graph.F32, 4, 2)), 8)
}
