//go:build linux && amd64 && !nocuda

package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// links measures copies between the host's pinned memory and the GPU's.
func links(ctx context.Context, b *bench) error {
	sizes := []int{64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30}
	if b.emulate {
		sizes = []int{4 << 10, 64 << 10}
	}
	b.title("Copies", "Between pinned memory of the host and the GPU's, GB/s of each way: as many "+
		"copies of a size as make 256 MiB, or one, one after the other on a stream a way; medians "+
		"of 7 rounds. At once is both ways together, the two added up.")
	b.head(1, "size", "to the GPU", "to the host", "at once")
	return onGPU(b.dirs(), func(r *rig) error {
		l, err := r.link(sizes[len(sizes)-1])
		if err != nil {
			return err
		}
		return b.each(ctx, sizes, size, l.rates)
	})
}

// link is memory on both sides, and a stream a way.
type link struct {
	*rig
	in, out     *driver.Stream
	near        [2]uint64
	far         [2][]byte
	roundsBytes int
}

func (r *rig) link(most int) (*link, error) {
	l := &link{rig: r, roundsBytes: min(256<<20, 4*most)}
	var errs [2]error
	l.in, errs[0] = r.stream()
	l.out, errs[1] = r.stream()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	for i := range l.far {
		var err error
		if l.near[i], err = r.room(int64(most)); err != nil {
			return nil, err
		}
		if l.far[i], err = r.pinned(most); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// pinned is so many bytes of the host's memory, until the rig ends.
func (r *rig) pinned(n int) ([]byte, error) {
	data, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	r.ends = append(r.ends, func() error { return unix.Munmap(data) })
	if err := r.Pin(data); err != nil {
		return nil, err
	}
	r.ends = append(r.ends, func() error { return r.Unpin(data) })
	return data, nil
}

// rates are the row of a size.
func (l *link) rates(n int) ([]string, error) {
	const rounds = 7
	count := max(1, l.roundsBytes/n)
	var cells []string
	for _, way := range []struct{ in, out bool }{{true, false}, {false, true}, {true, true}} {
		took, err := l.timed(rounds, func() error { return l.copies(n, count, way.in, way.out) })
		if err != nil {
			return nil, err
		}
		bytes := float64(n) * float64(count)
		if way.in && way.out {
			bytes *= 2
		}
		cells = append(cells, fmt.Sprintf("%.1f", bytes/took/1e9))
	}
	return cells, nil
}

// copies gives the streams so many copies of n bytes.
func (l *link) copies(n, count int, in, out bool) error {
	var errs []error
	for range count {
		if in {
			errs = append(errs, l.in.ToDevice(l.near[0], l.far[0][:n]))
		}
		if out {
			errs = append(errs, l.out.ToHost(l.far[1][:n], l.near[1]))
		}
	}
	return errors.Join(errs...)
}
