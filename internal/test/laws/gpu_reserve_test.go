//go:build linux && amd64 && !nocuda

package laws_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/device/cuda/driver"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// costly has an emulated GPU take memory for a context, for modules, for handles of libraries, for
// what they load at first, and for threads of kernels.
func costly(t *testing.T) {
	t.Helper()
	if os.Getenv("GOMEM_GPU") != "" {
		t.Skip("bytes are the emulated GPU's")
	}
	emulated(t)
	for name, value := range map[string]string{"CONTEXT": "41000000", "MODULE": "1000000",
		"HANDLE": "3000000", "FIRST": "8000000", "LOCAL": "100"} {
		t.Setenv("EMU_"+name, value)
	}
}

// onMonitor is what NVML says that this process has of a GPU, by its number, in bytes.
func onMonitor(number int) (int64, error) {
	lib, err := driver.Load(driver.Options{})
	if err != nil {
		return 0, err
	}
	g, err := lib.Look(number)
	if err != nil {
		return 0, err
	}
	m, err := driver.OpenMonitor(g)
	if err != nil {
		return 0, err
	}
	bytes, known, err := m.Process()
	if err == nil && !known {
		err = errors.New("NVML does not list this process")
	}
	return bytes, errors.Join(err, m.Close())
}

// TestBudgetOfTheProcess: all that the process has of a GPU's memory is within the budget, as NVML
// says it after steps, down to the smallest budget that works; a byte less is refused, with that
// budget. It changes no bits.
func TestBudgetOfTheProcess(t *testing.T) {
	emulated(t)
	m := perceptron()
	losses, variables, err := learnt(m, gomem.Options{Device: gomem.CUDA, Policy: planner.Vanilla},
		3)
	if err != nil {
		t.Fatal(err)
	}
	costly(t)
	for _, p := range []planner.Policy{planner.Thesis, planner.Auto} {
		o := gomem.Options{Device: gomem.CUDA, Policy: p, Seed: 3, HostBytes: 1 << 30, Effort: 50,
			InterpretChains: p == planner.Thesis}
		known := o
		if known.ReserveBytes, err = gomem.Reserve(o); err != nil {
			t.Fatal(err)
		}
		if o.DeviceBytes, err = gomem.MinDevice(t.Context(), m.Graph, known,
			train.Targets(m)...); err != nil {
			t.Fatal(err)
		}
		s, err := gomem.Compile(t.Context(), m.Graph, o, train.Targets(m)...)
		if err != nil {
			t.Fatal(err)
		}
		got, all, err := openOnGPU(s, m, 3)
		has, unknown := onMonitor(0)
		if has > o.DeviceBytes {
			t.Errorf("%s: the process has %d bytes, the budget is %d", p, has, o.DeviceBytes)
		}
		if err := errors.Join(err, unknown, s.Close()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, losses) || !slices.EqualFunc(all, variables,
			func(a, b gomem.Tensor) bool { return slices.Equal(a.Data, b.Data) }) {
			t.Errorf("%s: losses %v, want %v, or other variables", p, got, losses)
		}
		least := o.DeviceBytes
		o.DeviceBytes--
		_, err = gomem.Compile(t.Context(), m.Graph, o, train.Targets(m)...)
		if e, ok := errors.AsType[*gomem.ErrOutOfMemory](err); !ok || e.Need != least ||
			e.Budget != least-1 || e.Beside != known.Beside() {
			t.Errorf("%s: a byte less: %+v, %v", p, e, err)
		}
	}
}

// TestBudgetOfEachGPU: two GPUs of a process that exchange with each other are each within a budget
// of their own, the smallest that works, whatever the other has; a byte less is refused.
func TestBudgetOfEachGPU(t *testing.T) {
	twoEmulated(t)
	costly(t)
	spec := spreads(t)[0]
	spec.Peers = true
	m := perceptron()
	targets := train.Targets(m)
	err := abreast(spec, func(rank int, o gomem.Options) error {
		known := o
		var err error
		if known.ReserveBytes, err = gomem.Reserve(o); err != nil {
			return err
		}
		if o.DeviceBytes, err = gomem.MinDevice(t.Context(), m.Graph, known,
			targets...); err != nil {
			return err
		}
		less := o
		less.DeviceBytes--
		_, err = gomem.Compile(t.Context(), m.Graph, less, targets...)
		if e, ok := errors.AsType[*gomem.ErrOutOfMemory](err); !ok || e.Need != o.DeviceBytes {
			return fmt.Errorf("a byte less: %w", err)
		}
		s, err := gomem.Compile(t.Context(), m.Graph, o, targets...)
		if err != nil {
			return err
		}
		_, _, err = openOnGPU(s, m, 3)
		has, unknown := onMonitor(rank)
		if has > o.DeviceBytes || has < o.DeviceBytes-known.ReserveBytes {
			t.Errorf("GPU %d: the process has %d bytes, the budget is %d", rank, has, o.DeviceBytes)
		}
		return errors.Join(err, unknown, s.Close())
	}, gomem.Options{Device: "cuda:0", Policy: planner.Thesis}, gomem.Options{Device: "cuda:1",
		Policy: planner.Thesis, Partition: 2})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReserveIsKept: where a GPU has taken more than plans leave it, the session is refused before
// its first step, with as much as is to be kept; with that it opens.
func TestReserveIsKept(t *testing.T) {
	costly(t)
	m := perceptron()
	o := gomem.Options{Device: gomem.CUDA, ReserveBytes: 1, HostBytes: 1 << 30}
	var err error
	if o.DeviceBytes, err = gomem.MinDevice(t.Context(), m.Graph, o,
		train.Targets(m)...); err != nil {
		t.Fatal(err)
	}
	compile := func() error {
		s, err := gomem.Compile(context.Background(), m.Graph, o, train.Targets(m)...)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	err = compile()
	e, ok := errors.AsType[*gomem.ErrReserve](err)
	if !ok || e.Budget != o.DeviceBytes || e.Reserved != 1 || e.Plans != e.Budget-1 ||
		e.Enough() < e.Taken || e.Enough() >= e.Taken+16<<20 {
		t.Fatalf("%+v, %v", e, err)
	}
	o.ReserveBytes, o.DeviceBytes = e.Enough(), e.Plans+e.Enough()
	if err := compile(); err != nil {
		t.Error(err)
	}
}
