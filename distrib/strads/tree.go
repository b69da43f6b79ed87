package strads

// sumTree draws numbers with probabilities in proportion to weights. To change a weight and to draw
// take time in the logarithm of how many there are.
type sumTree struct {
	leaves int       // a power of 2
	sum    []float64 // of node i's children, 2i and 2i + 1; the root is 1
}

func newSumTree(n int) *sumTree {
	leaves := 1
	for leaves < n {
		leaves *= 2
	}
	return &sumTree{leaves: leaves, sum: make([]float64, 2*leaves)}
}

// total is the sum of all weights.
func (t *sumTree) total() float64 { return t.sum[1] }

func (t *sumTree) weight(i int32) float64 { return t.sum[t.leaves+int(i)] }

// set gives i a weight. Sums are made anew from below, so that no rounding adds up.
func (t *sumTree) set(i int32, weight float64) {
	at := t.leaves + int(i)
	t.sum[at] = weight
	for at /= 2; at > 0; at /= 2 {
		t.sum[at] = t.sum[2*at] + t.sum[2*at+1]
	}
}

// find is whose weight is at x, from 0 to below 1, of the total, which is more than 0. What
// rounding would lead to a weight of 0 goes to its neighbour.
func (t *sumTree) find(x float64) int32 {
	x *= t.sum[1]
	at := 1
	for at < t.leaves {
		at *= 2
		if t.sum[at+1] > 0 && (x >= t.sum[at] || t.sum[at] == 0) {
			x -= t.sum[at]
			at++
		}
	}
	return int32(at - t.leaves)
}
