//go:build linux && amd64 && !nocuda

package laws_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// convolutional is a network of two convolutions, of 3 filters and of 5.
func convolutional() *nn.Model {
	m := nn.NewModel()
	x, y := m.Input("x", graph.F32, 2, 2, 6, 6), m.Input("y", graph.I32, 2)
	loss := func(c *nn.Ctx) graph.Value {
		h := x
		for _, f := range []struct {
			name string
			n    int
		}{{"three", 3}, {"five", 5}} {
			h = nn.Relu(nn.Conv2D(c.In(f.name), h, f.n, 3))
		}
		return nn.CrossEntropy(nn.Linear(c.In("out"), ops.ReshapeSizes(h, 2, 5*6*6), 5), y)
	}
	m.Minimize(loss(m.Training()), nn.Adam{})
	m.Evaluate(loss(m.Evaluation()))
	return m
}

// libraries are what launches of plans are by, by the number of filters; other launches count as
// of none.
func libraries(p *gomem.Planned) map[int]map[string]bool {
	by := map[int]map[string]bool{}
	for _, r := range p.Results {
		for _, s := range r.Plan.Steps {
			do, ok := s.Do.(plan.Launch)
			if !ok {
				continue
			}
			n := 0
			if strings.HasPrefix(do.Op, "conv2d") {
				n = map[bool]int{true: 3, false: 5}[strings.Contains(s.Name, "three")]
			}
			if by[n] == nil {
				by[n] = map[string]bool{}
			}
			by[n][do.Library] = true
		}
	}
	return by
}

// TestPlansSayWhoConvolves is the second law on an emulated GPU: what computes a convolution, the
// library or a kernel of our own, is asked before there is a plan, stands in every plan, and is
// what the device does. It is the same in every plan, and so are the bits.
func TestPlansSayWhoConvolves(t *testing.T) {
	if os.Getenv("GOMEM_GPU") != "" {
		t.Skip("a real library lacks nothing to order")
	}
	emulated(t)
	for lacks, want := range map[string]map[int]map[string]bool{
		"0": {0: {"": true}, 3: {"cudnn": true}, 5: {"cudnn": true}},
		"5": {0: {"": true}, 3: {"cudnn": true}, 5: {"": true}},
	} {
		t.Setenv("EMU_CONV_LACKS", lacks)
		var first []gomem.Tensor
		for _, o := range []gomem.Options{{NoPlacement: true}, {Partition: 2},
			{Policy: planner.Auto}, {Policy: planner.Vanilla, NoFusion: true}} {
			o.Device, o.Threads = gomem.CUDA, 1
			m := convolutional()
			if o.Partition == 2 {
				least, err := planner.LeastOf(context.Background(), m.Graph, o.Planning(),
					space.Device, train.Targets(m)...)
				if err != nil {
					t.Fatal(err)
				}
				o.DeviceBytes = least + cuda.Workspace
			}
			p, err := gomem.Plan(context.Background(), m.Graph, o, train.Targets(m)...)
			if err != nil {
				t.Fatal(err)
			}
			if by := libraries(p); !maps.EqualFunc(by, want, maps.Equal) {
				t.Errorf("without %s filters, %s: %v, want %v", lacks, o.Planning(), by, want)
			}
			repeated(t, p)
			s, err := gomem.Open(p, o)
			if err != nil {
				t.Fatal(err)
			}
			losses, all, err := stepOnGPU(s, m, 4)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, gomem.Tensor(tensor.FromF32(losses, len(losses))))
			for i, x := range all {
				if first != nil && !bytes.Equal(x.Data, first[i].Data) {
					t.Fatalf("%s: value %d of %d has other bits", o.Planning(), i, len(all))
				}
			}
			first = all
		}
	}
}

// repeated: what the plans' texts say is what they are.
func repeated(t *testing.T, p *gomem.Planned) {
	t.Helper()
	for i, r := range p.Results {
		var text, again bytes.Buffer
		if _, err := r.Plan.WriteTo(&text); err != nil {
			t.Fatal(err)
		}
		parsed, err := plan.Parse(bytes.NewReader(text.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parsed.WriteTo(&again); err != nil || again.String() != text.String() {
			t.Errorf("the plan reads otherwise: %v", err)
		}
		at := p.Targets[i].Computed()
		if err := plan.Verify(parsed, p.Graph, at.Fetches, at.Updates); err != nil {
			t.Error(err)
		}
	}
}

// TestNobodyConvolvesInstead: a library that fails is an error, with the operation and what the
// library says; a plan that has a convolution by a library is refused where there is none, and
// where it does not compute that.
func TestNobodyConvolvesInstead(t *testing.T) {
	if os.Getenv("GOMEM_GPU") != "" {
		t.Skip("a real library does not fail to order")
	}
	emulated(t)
	m, o := convolutional(), gomem.Options{Device: gomem.CUDA, Threads: 1}
	p, err := gomem.Plan(context.Background(), m.Graph, o, train.Targets(m)...)
	if err != nil {
		t.Fatal(err)
	}
	opened := func(o gomem.Options) error {
		s, err := gomem.Open(p, o)
		if err == nil {
			err = errors.Join(errors.New("it is not refused"), s.Close())
		}
		return err
	}
	says := func(what string, err error, want ...string) {
		t.Helper()
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q", what, err, w)
			}
		}
	}
	says("on the processor", opened(gomem.Options{Threads: 1}), "three", "conv2d", `"cudnn"`)
	t.Setenv("EMU_CONV_LACKS", "5")
	says("where the library lacks it", opened(o), "five",
		"conv2d of [f32[batch:2 3 6 6] f32[5 3 3 3]]", "CUDNN_STATUS_NOT_SUPPORTED")
	t.Setenv("EMU_CONV_LACKS", "0")
	t.Setenv("EMU_CONV_ROOM", "8192")
	says("where the library wants more", opened(o), "three", "wants 8192 bytes", "has 4096")
	t.Setenv("EMU_CONV_ROOM", "4096")
	t.Setenv("EMU_CONV_BREAKS", "5")
	s, err := gomem.Open(p, o)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = stepOnGPU(s, m, 1)
	says("where it fails in a step", err, "five", "CUDNN_STATUS_INTERNAL_ERROR")
	t.Setenv("EMU_CONV_BREAKS", "0")
	t.Setenv("EMU_CONV_FAILS", "5")
	says("where the library fails", opened(o), "five", "CUDNN_STATUS_INTERNAL_ERROR")
	_, err = gomem.Plan(context.Background(), m.Graph, o, train.Targets(m)...)
	says("asked, it fails", err, "five", "conv2d[f32[batch:2 3 6 6] f32[5 3 3 3]]",
		"CUDNN_STATUS_INTERNAL_ERROR")
}
