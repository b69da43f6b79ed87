//go:build linux && amd64 && !nocuda

package driver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/device/cuda/driver"
)

// TestCapture: what is captured is not done, and is done as often as it is replayed, in its place
// among what the stream is given otherwise.
func TestCapture(t *testing.T) {
	t.Setenv("EMU_JITTER_US", "200")
	m := open(t)
	m.compile()
	x := m.put([]float32{1, 2, 3})
	twice := func() error {
		return errors.Join(m.run("scale", 3, x, x, float32(2), int32(3)), m.run("reverse", 3, x,
			int32(3)), m.s.Fill(x, 0x40000000, 1))
	}
	ok(t, twice()) // 2 4 2
	g, err := m.s.Capture(twice)
	ok(t, err)
	m.free = append(m.free, g.Close)
	if got := m.get(x, 3); got[0] != 2 || got[1] != 4 || got[2] != 2 {
		t.Fatalf("after the capture %v", got)
	}
	ok(t, m.s.Replay(g))                                               // 2 8 4
	ok(t, m.run("scale", 3, x, x, float32(0.5), int32(3)))             // 1 4 2
	ok(t, m.s.Replay(g))                                               // 2 8 2
	if got := m.get(x, 3); got[0] != 2 || got[1] != 8 || got[2] != 2 { // the first is filled
		t.Errorf("replayed, with a scale in between: %v", got)
	}
}

// TestNoCapture: what cannot be captured is an error, nothing of it is done, and the stream works
// as before.
func TestNoCapture(t *testing.T) {
	for name, c := range map[string]struct {
		refuse, memory string
		more           func(m *machine) error
		want           string
	}{
		"not at all":   {"begin", "", nil, "CUDA_ERROR_NOT_SUPPORTED"},
		"not that":     {"work", "", nil, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
		"no room":      {"", "8192", nil, "CUDA_ERROR_OUT_OF_MEMORY"},
		"no room then": {"upload", "", nil, "CUDA_ERROR_OUT_OF_MEMORY"},
		"waits": {"", "", (*machine).Sync,
			"cuCtxSynchronize: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
		"takes memory": {"", "", func(m *machine) error {
			_, err := m.Alloc(4)
			return err
		}, "cuMemAlloc_v2: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
		"what breaks it is not noticed": {"", "", func(m *machine) error {
			if m.Sync() == nil {
				return errors.New("it waited")
			}
			return nil
		}, "cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
		"never ran": {"", "", func(m *machine) error { return m.run("falls", 1) },
			"kernel falls: cuLaunchKernel: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
		"gives up": {"", "", func(*machine) error { return errors.New("no more") }, "no more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("EMU_CAPTURE", c.refuse)
			t.Setenv("EMU_MEM", c.memory)
			m := open(t)
			m.compile()
			x := m.put([]float32{1, 2, 3})
			work := func() error {
				return errors.Join(m.run("scale", 3, x, x, float32(2), int32(3)), m.run("reverse",
					3, x, int32(3)))
			}
			ok(t, work()) // 6 4 2
			var g *driver.Graph
			g, err := m.s.Capture(func() error {
				if err := work(); err != nil || c.more == nil {
					return err
				}
				return c.more(m)
			})
			if g != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("captured: %v, %v", g, err)
			}
			ok(t, work())
			if got := m.get(x, 3); got[0] != 4 || got[1] != 8 || got[2] != 12 {
				t.Errorf("after it: %v", got)
			}
		})
	}
}
