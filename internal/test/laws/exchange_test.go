package laws_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// exchanging are models for several workers, at their smallest.
func exchanging(tr models.Training) map[string]func() (*models.Model, error) {
	return map[string]func() (*models.Model, error){
		"transformer": func() (*models.Model, error) {
			c, err := models.NewTransformerConfig("s512")
			c.Training = tr
			return smallest(c, err, models.Transformer)
		},
		"moe": func() (*models.Model, error) {
			c, err := models.NewMoEConfig("s512")
			c.Training = tr
			return smallest(c, err, models.MoE)
		},
		"resnet": func() (*models.Model, error) {
			c, err := models.NewResNetConfig("s512")
			c.Training = tr
			return smallest(c, err, models.ResNet)
		},
		"wgan": func() (*models.Model, error) {
			c, err := models.NewWGANConfig("s512")
			c.Training = tr
			return smallest(c, err, models.WGAN)
		},
		"gpt": func() (*models.Model, error) {
			c, err := models.NewGPTConfig("s512", models.GPT2Blocks)
			c.Training = tr
			return smallest(c, err, models.GPT)
		},
		"lstm-lm": func() (*models.Model, error) {
			c, err := models.NewLSTMLMConfig("s512")
			c.Training = tr
			return smallest(c, err, models.LSTMLM)
		},
		"topic": func() (*models.Model, error) {
			c, err := models.NewTopicConfig("s512")
			c.Training = tr
			return smallest(c, err, models.Topic)
		},
		"deepspeech": func() (*models.Model, error) {
			c, err := models.NewDeepSpeechConfig("s512")
			c.Training = tr
			return smallest(c, err, models.DeepSpeech)
		},
	}
}

// batch are the feeds of an execution, whose data differ from those of any other.
func batch(m *models.Model, execution int) gomem.Feeds {
	feeds := thesis.Feeds(m)
	feeds[m.Seed] = gomem.Pair(3, int32(execution))
	for _, v := range m.Data {
		x := feeds[v]
		rows := v.Type().Size(0)
		row := len(x.Data) / rows
		at := execution % rows * row
		turned := gomem.NewTensor(v.Type())
		copy(turned.Data, x.Data[at:])
		copy(turned.Data[len(x.Data)-at:], x.Data[:at])
		if v.Type().DType == graph.F32 {
			for i, f := range turned.F32() {
				turned.F32()[i] = f * (1 - float32(execution)/64)
			}
		}
		feeds[v] = turned
	}
	return feeds
}

// work trains a model for some steps as one of several workers, and returns its
// variables by name.
func work(ctx context.Context, m *models.Model, o gomem.Options, rank, workers,
	executions int) (map[string]gomem.Tensor, error) {
	o.Seed, o.Threads = 3, 1
	s, err := gomem.Compile(ctx, m.Graph, o, train.Targets(&m.Model)...)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for e := range executions {
		feeds := batch(m, e*workers+rank)
		feeds[m.Step] = gomem.Scalar(float32(e + 1))
		for _, objective := range m.Objectives {
			if _, err := s.Step(ctx, objective.Name, feeds); err != nil {
				return nil, err
			}
		}
	}
	for _, u := range s.Usage() {
		if u.Actual != u.Predicted {
			return nil, fmt.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
		}
	}
	out := map[string]gomem.Tensor{}
	for _, v := range s.Variables() {
		if out[v.Node.Name], err = s.Get(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// together trains a model with workers whose options are their own.
func together(t *testing.T, m *models.Model, executions int,
	options ...gomem.Options) []map[string]gomem.Tensor {
	t.Helper()
	out := make([]map[string]gomem.Tensor, len(options))
	side(t, options, func(ctx context.Context, o gomem.Options, rank int) (err error) {
		out[rank], err = work(ctx, m, o, rank, len(options), executions)
		return err
	})
	return out
}

// side has workers do something side by side, on networks that are joined.
func side(t *testing.T, options []gomem.Options,
	do func(ctx context.Context, o gomem.Options, rank int) error) {
	t.Helper()
	h := newHub(len(options))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var all sync.WaitGroup
	for rank, o := range options {
		all.Go(func() {
			o.Network = h.workers[rank]
			if err := do(ctx, o, rank); err != nil {
				cancel(fmt.Errorf("worker %d: %w", rank, err))
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		t.Fatal(err)
	}
	for _, w := range h.workers {
		if len(w.flying) > 0 || w.gone > 0 || w.sent == 0 {
			t.Errorf("worker %d sent %d values, has %d in flight, and was abandoned %d times",
				w.rank, w.sent, len(w.flying), w.gone)
		}
	}
}

// fourWays are different plans for one model.
func fourWays(t *testing.T, m *models.Model) []gomem.Options {
	t.Helper()
	thesis := gomem.Options{Policy: planner.Thesis, Partition: 20}
	least, err := gomem.MinDevice(t.Context(), m.Graph, thesis, train.Targets(&m.Model)...)
	if err != nil {
		t.Fatal(err)
	}
	tight, auto := thesis, gomem.Options{Policy: planner.Auto, DeviceBytes: least * 3 / 2,
		Effort: 60}
	tight.DeviceBytes = least
	return []gomem.Options{{Policy: planner.Vanilla, NoFusion: true}, thesis, tight, auto}
}

// TestWorkersAgree: workers with other batches, policies and budgets have the same
// variables after every step, to the bit, and the peaks that are predicted.
func TestWorkersAgree(t *testing.T) {
	longtest.Skip(t)
	for name, build := range exchanging(models.Training{Workers: 4}) {
		t.Run(name, func(t *testing.T) {
			m, err := build()
			if err != nil {
				t.Fatal(err)
			}
			all := together(t, m, 3, fourWays(t, m)...)
			for rank, got := range all[1:] {
				for v, x := range got {
					if !bytes.Equal(x.Data, all[0][v].Data) {
						t.Fatalf("worker %d has another %s than worker 0", rank+1, v)
					}
				}
			}
		})
	}
}

// TestWorkersAccumulate: two workers do what one does that accumulates the gradients of
// both batches; and what two do that accumulate two, one does with four.
func TestWorkersAccumulate(t *testing.T) {
	for name, times := range map[string]int{"transformer": 1, "gpt": 2, "lstm-lm": 2, "topic": 1,
		"deepspeech": 1} {
		t.Run(name, func(t *testing.T) {
			one, err := exchanging(models.Training{Accumulate: 2 * times})[name]()
			if err != nil {
				t.Fatal(err)
			}
			two, err := exchanging(models.Training{Accumulate: times, Workers: 2})[name]()
			if err != nil {
				t.Fatal(err)
			}
			want, err := work(t.Context(), one, gomem.Options{}, 0, 1, 4*times)
			if err != nil {
				t.Fatal(err)
			}
			got := together(t, two, 2*times, gomem.Options{}, gomem.Options{})
			for v, x := range got[0] {
				if strings.HasSuffix(v, "/gradient") {
					continue // each worker's own sum
				}
				for i, f := range x.F32() {
					if d := math.Abs(float64(f - want[v].F32()[i])); !(d <= 1e-6) {
						t.Fatalf("%s[%d] is %v, with one worker %v", v, i, f, want[v].F32()[i])
					}
				}
			}
		})
	}
}

// metered is a network that says what it has.
type metered struct {
	gomem.Network
	peak int64
}

func (m metered) Peak() int64 { return m.peak }

// TestProcessBytes: what a process has beside its plans is not for plans, which are the same within
// what is left, and come back to the same options.
func TestProcessBytes(t *testing.T) {
	m, _ := pair(t)
	o := gomem.Options{Policy: planner.Thesis}
	least, err := gomem.MinHost(t.Context(), m.Graph, o, training(m))
	if err != nil {
		t.Fatal(err)
	}
	o.ProcessBytes = 1 << 20
	with, err := gomem.MinHost(t.Context(), m.Graph, o, training(m))
	if err != nil || with != least+o.ProcessBytes {
		t.Errorf("%d bytes, %d without the process: %v", with, least, err)
	}
	for short, budget := range []int64{with, with - 1, o.ProcessBytes, 1} {
		o.HostBytes = budget
		p, err := gomem.Plan(t.Context(), m.Graph, o, training(m))
		if (err != nil) != (short > 0) {
			t.Errorf("within %d of %d: %v", budget, with, err)
		}
		if err == nil && p.Peak(space.Host) > least {
			t.Errorf("a plan takes %d, %d are left", p.Peak(space.Host), least)
		}
	}
	o.HostBytes = with
	if back := o.With(o.Planning()); back.HostBytes != with {
		t.Errorf("a budget of %d comes back as %d", with, back.HostBytes)
	}
	if err := (gomem.Options{ProcessBytes: -1}).Validate(); err == nil {
		t.Error("-1 bytes beside plans are taken")
	}
}

// TestNetworkBytes: what is reserved for the network is not for plans: the least budget is
// that much more, a byte less is refused, and usage has it.
func TestNetworkBytes(t *testing.T) {
	m, feeds := pair(t)
	for _, policy := range []planner.Policy{planner.Vanilla, planner.Thesis, planner.Auto} {
		o := gomem.Options{Policy: policy, Network: metered{newHub(1).workers[0], 900}}
		without, err := gomem.MinHost(t.Context(), m.Graph, o, training(m))
		if err != nil {
			t.Fatal(err)
		}
		o.NetworkBytes = 1000
		with, err := gomem.MinHost(t.Context(), m.Graph, o, training(m))
		if err != nil || with != without+1000 {
			t.Fatalf("%s: %d bytes, %d without the network: %v", policy, with, without, err)
		}
		if back := o.With(o.Planning()); back.HostBytes != o.HostBytes {
			t.Errorf("a budget of %d comes back as %d", o.HostBytes, back.HostBytes)
		}
		o.HostBytes = with - 1
		var short *gomem.ErrOutOfMemory
		if _, err := gomem.Plan(t.Context(), m.Graph, o, training(m)); !errors.As(err, &short) ||
			!strings.Contains(err.Error(), "beside 1000 bytes") {
			t.Errorf("%s: a byte under the least: %v", policy, err)
		}
		o.HostBytes = with
		if back := o.With(o.Planning()); back.HostBytes != o.HostBytes {
			t.Errorf("a budget of %d comes back as %d", o.HostBytes, back.HostBytes)
		}
		s, err := gomem.Compile(t.Context(), m.Graph, o, training(m))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Step(t.Context(), "train", feeds); err != nil {
			t.Fatal(err)
		}
		u := s.Usage()[1]
		if u.Network != 1000 || u.Predicted != with || u.Actual != with-100 {
			t.Errorf("%s: usage is %+v, the budget %d", policy, u, with)
		}
		s.Close()
	}
	for _, o := range []gomem.Options{{NetworkBytes: -1}, {HostBytes: 10, NetworkBytes: 10}} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "network") {
			t.Errorf("%d of %d: %v", o.NetworkBytes, o.HostBytes, err)
		}
	}
}
