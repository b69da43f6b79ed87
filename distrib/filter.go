package distrib

import "math"

// DVF is Parameter Flow's dynamic value-bounded filter: an element stays while its absolute
// value is at most delta_t, so what stays of d elements is at most delta_t*sqrt(d) long.
// Where the network is the bottleneck, more stays.
type DVF struct {
	Low  float32 // delta of a link that is fast enough, or not known
	Up   float32 // and of others; 0: Low
	Fast float64 // from how many bits a second on a link is fast enough; 0: 50e6

	// Rate scales delta by the clock: a learning rate by its first value. The bound must
	// fall as steps do, or late updates all fall below it. nil: 1/sqrt(clock+1).
	Rate func(Clock) float32
}

// Delta is the bound at a clock, over a link.
func (f DVF) Delta(now Clock, link Link) float32 {
	delta, fast := f.Low, f.Fast
	if fast == 0 {
		fast = 50e6
	}
	if f.Up != 0 && (link.Congested || link.Bps > 0 && link.Bps < fast) {
		delta = f.Up
	}
	if f.Rate != nil {
		return delta * f.Rate(now)
	}
	return float32(float64(delta) / math.Sqrt(float64(now)+1))
}

// Split sends the elements above the bound.
func (f DVF) Split(e *Entry, now Clock, link Link) (send, keep Update) {
	delta := f.Delta(now, link)
	return partition(e.U, func(v float32) bool { return !(abs(v) <= delta) })
}

func abs(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

// TopK sends the largest elements by absolute value: so many of each update, or the Frac
// of its elements if K is 0, one at least. Of equal ones the first go.
type TopK struct {
	K    int
	Frac float64
}

// Split sends the largest elements.
func (f TopK) Split(e *Entry, _ Clock, _ Link) (send, keep Update) {
	k := f.K
	if k == 0 {
		k = max(1, int(math.Ceil(f.Frac*float64(Elements(e.U)))))
	}
	values := parted(e.U)
	if k >= len(values) {
		return e.U, nil
	}
	least, ties := kth(values, k)
	return partition(e.U, func(v float32) bool {
		switch b := math.Float32bits(abs(v)); {
		case b > least:
			return true
		case b == least && ties > 0:
			ties--
			return true
		}
		return false
	})
}

// parted are the numbers that partition will look at.
func parted(u Update) []float32 {
	switch u := plain(u).(type) {
	case Dense:
		return u
	case Sparse:
		return u.Val
	case nil:
		return nil
	case Divisible:
		return u.Values()
	}
	return AsDense(u)
}

// kth is the k-th largest absolute value, as bits, and how many of the k equal it. Bits of
// positive numbers are in the order of the numbers; they are found 16 at a time.
func kth(x []float32, k int) (value uint32, ties int) {
	high, k := nth(x, k, func(b uint32) (int, bool) { return int(b >> 16), true })
	low, k := nth(x, k, func(b uint32) (int, bool) { return int(b & 0xffff), int(b>>16) == high })
	return uint32(high)<<16 | uint32(low), k
}

// nth is the largest bucket such that k numbers are in it or in larger ones, and how many
// of these are in it.
func nth(x []float32, k int, bucket func(uint32) (int, bool)) (at, rest int) {
	var count [1 << 16]int
	for _, v := range x {
		if b, ok := bucket(math.Float32bits(abs(v))); ok {
			count[b]++
		}
	}
	for at = len(count) - 1; at > 0 && count[at] < k; at-- {
		k -= count[at]
	}
	return at, k
}

// partition sends the elements of which goes says so, and keeps the others, each as it is.
func partition(u Update, goes func(float32) bool) (send, keep Update) {
	switch u := plain(u).(type) {
	case nil:
		return nil, nil
	case Sparse:
		return u.partition(goes)
	case Dense:
		return u.partition(goes)
	case Divisible:
		return u.Divide(goes)
	case Cell:
		return u, nil
	}
	return AsDense(u).partition(goes)
}

func (u Dense) partition(goes func(float32) bool) (send, keep Update) {
	sent, kept := make([]float32, len(u)), make([]float32, len(u))
	for i, v := range u {
		if goes(v) {
			sent[i] = v
		} else {
			kept[i] = v
		}
	}
	// A bitmap is a 32nd of the numbers, so it pays on the wire where it does not in memory.
	return fromDense(sent, 31, 32), fromDense(kept, 1, 2)
}

func (u Sparse) partition(goes func(float32) bool) (send, keep Update) {
	sent, kept := Sparse{N: u.N}, Sparse{N: u.N}
	for i, v := range u.Val {
		to := &kept
		if goes(v) {
			to = &sent
		}
		to.Idx, to.Val = append(to.Idx, u.Idx[i]), append(to.Val, v)
	}
	return orNil(sent), orNil(kept)
}

// Rounding sends numbers of 16 bits, and keeps the rounding error.
type Rounding struct{ As DType } // F16 or BF16

// Split rounds.
func (f Rounding) Split(e *Entry, _ Clock, _ Link) (send, keep Update) {
	switch u := plain(e.U).(type) {
	case nil:
		return nil, nil
	case Cell: // has no numbers to round
		return u, nil
	}
	return RoundTo(e.U, f.As)
}

// Chain is filters one after the other: what one sends, the next may keep.
type Chain []Filter

// Split sends what comes through all of them.
func (f Chain) Split(e *Entry, now Clock, link Link) (send, keep Update) {
	part := *e
	for _, filter := range f {
		if part.U == nil {
			break
		}
		var stays Update
		part.U, stays = filter.Split(&part, now, link)
		keep = Add(keep, stays)
	}
	return part.U, keep
}

// Bind tells those that ask for it the nodes and the parameters.
func (f Chain) Bind(v View, ps []*Param) error {
	for _, filter := range f {
		if b, ok := filter.(Binder); ok {
			if err := b.Bind(v, ps); err != nil {
				return err
			}
		}
	}
	return nil
}
