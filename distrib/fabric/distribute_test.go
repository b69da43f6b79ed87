package fabric

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// TestDistribute: each worker that has asked gets each component once, from a host that has it by
// then; no link carries more than it can; and with distributors nobody waits longer than without.
func TestDistribute(t *testing.T) {
	sooner := 0
	for seed := range uint64(300) {
		j := newJob(seed)
		var requests []Request
		for i := range 1 + j.r.IntN(20) {
			requests = append(requests, Request{ID(i), j.host()})
		}
		servers := []Host{j.host(), j.host()}
		hubs := [][]Host{j.hosts(3), j.hosts(3)}
		bytes := []float64{3, 5}
		was := j.n.Clone()
		d, err := Distribute(requests, servers, hubs, bytes, j.n)
		if err != nil {
			t.Fatal(err)
		}
		if err := fits(d.Transfers, was); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		served(t, d, requests, servers)
		direct, err := Distribute(requests, servers, nil, bytes, was)
		if err != nil {
			t.Fatal(err)
		}
		if d.End < direct.End {
			sooner++
		}
	}
	if sooner < 100 {
		t.Errorf("distributors help %d times of 300", sooner)
	}
	if _, err := Distribute(nil, nil, nil, nil, Even(2, 1)); err == nil {
		t.Error("nobody's model is distributed")
	}
}

// served checks who has got what from whom.
func served(t *testing.T, d *Distribution, requests []Request, servers []Host) {
	t.Helper()
	for component, server := range servers {
		since := map[Host]float64{server: 0}
		got := map[ID]int{}
		for _, x := range d.Transfers {
			if x.Component != component {
				continue
			}
			at, has := since[x.From]
			if !has || at > x.Start+1e-9 {
				t.Fatalf("host %d sends at %v, and has it at %v, %t", x.From, x.Start, at, has)
			}
			if before, has := since[x.To]; !has || x.End < before {
				since[x.To] = x.End
			}
			for _, r := range requests {
				if len(x.Updates) == 1 && x.Updates[0] == r.ID && x.To == r.Host {
					got[r.ID]++
				}
			}
		}
		for _, r := range requests {
			if got[r.ID] == 0 {
				t.Fatalf("request %+v gets nothing", r)
			}
		}
	}
}

// TestCarry: transfers on the network that they were scheduled for arrive when they were scheduled
// to, and on a slower one each after what it consists of, as links can.
func TestCarry(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		b, n := drawn(seed, 2+r.IntN(30), 3, false)
		was, half := n.Clone(), n.Clone()
		for h := range half.up {
			half.Rate(Host(h), half.rates[h].up/2, half.rates[h].down/2)
		}
		s, err := New(b, n)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range Carry(s.Transfers, was) {
			if x.End > s.Transfers[i].End+1e-9 {
				t.Fatalf("seed %d: %+v arrives at %v", seed, s.Transfers[i], x.End)
			}
		}
		free := half.Clone()
		carried := Carry(s.Transfers, half)
		err = errors.Join(causal(carried, Config{Servers: b.Servers}), fits(carried, free))
		if err != nil {
			t.Fatalf("seed %d: on slower links: %v", seed, err)
		}
	}
}
