//go:build linux && amd64 && !nocuda

package main

import (
	"errors"
	"slices"
	"time"

	"github.com/gomem/gomem/bench/internal/gauge"
	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// rig is the GPU without plans, on a goroutine that is bound to it.
type rig struct {
	*driver.GPU
	ends []func() error
}

// onGPU calls a function with the GPU, whose libraries are looked for in some folders first.
func onGPU(dirs []string, f func(r *rig) error) error {
	d, err := driver.Load(driver.Options{Dirs: dirs})
	if err != nil {
		return err
	}
	r := &rig{}
	if r.GPU, err = d.Open(0); err != nil {
		return err
	}
	err = r.Bound(func() error {
		err := f(r)
		for _, end := range slices.Backward(r.ends) {
			err = errors.Join(err, end())
		}
		return err
	})
	return errors.Join(err, r.Close())
}

// room is so many bytes of the GPU's memory, until the rig ends.
func (r *rig) room(bytes int64) (uint64, error) {
	at, err := r.Alloc(bytes)
	if err == nil {
		r.ends = append(r.ends, func() error { return r.Release(at) })
	}
	return at, err
}

// stream is one, until the rig ends.
func (r *rig) stream() (*driver.Stream, error) {
	s, err := r.Stream()
	if err == nil {
		r.ends = append(r.ends, s.Close)
	}
	return s, err
}

// timed is the median over rounds of how long what a function gives to streams takes, until all
// of them are done. The first round is not counted.
func (r *rig) timed(rounds int, give func() error) (seconds float64, err error) {
	var times []float64
	for i := range rounds + 1 {
		start := time.Now()
		if err := errors.Join(give(), r.Sync()); err != nil {
			return 0, err
		}
		if i > 0 {
			times = append(times, time.Since(start).Seconds())
		}
	}
	return gauge.Median(times), nil
}
