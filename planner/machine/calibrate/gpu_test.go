//go:build linux && amd64 && !nocuda

package calibrate_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/internal/device/cuda/emu"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/machine/calibrate"
)

// TestGPU: the rates of a GPU and its link are measured once; all operations that it runs are
// timed, also those that read indices; what the host updates has the host's times.
func TestGPU(t *testing.T) {
	longtest.Skip(t)
	dir := emu.Dir(t)
	t.Setenv("GOMEM_CUDA_PATH", dir)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache")) // of kernels
	o := calibrate.Options{Limit: plenty, Cache: fresh(t), Threads: 1, Bytes: 1 << 24}
	m, err := calibrate.OpenGPU(t.Context(), 0, o)
	if err != nil {
		t.Fatal(err)
	}
	if l := m.Link(); !(l.In > 0 && l.Out > 0 && l.Both > 0) {
		t.Errorf("the link is %+v", l)
	}
	p := m.Local().Profile
	if p.Check() != nil || p.About != "emulated" || p.Latency <= 0 || p.In != m.Link().Both {
		t.Errorf("profile %+v, %v", p, p.Check())
	}
	nodes := reader(t)
	if err := m.Measure(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	l := m.Local()
	timed(t, l, nodes)
	prices := l.For("", nodes)
	for _, n := range nodes {
		if n.Phase != graph.Update || !n.Executes() {
			continue
		}
		if want, ok := l.Host.Measured[machine.Signature(n)]; !ok ||
			prices.Time(n, space.Host) != want {
			t.Errorf("%s takes %s on the host, measured %s", n.Name, prices.Time(n, space.Host),
				want)
		}
	}
	again, err := calibrate.OpenGPU(t.Context(), 0, o)
	if err != nil || !again.When().Equal(m.When()) || again.Link() != m.Link() ||
		len(again.Local().Measured) != len(l.Measured) {
		t.Errorf("it is measured again, %v", err)
	}
	if _, err := calibrate.OpenGPU(t.Context(), 7, o); err == nil ||
		!strings.Contains(err.Error(), "no GPU 7: the machine has 1") {
		t.Errorf("a GPU that is not there: %v", err)
	}
}

// reader is a training step that looks things up.
func reader(t *testing.T) []*graph.Node {
	t.Helper()
	m := nn.NewModel()
	x, y := m.Input("x", graph.I32, 4, 3), m.Input("y", graph.I32, 4)
	h := nn.Embedding(m.Training().In("table"), x, 11, 8)
	h = nn.Linear(m.Training().In("out"), ops.Mean(h, 1), 5)
	m.Minimize(nn.CrossEntropy(h, y), nn.Adam{})
	if err := m.Graph.Err(); err != nil {
		t.Fatal(err)
	}
	return m.Graph.Nodes()
}
