package bound

import (
	"cmp"
	"math/bits"
	"slices"
)

// item is something that gains so much for so much weight.
type item struct{ weight, gain int64 }

// compare compares what two items gain for their weight.
func (x item) compare(y item) int {
	xh, xl := bits.Mul64(uint64(x.gain), uint64(y.weight))
	yh, yl := bits.Mul64(uint64(y.gain), uint64(x.weight))
	return cmp.Or(cmp.Compare(xh, yh), cmp.Compare(xl, yl))
}

// knapsack answers what can be gained with a capacity, if items can be divided.
type knapsack struct {
	items         []item  // most gain for its weight first
	weight, gains []int64 // of so many items
}

func newKnapsack(items []item) knapsack {
	items = slices.DeleteFunc(items, func(i item) bool { return i.gain <= 0 })
	slices.SortFunc(items, func(x, y item) int {
		return cmp.Or(y.compare(x), cmp.Compare(x.weight, y.weight))
	})
	k := knapsack{items: items, weight: make([]int64, len(items)+1),
		gains: make([]int64, len(items)+1)}
	for i, it := range items {
		k.weight[i+1], k.gains[i+1] = k.weight[i]+it.weight, k.gains[i]+it.gain
	}
	return k
}

// most is the most that can be gained with a capacity, rounded up.
func (k *knapsack) most(capacity int64) int64 {
	n, found := slices.BinarySearch(k.weight, capacity)
	if found {
		for n < len(k.items) && k.weight[n+1] == capacity { // weightless
			n++
		}
		return k.gains[n]
	}
	if n > len(k.items) {
		return k.gains[len(k.items)]
	}
	it := k.items[n-1]
	hi, lo := bits.Mul64(uint64(it.gain), uint64(capacity-k.weight[n-1]))
	q, r := bits.Div64(hi, lo, uint64(it.weight)) // less than the gain: it fits
	if r > 0 {
		q++
	}
	return k.gains[n-1] + int64(q)
}
