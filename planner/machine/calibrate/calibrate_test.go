package calibrate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/machine/calibrate"
)

// shared is a directory for a cache in which nothing but rates are kept.
var shared string

func TestMain(m *testing.M) {
	var err error
	if shared, err = os.MkdirTemp("", "calibrate-*"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		os.RemoveAll(shared)
		os.Exit(status)
	}))
}

// plenty is more time than any test takes.
const plenty = time.Hour

func open(t testing.TB, o calibrate.Options) *calibrate.Machine {
	t.Helper()
	m, err := calibrate.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// fresh is a directory with the cache of this machine's rates, and nothing else, so that
// they are measured once for all tests.
func fresh(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	path, _ := open(t, calibrate.Options{Cache: shared}).Cache()
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// timed demands that every node that executes has been timed.
func timed(t interface {
	Errorf(string, ...any)
}, l *machine.Local, nodes []*graph.Node) {
	for _, n := range nodes {
		if d, ok := l.Measured[machine.Signature(n)]; n.Executes() && (!ok || d <= 0) {
			t.Errorf("%s, %s, takes %s", n.Name, machine.Signature(n), d)
		}
	}
}

// TestModels: every operation of the five models is timed, though some demand indices
// and lengths that are in range.
func TestModels(t *testing.T) {
	longtest.Skip(t)
	const size = "s512"
	for name, model := range map[string]func() (*models.Model, error){
		"transformer": func() (*models.Model, error) {
			c, err := models.NewTransformerConfig(size)
			return build(c, err, models.Transformer)
		},
		"moe": func() (*models.Model, error) {
			c, err := models.NewMoEConfig(size)
			return build(c, err, models.MoE)
		},
		"moe, sparse": func() (*models.Model, error) {
			c, err := models.NewMoEConfig(size)
			c.Sparse = true
			return build(c, err, models.MoE)
		},
		"resnet": func() (*models.Model, error) {
			c, err := models.NewResNetConfig(size)
			return build(c, err, models.ResNet)
		},
		"wgan": func() (*models.Model, error) {
			c, err := models.NewWGANConfig(size)
			return build(c, err, models.WGAN)
		},
		"deepspeech": func() (*models.Model, error) {
			c, err := models.NewDeepSpeechConfig(size)
			return build(c, err, models.DeepSpeech)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := model()
			if err != nil {
				t.Fatal(err)
			}
			c := open(t, calibrate.Options{Cache: fresh(t), Limit: plenty})
			if err := c.Measure(t.Context(), m.Graph.Nodes()); err != nil {
				t.Fatal(err)
			}
			timed(t, c.Local(), m.Graph.Nodes())
		})
	}
}

func build[C any](c C, err error, model func(C) (*models.Model, error)) (*models.Model, error) {
	if err != nil {
		return nil, err
	}
	return model(c)
}

// TestRandomGraphs: all that random graphs have is timed, in parts if memory is short,
// and what is too large for it is priced nevertheless.
func TestRandomGraphs(t *testing.T) {
	cache := fresh(t)
	rapid.Check(t, func(t *rapid.T) {
		nodes := randgraph.Random(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") },
			8).Graph.Nodes()
		o := calibrate.Options{Cache: cache, Limit: plenty,
			Bytes: rapid.SampledFrom([]int64{64, 1 << 10, 1 << 12, 1 << 20}).Draw(t, "bytes")}
		c, err := calibrate.Open(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Measure(context.Background(), nodes); err != nil {
			t.Fatal(err)
		}
		if o.Bytes == 1<<20 {
			timed(t, c.Local(), nodes)
		}
		prices := c.Local().For("", nodes)
		for _, n := range nodes {
			if d := prices.Time(n, space.Device); n.Executes() != (d > 0) {
				t.Fatalf("%s takes %s", n.Name, d)
			}
		}
	})
}

// TestRates: the machine's own rates make a profile.
func TestRates(t *testing.T) {
	l := open(t, calibrate.Options{Cache: fresh(t)}).Local()
	m := l.For("", nil)
	if err := l.Profile.Check(); err != nil || m.Kappa() <= 0 || m.Shared() <= 0 {
		t.Errorf("%+v, of whose copies %v are shared: %v", l.Profile, m.Shared(), err)
	}
}

func someNodes() []*graph.Node {
	g := graph.New()
	x := g.Input("x", tensor.Of(graph.F32, 8, 8))
	ops.Relu(ops.MatMul(x, x))
	return g.Nodes()
}

// TestCache: what was measured is there the next time, unless it is to be renewed or
// is another machine's.
func TestCache(t *testing.T) {
	o := calibrate.Options{Cache: filepath.Join(t.TempDir(), "new", "folders"), Limit: plenty}
	c := open(t, o)
	if err := c.Measure(t.Context(), someNodes()); err != nil {
		t.Fatal(err)
	}
	path, err := c.Cache()
	if err != nil {
		t.Fatal(err)
	}
	for c.Busy() { // a few times at most
		c = open(t, o)
	}
	again := open(t, o)
	if diff := cmp.Diff(c.Local(), again.Local()); diff != "" || !again.When().Equal(c.When()) {
		t.Errorf("measured %s, kept %s\n%s", c.When(), again.When(), diff)
	}
	o.Threads = 3
	other := open(t, o)
	if p, _ := other.Cache(); p == path || len(other.Local().Measured) != 0 {
		t.Error("with other threads it is the same machine")
	}
	o.Threads, o.Renew = 0, true
	if l := open(t, o).Local(); len(l.Measured) != 0 {
		t.Errorf("%d operations are known of a machine that is measured anew", len(l.Measured))
	}
}

// TestDamagedCache: a file that is not what was written is measured again, and
// replaced.
func TestDamagedCache(t *testing.T) {
	longtest.Skip(t)
	o := calibrate.Options{Cache: fresh(t), Limit: plenty}
	c := open(t, o)
	if err := c.Measure(t.Context(), someNodes()); err != nil {
		t.Fatal(err)
	}
	path, _ := c.Cache()
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{}", string(good[:len(good)/2])} {
		if err := os.WriteFile(path, []byte(bad), 0o666); err != nil {
			t.Fatal(err)
		}
		if l := open(t, o).Local(); len(l.Measured) != 0 || l.Profile.Check() != nil {
			t.Errorf("from %q there are %d operations and %+v", bad, len(l.Measured), l.Profile)
		}
		if now, err := os.ReadFile(path); err != nil || len(now) < 100 {
			t.Errorf("%q is not replaced: %q, %v", bad, now, err)
		}
	}
}

// TestNoCache: without a place to keep it, all works, and it says why it is not kept.
func TestNoCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	c := open(t, calibrate.Options{Cache: file, Limit: plenty})
	if err := c.Measure(t.Context(), someNodes()); err != nil {
		t.Fatal(err)
	}
	timed(t, c.Local(), someNodes())
	if _, err := c.Cache(); err == nil {
		t.Error("a directory is made where there is a file")
	}
}

// TestLimits: an operation that is expected to take too long is not timed, and priced
// by what is known.
func TestLimits(t *testing.T) {
	c := open(t, calibrate.Options{Cache: fresh(t), Limit: 1})
	if err := c.Measure(t.Context(), someNodes()); err != nil {
		t.Fatal(err)
	}
	if l := c.Local(); len(l.Measured) != 0 {
		t.Errorf("%d operations are timed in a nanosecond", len(l.Measured))
	}
	for _, o := range []calibrate.Options{{Threads: -1}, {Limit: -1}, {Bytes: -1}} {
		if _, err := calibrate.Open(t.Context(), o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func TestCancelled(t *testing.T) {
	cause := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(context.Background())
	o := calibrate.Options{Cache: fresh(t), Limit: plenty}
	c := open(t, o)
	cancel(cause)
	if err := c.Measure(ctx, someNodes()); !errors.Is(err, cause) {
		t.Errorf("error is %v", err)
	}
	o.Renew = true
	if _, err := calibrate.Open(ctx, o); !errors.Is(err, cause) {
		t.Errorf("error is %v", err)
	}
}
