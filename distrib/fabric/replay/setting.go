package replay

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/gomem/gomem/distrib/fabric"
)

// Setting is a job and where it runs. The zero value of nothing is of use: see [Paper].
type Setting struct {
	Workers, Hosts int     // workers are dealt to hosts in turn; the servers have one of their own
	Bytes          float64 // of a model, and of an update
	Compute        float64 // seconds for an update
	Straggle       Straggle
	Links          Links
	Lag            float64 // seconds until the scheduler knows of a link's new rate
	Batch          float64 // seconds from batch to batch
	Delay          int64   // updates that an update may miss
	Aggregators    int
	Distributors   int
	Replica        bool // there is one, on a host of its own
	Bound          fabric.Bound
	Seed           uint64
}

// Straggle is how often a computation takes how many times as long.
type Straggle struct{ Share, Factor float64 }

// Links are how fast hosts' links are.
type Links struct {
	Every float64   // seconds until all are drawn anew
	Bps   []float64 // bytes a second
	Share []float64 // how often each of these is drawn
	Fixed []Rate    // instead of what is drawn, from its time on
}

// Rate is that of a host's links from a time on.
type Rate struct {
	At       float64 // seconds
	Host     int
	Up, Down float64 // bytes a second
}

// gbps are bytes a second.
func gbps(g float64) float64 { return g * 1e9 / 8 }

// Paper is the setting of section 7, by the names of its computations, C1 to C3, and its links, N1
// to N3: 30 workers on 15 machines, ResNet-50's 100 MB, 100 ms to compute. It has no aggregators'
// number; this one has 4.
func Paper(name string) (Setting, error) {
	computing := map[string]Straggle{"C1": {0.1, 2}, "C2": {0.1, 4}, "C3": {0.04, 2}}
	links := map[string][]float64{"N1": {0, 0, 0, 0.1, 0.9}, "N2": {0, 0.1, 0.1, 0.1, 0.7},
		"N3": {0.5, 0, 0, 0, 0.5}}
	s := Setting{Workers: 30, Hosts: 15, Bytes: 100e6, Compute: 0.1, Lag: 0.2, Batch: 0.1,
		Delay: 30, Aggregators: 4, Distributors: 4, Seed: 1}
	c, n := name[:len(name)/2], name[len(name)/2:]
	var known, also bool
	s.Straggle, known = computing[c]
	s.Links.Share, also = links[n]
	if !known || !also {
		return s, fmt.Errorf("there is no setting %q: C1 to C3 and N1 to N3 make one, such as C2N1",
			strings.TrimSpace(name))
	}
	s.Links.Every = 5
	s.Links.Bps = []float64{gbps(1), gbps(2.5), gbps(3.3), gbps(5), gbps(10)}
	return s, nil
}

// server and replica are hosts behind those of the workers.
func (s *Setting) server() fabric.Host  { return fabric.Host(s.Hosts) }
func (s *Setting) replica() fabric.Host { return fabric.Host(s.Hosts + 1) }

func (s *Setting) host(worker int) fabric.Host { return fabric.Host(worker % s.Hosts) }

// hosts are the first so many, from one on, in turn: aggregators and distributors.
func (s *Setting) hosts(first, count int) (all []fabric.Host) {
	for i := range min(count, s.Hosts) {
		all = append(all, fabric.Host((first+i)%s.Hosts))
	}
	return all
}

// at is the rate of a host's link in a period. Servers and replicas have the fastest.
func (l *Links) at(seed uint64, host, way int, period int) float64 {
	r := rand.New(rand.NewPCG(seed, uint64(host)<<40|uint64(way)<<32|uint64(period)))
	x := r.Float64()
	for i, share := range l.Share {
		if x -= share; x < 0 {
			return l.Bps[i]
		}
	}
	return l.Bps[len(l.Bps)-1]
}

// profile is how fast a host's link is, until a time.
func (s *Setting) profile(host, way int, until float64) fabric.Profile {
	if host >= s.Hosts {
		return fabric.Profile{{At: 0, Bps: s.Links.Bps[len(s.Links.Bps)-1]}}
	}
	var p fabric.Profile
	for period := 0; float64(period)*s.Links.Every <= until; period++ {
		p = append(p, fabric.Step{At: float64(period) * s.Links.Every,
			Bps: s.Links.at(s.Seed, host, way, period)})
	}
	for _, f := range s.Links.Fixed {
		if f.Host == host {
			p = p.From(f.At, [2]float64{f.Up, f.Down}[way])
		}
	}
	return p
}

// world is a setting's network as it is, and as its scheduler knows it.
type world struct {
	*Setting
	real, known *fabric.Network
	up, down    []fabric.Profile
	now         float64
}

// until is how long links change.
const until = 3600

func newWorld(s *Setting) *world {
	w := &world{Setting: s}
	first := func(p fabric.Profile) fabric.Profile { return p[:1] }
	var up, down []fabric.Profile
	for h := range s.Hosts + 2 {
		w.up, w.down = append(w.up, s.profile(h, 0, until)), append(w.down, s.profile(h, 1, until))
		up, down = append(up, first(w.up[h])), append(down, first(w.down[h]))
	}
	w.real, w.known = fabric.NewNetwork(w.up, w.down), fabric.NewNetwork(up, down)
	return w
}

// advance goes to a later time, at which the scheduler hears what was a while ago.
func (w *world) advance(to float64) {
	by := to - w.now
	w.real.Advance(by)
	w.known.Advance(by)
	w.now = to
	for h := range w.up {
		w.known.Rate(fabric.Host(h), w.up[h].At(max(0, to-w.Lag)), w.down[h].At(max(0, to-w.Lag)))
	}
}

// slow is how long a worker's computation takes.
func (w *world) slow(worker, count int) float64 {
	r := rand.New(rand.NewPCG(w.Seed+1, uint64(worker)<<32|uint64(count)))
	if r.Float64() < w.Straggle.Share {
		return w.Compute * w.Straggle.Factor
	}
	return w.Compute
}

// Random is a batch as the paper's test of the scheduler has them (section 7.4): deadlines between
// 1 and twice the number of updates, half as many machines, a core without congestion.
func Random(seed uint64, updates, aggregators int) (fabric.Batch, *fabric.Network) {
	r := rand.New(rand.NewPCG(seed, 7))
	hosts := max(updates/2, 2)
	n := fabric.Even(hosts+1, gbps(10))
	b := fabric.Batch{Servers: []fabric.Host{fabric.Host(hosts)}, Version: int64(2 * updates),
		MaxDelay: int64(2 * updates)}
	for i := range updates {
		b.Updates = append(b.Updates, fabric.Update{ID: fabric.ID(i),
			From: fabric.Host(r.IntN(hosts)), Bytes: []float64{1e8},
			Version: 1 + r.Int64N(int64(2*updates))})
	}
	var all []fabric.Host
	for _, h := range r.Perm(hosts)[:min(aggregators, hosts)] {
		all = append(all, fabric.Host(h))
	}
	b.Aggregators = [][]fabric.Host{all}
	return b, n
}
