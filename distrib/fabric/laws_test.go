package fabric

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// job is a scheduler's job that is drawn: batches on links whose rates change.
type job struct {
	*Scheduler
	r    *rand.Rand
	n    *Network
	next ID
}

func newJob(seed uint64) *job {
	r := rand.New(rand.NewPCG(seed, 11))
	hosts := 4 + r.IntN(8)
	j := &job{r: r, n: Even(hosts, 1)}
	for h := range hosts {
		j.n.Rate(Host(h), j.rate(), j.rate())
	}
	c := Config{MaxDelay: int64(r.IntN(30)) - 1}
	c.Bound.Momentum = []float64{0, 0.9}[r.IntN(2)]
	servers, groups, replicas := 1+r.IntN(2), r.IntN(4), r.IntN(2) == 0
	for range servers {
		c.Servers = append(c.Servers, j.host())
		c.Aggregators = append(c.Aggregators, j.hosts(groups))
		if replicas {
			c.Replicas = append(c.Replicas, j.host())
			c.ReplicaAggregators = append(c.ReplicaAggregators, j.hosts(r.IntN(3)))
			c.ReplicaAggregators[len(c.Replicas)-1] = j.hosts(groups)
		}
	}
	if r.IntN(2) == 0 {
		c.Bound.Updates = 1 + r.IntN(10)
	} else {
		c.Bound.Norm = 1 + 10*r.Float64()
	}
	j.Scheduler = NewScheduler(c, 0)
	return j
}

func (j *job) rate() float64 { return []float64{1, 2.5, 3.3, 5, 10}[j.r.IntN(5)] }
func (j *job) host() Host    { return Host(j.r.IntN(j.n.Hosts())) }
func (j *job) hosts(n int) (all []Host) {
	for range n {
		all = append(all, j.host())
	}
	return all
}

func (j *job) updates() (all []Update) {
	for range 1 + j.r.IntN(12) {
		j.next++
		u := Update{ID: j.next, From: j.host(), Norm: j.r.Float64(),
			Version: max(0, j.Version()-int64(j.r.IntN(30)))}
		for range j.c.Servers {
			u.Bytes = append(u.Bytes, float64(1+j.r.IntN(5)))
		}
		all = append(all, u)
	}
	return all
}

// TestLaws: of 1,000 jobs no update is applied later than the bound says, none is lost or comes
// twice, no link carries more than it can, what is added up has arrived before, the servers get
// groups in order, and at the end of each batch the replicas are as near as the bound says.
func TestLaws(t *testing.T) {
	applied, dropped, waited, punted := 0, 0, 0, 0
	seeds := []uint64{6890} // where a replica's update arrives later for having more room
	for seed := range uint64(longtest.Count(1000, 100_000)) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		j := newJob(seed)
		var server, replica []ID
		for batch := range 6 {
			updates, before, was := j.updates(), j.Version(), j.n.Clone()
			s, err := j.Schedule(updates, j.n, false)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if err := j.breaks(s, updates, before, was); err != nil {
				t.Fatalf("seed %d, batch %d: %v\n%+v", seed, batch, err, s)
			}
			server = append(server, s.Order...)
			if s.Replica != nil {
				replica = append(replica, s.Replica.Updates...)
				if !slices.Equal(replica, server[:len(replica)]) ||
					len(server)-len(replica) != s.Replica.Punted {
					t.Fatalf("seed %d: the replica has %v, the server %v", seed, replica, server)
				}
				if s.Replica.Delay > 0 {
					waited++
				}
				punted += s.Replica.Punted
			}
			applied, dropped = applied+len(s.Order), dropped+len(s.Dropped)
			j.n.Advance(j.r.Float64() * s.End)
			j.n.Rate(j.host(), j.rate(), j.rate())
		}
	}
	t.Logf("%d updates applied, %d dropped, %d punted, %d batches delayed", applied, dropped,
		punted, waited)
	if applied == 0 || dropped == 0 || waited == 0 || punted == 0 {
		t.Error("some of it never happens")
	}
}

// breaks says which law a schedule breaks.
func (j *job) breaks(s *Schedule, updates []Update, before int64, was *Network) error {
	byID, fate := map[ID]Update{}, map[ID]int{}
	for _, u := range updates {
		byID[u.ID] = u
	}
	for i, id := range s.Order {
		fate[id]++
		delay := before + int64(i) - byID[id].Version
		if j.c.MaxDelay >= 0 && delay > j.c.MaxDelay {
			return fmt.Errorf("update %d is applied %d updates late", id, delay)
		}
	}
	for _, id := range s.Dropped {
		fate[id]++
	}
	var grouped []ID
	for _, g := range s.Groups {
		grouped = append(grouped, g.Updates...)
	}
	if !slices.Equal(grouped, s.Order) {
		return fmt.Errorf("groups %v of the order %v", grouped, s.Order)
	}
	for id := range byID {
		if fate[id] != 1 {
			return fmt.Errorf("update %d has %d fates", id, fate[id])
		}
	}
	all := s.Transfers
	if r := s.Replica; r != nil {
		all = append(slices.Clone(all), r.Transfers...)
		b := j.c.Bound
		if b.Updates > 0 && r.Punted > b.Updates || b.Norm > 0 && r.Distance > b.Norm*(1+1e-12) {
			return fmt.Errorf("the replica lacks %d updates, %v of %+v", r.Punted, r.Distance, b)
		}
		for _, g := range r.Groups {
			if g.Arrives > s.End+1e-9 {
				return fmt.Errorf("the replica's group %v arrives at %v", g.Updates, g.Arrives)
			}
		}
	}
	if err := causal(all, j.c); err != nil {
		return err
	}
	return fits(all, was)
}

// causal says which sum leaves before one of its updates is there.
func causal(all []Transfer, c Config) error {
	final := func(x Transfer) bool {
		return x.To == c.Servers[x.Component] ||
			c.Replicas != nil && x.To == c.Replicas[x.Component]
	}
	for _, sum := range all {
		if len(sum.Updates) < 2 || !final(sum) {
			continue
		}
		for _, id := range sum.Updates {
			there := slices.ContainsFunc(all, func(x Transfer) bool {
				return slices.Equal(x.Updates, []ID{id}) && x.To == sum.From && x.Component ==
					sum.Component && x.End <= sum.Start+1e-9
			})
			if !there {
				return fmt.Errorf("the sum of %v leaves at %v without %d", sum.Updates, sum.Start,
					id)
			}
		}
	}
	return nil
}

// fits says which link carries more than it can: in no span of time may more bytes have to go over
// it than it has.
func fits(all []Transfer, n *Network) error {
	for _, a := range all {
		for _, b := range all {
			for _, link := range []struct {
				p  Profile
				on func(Transfer) bool
			}{
				{n.up[a.From], func(x Transfer) bool { return x.From == a.From && x.From != x.To }},
				{n.down[a.To], func(x Transfer) bool { return x.To == a.To && x.From != x.To }},
			} {
				begin, end, sum := a.Start, b.End, 0.0
				for _, x := range all {
					if link.on(x) && x.Start >= begin && x.End <= end {
						sum += x.Bytes
					}
				}
				if can := area(link.p, begin, end); sum > can+1e-6*max(1, can) {
					return fmt.Errorf("%v bytes between %v and %v, over a link that can carry %v",
						sum, begin, end, can)
				}
			}
		}
	}
	return nil
}

// area is how many bytes a link can carry between two times.
func area(p Profile, from, to float64) (bytes float64) {
	for i, s := range p {
		end := math.Inf(1)
		if i+1 < len(p) {
			end = p[i+1].At
		}
		if d := min(end, to) - max(s.At, from); d > 0 {
			bytes += d * s.Bps
		}
	}
	return bytes
}
