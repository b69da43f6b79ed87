package replay

import (
	"math"

	"github.com/gomem/gomem/distrib/fabric"
)

// worker is one of an asynchronous job.
type worker struct {
	count   int     // updates that it has made
	version int     // of its model
	ready   float64 // when its update is; infinite while it waits for the model
	asks    float64 // when it asks for the model; infinite while it computes
}

// player plays a job in which workers push and get models through the scheduler, in batches.
type player struct {
	*world
	log     *Log
	s       *fabric.Scheduler
	workers []worker
	busy    float64 // when the server has applied all that was scheduled
	tick    int
}

// Async plays MLfabric's asynchronous job until a time or so many updates.
func Async(set Setting, seconds float64, updates int) (*Log, error) {
	return play("MLfabric-A", set, seconds, updates)
}

// Plain plays asynchronous workers that push to the server and get from it directly, and whose
// updates may be as late as they are.
func Plain(set Setting, seconds float64, updates int) (*Log, error) {
	set.Aggregators, set.Distributors, set.Delay, set.Replica = 0, 0, -1, false
	return play("async", set, seconds, updates)
}

func play(name string, set Setting, seconds float64, updates int) (*Log, error) {
	p := newPlayer(name, set)
	for i := range p.workers {
		p.workers[i].ready = p.slow(i, 0)
	}
	for p.now < seconds && len(p.log.Steps) < updates {
		p.tick++
		p.advance(float64(p.tick) * p.Batch)
		if err := p.push(); err != nil {
			return nil, err
		}
		if err := p.get(); err != nil {
			return nil, err
		}
	}
	return p.log, nil
}

func newPlayer(name string, set Setting) *player {
	p := &player{world: newWorld(&set), log: &Log{Name: name}, workers: make([]worker, set.Workers)}
	c := fabric.Config{Servers: []fabric.Host{p.server()}, MaxDelay: set.Delay, Bound: set.Bound}
	if set.Aggregators > 0 {
		c.Aggregators = [][]fabric.Host{set.hosts(0, set.Aggregators)}
	}
	if set.Replica {
		c.Replicas = []fabric.Host{p.replica()}
		c.ReplicaAggregators = [][]fabric.Host{set.hosts(set.Aggregators, set.Aggregators)}
	}
	p.s = fabric.NewScheduler(c, 0)
	for i := range p.workers {
		p.workers[i].asks = math.Inf(1)
	}
	return p
}

// id is an update's, and worker whose it is.
func (p *player) id(worker, count int) fabric.ID { return fabric.ID(count*len(p.workers) + worker) }
func (p *player) worker(id fabric.ID) (worker int) {
	return int(id) % len(p.workers)
}

// ready are the updates that wait.
func (p *player) ready() (all []fabric.Update) {
	for i, w := range p.workers {
		if w.ready <= p.now {
			all = append(all, fabric.Update{ID: p.id(i, w.count), From: p.host(i),
				Bytes: []float64{p.Bytes}, Version: int64(w.version), Norm: 1})
		}
	}
	return all
}

// push schedules the updates that are ready.
func (p *player) push() error {
	_, err := p.schedule(p.ready(), false, func(b Base, at float64) {
		p.log.Steps = append(p.log.Steps, Step{at, []Base{b}})
	})
	return err
}

// schedule schedules updates, sends them over the links as they are, and tells of each that is
// applied, in order. It is when the last one was.
func (p *player) schedule(ready []fabric.Update, more bool, applied func(Base, float64)) (float64,
	error) {
	if len(ready) == 0 {
		return p.busy, nil
	}
	s, err := p.s.Schedule(ready, p.known, more)
	if err != nil {
		return 0, err
	}
	sent := fabric.Carry(s.Transfers, p.real)
	p.log.sent(p.world, sent)
	if s.Replica != nil {
		p.log.sent(p.world, fabric.Carry(s.Replica.Transfers, p.real))
	}
	left, arrives := map[fabric.ID]float64{}, map[fabric.ID]float64{}
	for _, x := range sent {
		for _, id := range x.Updates {
			if _, ok := left[id]; !ok {
				left[id] = x.End
			}
			arrives[id] = x.End
		}
	}
	for _, id := range s.Order {
		w := &p.workers[p.worker(id)]
		p.busy = max(p.busy, p.now+arrives[id])
		applied(Base{p.worker(id), w.count, w.version}, p.busy)
		w.pushed(p.now + left[id])
	}
	for _, id := range s.Dropped {
		p.log.Dropped++
		p.workers[p.worker(id)].pushed(p.now)
	}
	return p.busy, nil
}

// pushed is when a worker has got rid of its update.
func (w *worker) pushed(at float64) { w.count, w.ready, w.asks = w.count+1, math.Inf(1), at }

// get sends the model to those who have asked for it.
func (p *player) get() error {
	version := len(p.log.Steps)
	for version > 0 && p.log.Steps[version-1].At > p.now {
		version--
	}
	return p.distribute(version)
}

// distribute sends a version of the model to those who have asked.
func (p *player) distribute(version int) error {
	var asked []fabric.Request
	for i, w := range p.workers {
		if w.asks <= p.now {
			asked = append(asked, fabric.Request{ID: fabric.ID(i), Host: p.host(i)})
		}
	}
	if len(asked) == 0 {
		return nil
	}
	servers, hubs := []fabric.Host{p.server()}, [][]fabric.Host(nil)
	if p.Distributors > 0 {
		hubs = [][]fabric.Host{p.hosts(2*p.Aggregators, p.Distributors)}
	}
	d, err := fabric.Distribute(asked, servers, hubs, []float64{p.Bytes}, p.known)
	if err != nil {
		return err
	}
	sent := fabric.Carry(d.Transfers, p.real)
	p.log.sent(p.world, sent)
	for _, r := range asked {
		w, there := &p.workers[r.ID], 0.0
		for _, x := range sent {
			if x.To == r.Host && len(x.Updates) == 1 && x.Updates[0] == r.ID {
				there = x.End
			}
		}
		w.version, w.asks = version, math.Inf(1)
		w.ready = p.now + there + p.slow(int(r.ID), w.count)
	}
	return nil
}
