package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/train"
)

// fleet are several devices of this process, each of which has a worker of its own. nil is one
// device.
type fleet struct {
	devices []string       // by rank
	peers   *workers.Peers // nil: the devices do not reach each other's memory
	has     []devicePeak
	ended   []chan struct{} // by rank: closed when its run has
}

// devicePeak is what a run was to take of a device, and took.
type devicePeak struct {
	On        string `json:"device"`
	Predicted int64  `json:"predicted_device_peak_bytes"`
	Actual    int64  `json:"actual_device_peak_bytes"`
}

// newFleet is that of some devices.
func newFleet(devices []string) *fleet {
	f := &fleet{devices: devices, has: make([]devicePeak, len(devices))}
	if gomem.Reach(devices) {
		f.peers = workers.NewPeers()
	}
	for range devices {
		f.ended = append(f.ended, make(chan struct{}))
	}
	return f
}

// size is how many devices there are.
func (f *fleet) size() int {
	if f == nil {
		return 1
	}
	return len(f.devices)
}

// on is what a run is said to be on, and on which GPUs; alone is the device of one worker.
func (f *fleet) on(alone string) (names, gpus string) {
	if f == nil {
		return alone, gpuFact(alone)
	}
	var facts []string
	for _, name := range f.devices {
		if fact := gpuFact(name); fact != "" {
			facts = append(facts, fact)
		}
	}
	return strings.Join(f.devices, ","), strings.Join(facts, "; ")
}

// peaks enters the peak of a worker's device, and for the first, who shows the run, waits for those
// of all.
func (f *fleet) peaks(rank int, s train.Summary) []devicePeak {
	if f == nil {
		return nil
	}
	f.has[rank] = devicePeak{f.devices[rank], s.PredictedDevicePeak, s.ActualDevicePeak}
	close(f.ended[rank])
	if rank > 0 {
		return nil
	}
	for _, ended := range f.ended {
		<-ended
	}
	return f.has
}

// end is when a worker has ended, whose run may not have come to its peak.
func (f *fleet) end(rank int) {
	select {
	case <-f.ended[rank]:
	default:
		close(f.ended[rank])
	}
}

// several are the devices that a flag names.
func several(flag string) ([]string, error) {
	devices, err := gomem.Several(flag)
	if err != nil {
		return nil, usagef("--device: %w", err)
	}
	if len(devices) > maxLocal {
		return nil, usagef("--device: %d devices: at most %d workers are started on a machine",
			len(devices), maxLocal)
	}
	return devices, nil
}

// present refuses GPUs that the machine has not.
func present(devices []string) error {
	for _, name := range devices {
		if _, gpu := gomem.GPU(name); !gpu {
			continue
		}
		if _, err := gomem.FindGPU(name); err != nil {
			return fmt.Errorf("--device %s: %w", name, err)
		}
	}
	return nil
}

// run runs a worker for each device, until all have ended.
func (f *fleet) run(work func(rank int, meet joins) error) error {
	net := memnet.NewNetwork(len(f.devices), memnet.Options{})
	v := distrib.View{Epoch: 1}
	for rank := range f.devices {
		v.Nodes = append(v.Nodes, distrib.Node{ID: distrib.NodeID(rank)})
	}
	errs := make([]error, len(f.devices))
	var all sync.WaitGroup
	for rank := range f.devices {
		own := v
		own.Self = distrib.NodeID(rank)
		node := net.Node(own.Self)
		meet := func(context.Context, func(string), *slog.Logger) (*Job, error) {
			return &Job{View: own, Transport: node, Leave: func() error { return nil }}, nil
		}
		all.Go(func() {
			defer f.end(rank)
			errs[rank] = work(rank, meet)
			if err := node.Close(); errs[rank] == nil { // of who has not joined, too
				errs[rank] = err
			}
		})
	}
	all.Wait()
	return f.blame(errs)
}

// blame is the error of the first worker whose own fault it was that the run failed. It names that
// worker's device, unless the same has befallen all, or it is of what has nothing to do with one;
// how to go on the first worker knows.
func (f *fleet) blame(errs []error) error {
	var own, other []int
	how, alike := "", true
	for rank, err := range errs {
		_, said := errors.AsType[*launchedError](err)
		switch {
		case err == nil || said:
		case workers.NoOwnFault(err):
			other = append(other, rank)
		default:
			own = append(own, rank)
			alike = alike && err.Error() == errs[own[0]].Error()
		}
		if r, ok := errors.AsType[*rememberedError](err); ok && how == "" {
			how = "; " + r.how
		}
	}
	if len(own) == 0 {
		return firstOf(errs, other)
	}
	err := errs[own[0]]
	if ofNone(err) || alike && len(own) == len(errs) {
		return err
	}
	if r, ok := errors.AsType[*rememberedError](err); ok {
		err = r.error
	}
	return &deviceError{f.devices[own[0]], err, how}
}

// ofNone reports errors that are no device's: of a command line, of files, and what a signal ends.
func ofNone(err error) bool {
	_, usage := errors.AsType[*usageError](err)
	_, stopped := errors.AsType[*stoppedError](err)
	_, read := errors.AsType[*data.Error](err)
	_, checkpoint := errors.AsType[*train.ErrCheckpoint](err)
	_, file := errors.AsType[*fs.PathError](err)
	return usage || stopped || read || checkpoint || file || errors.Is(err, context.Canceled)
}

// deviceError is the failure of one of several devices, and how to go on.
type deviceError struct {
	device string
	error
	how string
}

// Error is one line.
func (e *deviceError) Error() string {
	return e.device + ": " + strings.TrimPrefix(e.error.Error(), "gomem: ") + e.how
}

// Unwrap is the failure.
func (e *deviceError) Unwrap() error { return e.error }

// firstOf is the first of some errors, or the first of all.
func firstOf(errs []error, some []int) error {
	for _, rank := range some {
		return errs[rank]
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
