package calibrate

import (
	"math"
	"time"

	"github.com/gomem/gomem/graph"
)

// A number that was measured is the least of several rounds. Where these were far apart, the
// machine had something else to do, perhaps in all of them: what was measured then is measured
// again next time, and the better is kept, until there were enough rounds.
const (
	noisy      = 1.5 // times the least that the middle one may be
	fewRounds  = 2
	manyRounds = 4 * rounds
)

// trust is how far a number can be trusted.
type trust struct {
	Rounds  int     `json:"rounds"`            // in which it was measured
	Noise   float64 `json:"noise"`             // times the least that the middle of them was
	Doubted bool    `json:"doubted,omitempty"` // a run disagreed with it
}

// sound reports whether anything could have been measured so. No machine is on for so many rounds.
func (t trust) sound() bool {
	return t.Rounds >= 0 && t.Rounds <= math.MaxInt32 && t.Noise >= 0
}

// settled reports whether there is no need to measure again.
func (t trust) settled() bool {
	return !t.Doubted && t.Rounds >= fewRounds && (t.Noise <= noisy || t.Rounds >= manyRounds)
}

// after is the trust in the better of two numbers, of which the other was measured before.
func (t trust) after(before trust) trust {
	return trust{Rounds: t.Rounds + before.Rounds, Noise: min(t.Noise, before.Noise)}
}

// with is the record with the better of its rates and those of another.
func (r record) with(o record) record {
	if r.Basics.Doubted {
		o.Samples = r.Samples
		return o
	}
	p, q := &r.Profile, o.Profile
	for _, rate := range []struct{ have, found *float64 }{
		{&p.Device.FLOPs, &q.Device.FLOPs}, {&p.Device.Bytes, &q.Device.Bytes},
		{&p.Host.FLOPs, &q.Host.FLOPs}, {&p.Host.Bytes, &q.Host.Bytes},
		{&p.In, &q.In}, {&p.Out, &q.Out},
	} {
		*rate.have = max(*rate.have, *rate.found)
	}
	p.Device.Launch = min(p.Device.Launch, q.Device.Launch)
	p.Host.Launch = min(p.Host.Launch, q.Host.Launch)
	r.Gap, r.Shared, r.When = min(r.Gap, o.Gap), o.Shared, o.When
	r.Basics = o.Basics.after(r.Basics)
	return r
}

// apart is by how many times a step may take longer, or less, than its plan says before what
// the plan was made by is doubted; slack is what reading data and the like may take beside it.
const (
	apart = 2
	slack = time.Millisecond
)

// Doubt compares what a step of these nodes took with what was predicted. Where they are far
// apart, what was measured of the nodes is forgotten, and it and the rates are measured again by
// whoever opens the machine next; and Doubt reports true. The error is that this could not be kept.
func (m *Machine) Doubt(nodes []*graph.Node, predicted, took time.Duration) (bool, error) {
	if predicted <= 0 || took <= 0 || predicted <= apart*took+slack &&
		took <= apart*predicted+slack {
		return false, nil
	}
	m.known.Basics.Doubted = true
	for _, n := range nodes {
		delete(m.known.Samples, signature(n))
	}
	m.stale = m.cache.store(m.known)
	return true, m.stale
}
