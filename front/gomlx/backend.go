package gomlx

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
)

// Name is what the backend is registered as: GOMLX_BACKEND=gomem, or gomem: and a configuration.
const Name = "gomem"

func init() {
	backends.Register(Name, func(config string) (backends.Backend, error) {
		b, err := New(config)
		if err != nil {
			return nil, err
		}
		return b, nil
	})
}

// Backend executes computations of GoMLX by plans, within budgets that hold for all of its
// computations together. Its methods may be called from several goroutines; executions are one
// after the other.
type Backend struct {
	options gomem.Options

	mu   sync.Mutex
	open []*executable // those that have a session, the one executed last at the end
	peak Peak
	done bool
}

// Peak is the most memory of sessions at one time, in bytes. Buffers are not in it: they are
// GoMLX's.
type Peak struct{ Device, Host int64 }

var _ backends.Backend = (*Backend)(nil)

// New makes a backend by a configuration, settings with commas between them:
//
//	device=64MiB    budget of the device, for all computations together; none by default
//	host=2GiB       budget of the host for a computation
//	disk=8GiB       budget of a disk behind the host, whose directory is disk-dir
//	policy=auto     who plans: thesis, auto, vanilla, grappler
//	effort=100      how long auto looks for plans
//
// and strategy, partition, streams and threads: those of gomem.Options.
func New(config string) (*Backend, error) {
	o, err := parse(config)
	if err != nil {
		return nil, err
	}
	return &Backend{options: o}, nil
}

// Name is "gomem".
func (b *Backend) Name() string { return Name }

// String is the name.
func (b *Backend) String() string { return Name }

// Description is a line with the budget.
func (b *Backend) Description() string {
	if b.options.DeviceBytes == 0 {
		return "gomem: planned memory, without a budget"
	}
	return fmt.Sprintf("gomem: planned memory, within %d bytes", b.options.DeviceBytes)
}

// NumDevices is 1.
func (b *Backend) NumDevices() int { return 1 }

// DeviceDescription names the device.
func (b *Backend) DeviceDescription(backends.DeviceNum) string { return "the processor" }

// Capabilities are the operations that are not in the table of those refused, and the element
// types.
func (b *Backend) Capabilities() backends.Capabilities {
	c := backends.Capabilities{Operations: map[backends.OpType]bool{},
		DTypes: map[dtypes.DType]bool{}}
	for op := backends.OpTypeInvalid + 1; op < backends.OpTypeLast; op++ {
		if _, refused := refusals()[op]; !refused {
			c.Operations[op] = true
		}
	}
	for d := range elements() {
		c.DTypes[d] = true
	}
	return c
}

// Peak is the most memory that sessions have had at one time.
func (b *Backend) Peak() Peak {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peak
}

// Finalize closes all sessions.
func (b *Backend) Finalize() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = true
	for len(b.open) > 0 {
		b.close(b.open[0])
	}
}

// IsFinalized reports whether Finalize was called.
func (b *Backend) IsFinalized() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done
}

// alive is an error after Finalize.
func (b *Backend) alive() error {
	if b.IsFinalized() {
		return errors.New("gomem: the backend is finalized")
	}
	return nil
}

// session is that of an executable. It is opened if there is none, after those of others were
// closed that would not fit beside it, the one executed longest ago first: sessions have no
// variables, so that nothing is lost.
func (b *Backend) session(e *executable) (*gomem.Session, error) {
	if b.done {
		return nil, errors.New("gomem: the backend is finalized")
	}
	if i := slices.Index(b.open, e); i >= 0 {
		b.open = append(slices.Delete(b.open, i, i+1), e)
		return e.session, nil
	}
	budget := b.options.DeviceBytes
	for budget > 0 && len(b.open) > 0 && b.bytes(space.Device)+e.bytes(space.Device) > budget {
		if err := b.close(b.open[0]); err != nil {
			return nil, err
		}
	}
	var err error
	if e.session, err = gomem.Open(e.planned, b.options); err != nil {
		return nil, err
	}
	b.open = append(b.open, e)
	b.peak.Device = max(b.peak.Device, b.bytes(space.Device))
	b.peak.Host = max(b.peak.Host, b.bytes(space.Host))
	return e.session, nil
}

// bytes are what the sessions that are open have of a space.
func (b *Backend) bytes(of space.ID) int64 {
	var sum int64
	for _, e := range b.open {
		sum += e.bytes(of)
	}
	return sum
}

// close closes the session of an executable, if it has one.
func (b *Backend) close(e *executable) error {
	i := slices.Index(b.open, e)
	if i < 0 {
		return nil
	}
	b.open = slices.Delete(b.open, i, i+1)
	return e.session.Close()
}
