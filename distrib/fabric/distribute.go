package fabric

import "math"

// Request is a worker's for the model.
type Request struct {
	ID   ID
	Host Host
}

// Distribution is a model's way to the workers that have asked for it (section 10.3).
type Distribution struct {
	Transfers []Transfer // whose Updates are the requests that they are for
	End       float64    // when the last worker has it
}

// Distribute sends a model whose components are so large from its servers to the workers that have
// asked for it, some of them by way of distributors, a list for each server. The groups are those
// of algorithm 3 with all links reversed; the last group's distributor is served first, and
// workers that get it from the servers last. What it reserves is taken off the network.
func Distribute(requests []Request, servers []Host, distributors [][]Host, bytes []float64,
	n *Network) (*Distribution, error) {
	b := Batch{Servers: servers, Aggregators: distributors, MaxDelay: -1}
	for _, r := range requests {
		b.Updates = append(b.Updates, Update{ID: r.ID, From: r.Host, Bytes: bytes})
	}
	if err := b.check(n.Hosts()); err != nil {
		return nil, err
	}
	back := n.Clone()
	back.up, back.down = back.down, back.up
	kept, unreached := order(&b, back.Clone())
	g := &grouping{b: &b, order: append(kept, unreached...)}
	c := g.improve(back, g.cut(back))
	d := &Distribution{}
	at := len(g.order)
	for a := len(c.groups) - 1; a >= 0; a-- {
		group := g.order[at-c.groups[a] : at]
		at -= c.groups[a]
		for j, server := range servers {
			hub := distributors[j][c.via[a]]
			there := d.send(n, Transfer{Updates: g.ids(group), From: server, To: hub, Component: j,
				Bytes: bytes[j]})
			d.fan(n, g, group, hub, j, there, bytes[j])
		}
	}
	for j, server := range servers {
		d.fan(n, g, g.order[:c.direct], server, j, 0, bytes[j])
	}
	return d, nil
}

// fan sends a component to workers from a host that has it since a time.
func (d *Distribution) fan(n *Network, g *grouping, to []int, from Host, component int, since,
	bytes float64) {
	for _, i := range to {
		d.send(n, Transfer{Updates: g.ids([]int{i}), From: from, To: g.b.Updates[i].From,
			Component: component, Bytes: bytes, Start: since})
	}
}

// send reserves a transfer that starts at its time at the earliest, and is when it has arrived.
func (d *Distribution) send(n *Network, x Transfer) float64 {
	x.Start, x.End = n.Reserve(x.From, x.To, x.Start, x.Bytes)
	d.Transfers = append(d.Transfers, x)
	d.End = max(d.End, x.End)
	return x.End
}

// Carry is when transfers arrive on a network that is not the one they were scheduled for: in their
// order, and none before what it consists of has arrived where it leaves from. What it reserves is
// taken off the network.
func Carry(all []Transfer, n *Network) []Transfer {
	type place struct {
		at        Host
		component int
		id        ID
	}
	there := map[place]float64{}
	out := make([]Transfer, len(all))
	for i, x := range all {
		from := 0.0
		for _, id := range x.Updates {
			from = max(from, there[place{x.From, x.Component, id}])
		}
		x.Start, x.End = n.Reserve(x.From, x.To, from, x.Bytes)
		if !math.IsInf(x.End, 1) {
			for _, id := range x.Updates {
				there[place{x.To, x.Component, id}] = x.End
			}
		}
		out[i] = x
	}
	return out
}
