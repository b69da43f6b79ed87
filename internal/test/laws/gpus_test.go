//go:build linux && amd64 && !nocuda

package laws_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/device/cuda"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/planner"
)

// twoEmulated has sessions find two emulated GPUs.
func twoEmulated(t *testing.T) {
	t.Helper()
	if os.Getenv("GOMEM_GPU") != "" {
		t.Skip("two GPUs are emulated")
	}
	emulated(t)
	t.Setenv("EMU_COUNT", "2")
}

// halves divides batches of x and y over two processes.
func halves(t *testing.T) *mesh.Spec {
	t.Helper()
	var spec mesh.Spec
	var err error
	if spec.Mesh, err = mesh.ParseMesh("batch:2x1"); err != nil {
		t.Fatal(err)
	}
	if spec.Layout, err = mesh.ParseLayout("x:0=batch,y:0=batch", spec.Mesh); err != nil {
		t.Fatal(err)
	}
	return &spec
}

// abreast has a session for each of some options do something, as the processes of a mesh that
// exchange in this process. Those after a failed one end, too: the error is of all.
func abreast(spec *mesh.Spec, do func(rank int, o gomem.Options) error,
	options ...gomem.Options) error {
	var peers *workers.Peers
	if spec.Peers {
		peers = workers.NewPeers()
	}
	team, leave, err := workers.Together(collective.Mesh{Shape: spec.Mesh.Cluster,
		Names: spec.Mesh.Axes}, peers)
	if err != nil {
		return err
	}
	errs := make([]error, len(options))
	var done sync.WaitGroup
	for rank, o := range options {
		o.Mesh, o.Rank, o.Network, o.Threads = spec, rank, team[rank].Network(), 1
		done.Go(func() {
			if errs[rank] = do(rank, o); errs[rank] != nil {
				errs[rank] = team[rank].Close(errs[rank])
			}
		})
	}
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return leave()
}

// aGPU is device memory for one session of a perceptron, and not for two.
const aGPU = "50331648"

// TestTwoGPUs: two GPUs of one process, each with its own plan and a peak of which every byte is
// predicted, learn the same bits as one GPU on which both parts are. Neither GPU has room for both.
func TestTwoGPUs(t *testing.T) {
	twoEmulated(t)
	run := func(devices [2]string, o ...gomem.Options) (losses []float32, all []gomem.Tensor,
		err error) {
		o[0].Device, o[1].Device = devices[0], devices[1]
		m := perceptron()
		err = abreast(halves(t), func(rank int, o gomem.Options) error {
			l, v, err := learnt(m, o, 5)
			if rank == 0 {
				losses, all = l, v
			}
			return err
		}, o...)
		return losses, all, err
	}
	want, weights, err := run([2]string{"cuda", "cuda"}, gomem.Options{}, gomem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("EMU_MEM", aGPU)
	got, all, err := run([2]string{"cuda:0", "cuda:1"}, gomem.Options{Partition: 2},
		gomem.Options{Policy: planner.Auto, DeviceBytes: cuda.Workspace + 12000, Effort: 60})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("losses %v, on one GPU %v", got, want)
	}
	for i := range all {
		if !slices.Equal(all[i].F32(), weights[i].F32()) {
			t.Errorf("variable %d has other bits than on one GPU", i)
		}
	}
	_, _, err = run([2]string{"cuda:1", "cuda:1"}, gomem.Options{}, gomem.Options{})
	if _, short := errors.AsType[*gomem.ErrGPUMemory](err); !short {
		t.Errorf("both on one GPU: %v", err)
	}
}

// TestTwoGPUsWithoutSums: what is no sum across two GPUs has the bits of one GPU without a mesh:
// the outputs of a network whose batch is divided.
func TestTwoGPUsWithoutSums(t *testing.T) {
	twoEmulated(t)
	m := nn.NewModel()
	x := m.Input("x", graph.F32, 8, 20)
	c := m.Evaluation()
	y := nn.Softmax(nn.Linear(c.In("b"), nn.Relu(nn.Linear(c.In("a"), x, 24)), 5))
	outputs := func(o gomem.Options) ([]float32, error) {
		o.Seed = 3
		s, err := gomem.Compile(context.Background(), m.Graph, o, gomem.Evaluation(y))
		if err != nil {
			return nil, err
		}
		defer s.Close()
		out, err := s.Step(context.Background(), "eval", gomem.Feeds{x: example(x.Type())})
		if err != nil {
			return nil, err
		}
		for _, u := range s.Usage() {
			if u.Actual != u.Predicted || u.Actual == 0 {
				return nil, errors.New(u.Space + " is used otherwise than predicted")
			}
		}
		return out[0].F32(), nil
	}
	want, err := outputs(gomem.Options{Device: gomem.CUDA})
	if err != nil {
		t.Fatal(err)
	}
	spec := halves(t)
	spec.Layout = spec.Layout[:1]
	r, err := mesh.Lower(m.Graph, *spec, 0, []graph.Value{y}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, sums := r.Copied(mesh.Sum); sums != 0 {
		t.Fatalf("%d sums", sums)
	}
	var got [2][]float32
	err = abreast(spec, func(rank int, o gomem.Options) (err error) {
		got[rank], err = outputs(o)
		return err
	}, gomem.Options{Device: "cuda:0"}, gomem.Options{Device: "cuda:1"})
	if err != nil {
		t.Fatal(err)
	}
	for rank, list := range got {
		if !slices.Equal(list, want) {
			t.Errorf("GPU %d has %v, one alone %v", rank, list, want)
		}
	}
}

// TestOneOfTwoGPUsFails: an error of one GPU ends both sessions, that on the other GPU with what
// the failed one says. No goroutine is left, and the other GPU is as good as before.
func TestOneOfTwoGPUsFails(t *testing.T) {
	twoEmulated(t)
	alive := goleak.IgnoreCurrent()
	m := perceptron()
	for failed, launches := range []string{"40,0", "0,40"} {
		t.Setenv("EMU_FAIL", launches)
		var errs [2]error
		_ = abreast(halves(t), func(rank int, o gomem.Options) error {
			_, _, errs[rank] = learnt(m, o, 10)
			return errs[rank]
		}, gomem.Options{Device: "cuda:0"}, gomem.Options{Device: "cuda:1"})
		left, ok := errors.AsType[*workers.LeftError](errs[1-failed])
		if _, step := errors.AsType[*gomem.StepError](errs[failed]); !step || !ok ||
			left.Rank != failed || !strings.Contains(left.Why, "CUDA_ERROR_LAUNCH_FAILED") {
			t.Fatalf("%v; %v", errs[0], errs[1])
		}
		o := gomem.Options{Device: fmt.Sprint(gomem.CUDA, ":", 1-failed)}
		if _, _, err := learnt(m, o, 1); err != nil {
			t.Errorf("the other GPU: %v", err)
		}
	}
	goleak.VerifyNone(t, alive)
}
