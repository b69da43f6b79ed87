package calibrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/planner/machine"
)

// Options bound the measurements. The zero value works.
type Options struct {
	Threads int           // of a kernel; 0 is one for every processor
	Limit   time.Duration // of one call of Measure, about; 0 is two seconds
	Bytes   int64         // of the largest operation's operands; 0 is 1 GiB
	Cache   string        // directory; "" is gomem's below the user's cache directory
	Renew   bool          // measure again what the cache has
	TF32    bool          // of a GPU's products
}

func (o *Options) ensureDefaults() error {
	if o.Threads < 0 || o.Limit < 0 || o.Bytes < 0 {
		return fmt.Errorf("calibrate: threads, time and memory may not be negative: %+v", *o)
	}
	if o.Limit == 0 {
		o.Limit = 2 * time.Second
	}
	if o.Bytes == 0 {
		o.Bytes = 1 << 30
	}
	return nil
}

// Machine is the machine at hand as far as it has been measured. It is not safe for
// concurrent use.
type Machine struct {
	options Options
	target  target
	host    *Machine // of a GPU's: the processor beside it
	cache   cache
	known   record
	stale   error // why what is known is not in the cache
	disk    *DiskRates
}

// Open gets what was measured before, or measures the rates that every machine has.
func Open(ctx context.Context, o Options) (*Machine, error) {
	if err := o.ensureDefaults(); err != nil {
		return nil, err
	}
	m := &Machine{options: o, target: processor(o.Threads), cache: newCache(o)}
	known, ok := m.cache.load()
	ok = ok && !o.Renew && known.Shared > 0
	if m.known = known; ok && known.Basics.settled() {
		return m, nil
	}
	if err := m.basics(ctx); err != nil {
		return nil, err
	}
	if ok {
		m.known = known.with(m.known)
	}
	m.stale = m.cache.store(m.known)
	return m, nil
}

// Local is what is known now, as prices.
func (m *Machine) Local() *machine.Local {
	p := m.known.Profile
	p.Operations = m.operations()
	if m.disk != nil {
		p.DiskRead, p.DiskWrite = m.disk.Read, m.disk.Write
	}
	l := &machine.Local{Profile: &p, Measured: map[string]time.Duration{},
		Shared: m.known.Shared}
	for signature, s := range m.known.Samples {
		l.Measured[signature] = s.took()
	}
	if m.host != nil {
		l.Host = m.host.Local()
	}
	return l
}

// When is when the machine's rates were measured.
func (m *Machine) When() time.Time { return m.known.When }

// Busy reports whether the machine's rates were measured while it had something else to do: they
// are measured again by whoever opens it next.
func (m *Machine) Busy() bool { return !m.known.Basics.settled() }

// Cache is the file that keeps what was measured, and why it could not be written, if
// it could not.
func (m *Machine) Cache() (path string, err error) { return m.cache.path, m.stale }

// sample is a measured operation.
type sample struct {
	Op    string  `json:"op"`
	FLOPs int64   `json:"flops"`
	Bytes int64   `json:"bytes"`
	Nanos float64 `json:"ns"` // the least of all rounds
	trust
}

func (s sample) took() time.Duration { return time.Duration(s.Nanos) }

// Measure times the operations of nodes, which are in the order of a step, that are
// not known yet, within the limits. An operation that cannot be timed is left to the
// rates of others.
func (m *Machine) Measure(ctx context.Context, nodes []*graph.Node) error {
	if m.host != nil {
		if err := m.host.Measure(ctx, updating(nodes)); err != nil {
			return err
		}
	}
	parts := m.choose(nodes, m.missing(nodes))
	if len(parts) == 0 {
		return nil
	}
	s, err := newStage(m.target, m.options.Bytes, true)
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	end := time.Now().Add(m.options.Limit)
	for _, part := range parts {
		if err = m.measure(ctx, s, part, newUses(nodes, part), end); err != nil {
			break
		}
	}
	if err := errors.Join(err, s.close()); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	m.stale = m.cache.store(m.known)
	return nil
}

// measure times operations as long as there is time.
func (m *Machine) measure(ctx context.Context, s *stage, some []want, u uses,
	end time.Time) error {
	s.room = newRoom(m.target, s.room.memory, m.options.Bytes)
	var trials []*trial
	for i, w := range some {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Now().After(end) {
			break
		}
		if t, err := s.prepare(w, i, u); err == nil {
			trials = append(trials, t)
		}
	}
	begun := time.Now()
	if c, ok := s.device.(device.Compiler); ok {
		if err := c.Compile(); err != nil {
			return err
		}
	}
	trials, err := s.time(trials, end.Add(time.Since(begun)))
	m.note(trials)
	return err
}

// note adds samples: the mean, over an operation's trials, of the least of each, which is not
// moved by what else the machine does. What was measured before without being trusted is so
// again, and the better one is kept.
func (m *Machine) note(trials []*trial) {
	least, middle := map[string]time.Duration{}, map[string]time.Duration{}
	counts := map[string]int{}
	for _, t := range trials {
		least[t.signature] += slices.Min(t.times)
		middle[t.signature] += median(t.times)
		counts[t.signature]++
	}
	before := maps.Clone(m.known.Samples)
	for _, t := range trials {
		c := t.node.Cost()
		took := float64(least[t.signature]) / float64(counts[t.signature])
		s := sample{t.node.OpName(), c.FLOPs, c.Bytes, max(1, took+m.known.Gap),
			trust{Rounds: len(t.times), Noise: float64(middle[t.signature]) /
				float64(max(1, least[t.signature]))}}
		if old, ok := before[t.signature]; ok {
			s.Nanos, s.trust = min(s.Nanos, old.Nanos), s.after(old.trust)
		}
		m.known.Samples[t.signature] = s
	}
}

// operations are the rates of every operation that was measured: the machine's, by the
// factor that makes its samples right on the whole.
func (m *Machine) operations() map[string]machine.Rates {
	base := m.known.Profile.Device
	actual, estimate := map[string]float64{}, map[string]float64{}
	for _, s := range m.inOrder() {
		actual[s.Op] += max(s.Nanos-base.Launch, 1)
		estimate[s.Op] += float64(1e9 * max(float64(s.FLOPs)/base.FLOPs,
			float64(s.Bytes)/base.Bytes))
	}
	out := map[string]machine.Rates{}
	for op, t := range actual {
		if k := estimate[op] / t; k > 0 {
			out[op] = machine.Rates{FLOPs: base.FLOPs * k, Bytes: base.Bytes * k,
				Launch: base.Launch}.Within()
		}
	}
	return out
}

// inOrder are the samples by signature, so that sums of them are always the same.
func (m *Machine) inOrder() []sample {
	var out []sample
	for _, signature := range slices.Sorted(maps.Keys(m.known.Samples)) {
		out = append(out, m.known.Samples[signature])
	}
	return out
}
