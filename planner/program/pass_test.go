package program_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/partition"
	"github.com/gomem/gomem/planner/program"
)

// TestDeadCode: what neither a fetch nor an update needs does not live.
func TestDeadCode(t *testing.T) {
	m := randgraph.Synthetic(60)
	p := program.New(m.Graph, m.Fetches, nil)
	if err := program.DeadCode().Run(p); err != nil {
		t.Fatal(err)
	}
	for _, u := range m.Updates {
		if p.Live[u] {
			t.Error("an update lives that nobody asked for")
		}
	}
	if !p.Live[m.Fetches[0].Node.ID] || !p.Live[m.Inputs[0].Node.ID] {
		t.Error("a fetch or what it needs is dead")
	}
}

// TestRunChecksEveryPass: a pass that leaves a table in a state that cannot be
// is named.
func TestRunChecksEveryPass(t *testing.T) {
	good := []program.Pass{program.DeadCode(), partition.Pass(partition.DFS, 5)}
	for name, spoil := range map[string]func(p *program.Program){
		"missing node": func(p *program.Program) { p.SetOrder(p.Order[:len(p.Order)-1]) },
		"twice": func(p *program.Program) {
			p.SetOrder(append([]graph.NodeID{p.Order[0]},
				p.Order...))
		},
		"wrong order": func(p *program.Program) {
			p.Order[0], p.Order[9] = p.Order[9], p.Order[0]
			p.SetOrder(p.Order)
		},
		"partition gap": func(p *program.Program) { p.Part[p.Order[len(p.Order)-1]] += 2 },
		"falling":       func(p *program.Program) { p.Part[p.Order[7]] = 0 },
	} {
		m := randgraph.Synthetic(60)
		p := program.New(m.Graph, m.Fetches, m.Updates)
		bad := program.Pass{Name: "spoiler",
			Run: func(p *program.Program) error { spoil(p); return nil }}
		_, err := program.Run(context.Background(), p, append(good, bad))
		if err == nil || !strings.HasPrefix(err.Error(), "pass spoiler: ") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestRun(t *testing.T) {
	m := randgraph.Synthetic(60)
	p := program.New(m.Graph, m.Fetches, m.Updates)
	timings, err := program.Run(context.Background(), p,
		[]program.Pass{program.DeadCode(), partition.Pass(partition.DFS, 5)})
	if err != nil || len(timings) != 2 || timings[1].Pass != "partition" {
		t.Errorf("timings %v, %v", timings, err)
	}
	if p.Parts() != (len(p.Order)+4)/5 {
		t.Errorf("%d partitions of %d operations", p.Parts(), len(p.Order))
	}
	boom := errors.New("boom")
	_, err = program.Run(context.Background(), p,
		[]program.Pass{{Name: "x", Run: func(*program.Program) error { return boom }}})
	if !errors.Is(err, boom) {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := program.Run(ctx, p, []program.Pass{program.DeadCode()}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
