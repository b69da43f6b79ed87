package fabric

import (
	"math"
	"slices"
)

// Host is a machine of the network. Numbers begin at 0.
type Host int

// Step is a rate from a time until that of the next step; the last one's goes on.
type Step struct {
	At  float64 // seconds
	Bps float64 // bytes a second
}

// Profile is how fast a link is from time 0 on, in order of time. One without steps carries
// nothing.
type Profile []Step

// Network is the links of hosts to a core that is never the bottleneck: one to send by and one to
// receive by. What a schedule reserves is taken off.
type Network struct {
	up, down []Profile
	rates    []rates // that were measured last
	journal  []change
	arena    []Step // of profiles that are younger than a mark
}

// rates are those of a host's links.
type rates struct{ up, down float64 }

// change is a profile before something was reserved.
type change struct {
	of  *Profile
	was Profile
}

// NewNetwork is the links of hosts.
func NewNetwork(up, down []Profile) *Network {
	n := &Network{up: slices.Clone(up), down: slices.Clone(down), rates: make([]rates, len(up))}
	for h := range n.rates {
		n.rates[h] = rates{up[h].last(), down[h].last()}
	}
	return n
}

// last is the rate that goes on.
func (p Profile) last() float64 {
	if len(p) == 0 {
		return 0
	}
	return p[len(p)-1].Bps
}

// Even is a network of hosts whose links all have a rate, in bytes a second.
func Even(hosts int, bps float64) *Network {
	all := make([]Profile, hosts)
	for i := range all {
		all[i] = Profile{{0, bps}}
	}
	return NewNetwork(all, all)
}

// Hosts is how many there are.
func (n *Network) Hosts() int { return len(n.up) }

// Clone is a network of its own, in the same state.
func (n *Network) Clone() *Network {
	return &Network{up: slices.Clone(n.up), down: slices.Clone(n.down),
		rates: slices.Clone(n.rates)}
}

// Finish is when bytes have arrived that leave at a time at the earliest and take whatever both
// links have left, t_en of figure 4; infinite if they never do.
func (n *Network) Finish(src, dst Host, from, bytes float64) float64 {
	if src == dst {
		return from
	}
	return finish(n.up[src], n.down[dst], from, bytes)
}

// drain is when bytes have arrived that only their receiver's link holds up.
func (n *Network) drain(dst Host, from, bytes float64) float64 {
	return finish(n.down[dst], n.down[dst], from, bytes)
}

func finish(up, down Profile, from, bytes float64) float64 {
	if bytes == 0 {
		return from
	}
	w := walk{up: up, down: down}
	for w.begin(from); ; w.next() {
		if sent := w.rate * (w.end - w.at); sent >= bytes || w.end == math.Inf(1) {
			if w.rate == 0 {
				return math.Inf(1)
			}
			return w.at + bytes/w.rate
		}
		bytes -= float64(w.rate * (w.end - w.at))
	}
}

// Reserve takes what [Network.Finish] has counted off both links, NetUp of figure 4. It returns
// when the first byte leaves and when the last one has arrived; nothing is reserved for what never
// arrives.
func (n *Network) Reserve(src, dst Host, from, bytes float64) (start, end float64) {
	end = n.Finish(src, dst, from, bytes)
	if src == dst || bytes == 0 || math.IsInf(end, 1) {
		return from, end
	}
	up, down := n.up[src], n.down[dst]
	w := walk{up: up, down: down}
	for w.begin(from); w.at < end; w.next() {
		if w.rate > 0 {
			start = w.at
			break
		}
	}
	n.set(&n.up[src], n.less(up, down, from, end))
	n.set(&n.down[dst], n.less(down, up, from, end))
	return start, end
}

// less is a profile without what two links share between two times.
func (n *Network) less(p, other Profile, from, to float64) Profile {
	begin := len(n.arena)
	add := func(at, bps float64) {
		if last := len(n.arena) - 1; last >= begin && n.arena[last].Bps == bps {
			return
		}
		n.arena = append(n.arena, Step{at, bps})
	}
	i := 0
	for ; i < len(p) && p[i].At < from; i++ {
		add(p[i].At, p[i].Bps)
	}
	w := walk{up: p, down: other}
	for w.begin(from); w.at < to; w.next() {
		add(w.at, w.own()-w.rate)
	}
	for ; i < len(p) && p[i].At <= to; i++ {
	}
	if i > 0 {
		add(to, p[i-1].Bps)
	}
	for ; i < len(p); i++ {
		add(p[i].At, p[i].Bps)
	}
	return Profile(n.arena[begin:len(n.arena):len(n.arena)])
}

// set changes a profile, so that it can be changed back.
func (n *Network) set(p *Profile, to Profile) {
	n.journal = append(n.journal, change{p, *p})
	*p = to
}

// Rate sets how fast a host's links are from now on, in bytes a second, as somebody has measured.
// What is reserved remains so.
func (n *Network) Rate(h Host, up, down float64) {
	if n.rates[h] == (rates{up, down}) {
		return
	}
	n.up[h] = n.up[h].rated(up - n.rates[h].up)
	n.down[h] = n.down[h].rated(down - n.rates[h].down)
	n.rates[h] = rates{up, down}
}

// rated is a profile that is faster all the time.
func (p Profile) rated(by float64) Profile {
	out := slices.Clone(p)
	for i := range out {
		out[i].Bps = max(0, out[i].Bps+by)
	}
	return out
}

// Advance makes a later time 0.
func (n *Network) Advance(by float64) {
	for h := range n.up {
		n.up[h], n.down[h] = n.up[h].since(by), n.down[h].since(by)
	}
}

// since is a profile whose time 0 is later.
func (p Profile) since(by float64) Profile {
	out := slices.Clone(p[max(0, step(p, by)):])
	for i := range out {
		out[i].At = max(0, out[i].At-by)
	}
	return out
}

// mark is a state to go back to.
type mark struct{ journal, arena int }

func (n *Network) mark() mark { return mark{len(n.journal), len(n.arena)} }

// back undoes what was reserved since a mark.
func (n *Network) back(m mark) {
	for i := len(n.journal) - 1; i >= m.journal; i-- {
		*n.journal[i].of = n.journal[i].was
	}
	n.journal, n.arena = n.journal[:m.journal], n.arena[:m.arena]
}

// walk goes along two profiles at once, over spans in which neither changes.
type walk struct {
	up, down Profile
	i, j     int     // the steps that count at the time, -1 before the first
	at, end  float64 // the span
	rate     float64 // that both have
}

// begin goes to a time.
func (w *walk) begin(at float64) {
	w.i, w.j = step(w.up, at), step(w.down, at)
	w.at = at
	w.look()
}

// step is the last one that is not after a time, -1 if there is none.
func step(p Profile, at float64) int {
	i := 0
	for i < len(p) && p[i].At <= at {
		i++
	}
	return i - 1 // few steps are in the past
}

func (w *walk) look() {
	w.end = math.Inf(1)
	if w.i+1 < len(w.up) {
		w.end = w.up[w.i+1].At
	}
	if w.j+1 < len(w.down) {
		w.end = min(w.end, w.down[w.j+1].At)
	}
	w.rate = 0
	if w.i >= 0 && w.j >= 0 {
		w.rate = min(w.up[w.i].Bps, w.down[w.j].Bps)
	}
}

// own is the rate of the first profile.
func (w *walk) own() float64 {
	if w.i < 0 {
		return 0
	}
	return w.up[w.i].Bps
}

func (w *walk) next() {
	w.at = w.end
	if w.i+1 < len(w.up) && w.up[w.i+1].At == w.at {
		w.i++
	}
	if w.j+1 < len(w.down) && w.down[w.j+1].At == w.at {
		w.j++
	}
	w.look()
}

// At is the rate at a time.
func (p Profile) At(t float64) float64 {
	if i := step(p, t); i >= 0 {
		return p[i].Bps
	}
	return 0
}

// From is the profile with another rate from a time on.
func (p Profile) From(t, bps float64) Profile {
	return append(slices.Clone(p[:step(p, t)+1]), Step{t, bps})
}
