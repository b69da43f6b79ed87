package train

// Mean is a weighted mean of numbers, added up one after another: of the losses of
// batches, say, by their sizes. Its zero value is the mean of none.
type Mean struct {
	value, weight float64
}

// Add adds a number with its weight; one that weighs nothing changes nothing.
func (m *Mean) Add(x, weight float64) {
	if weight == 0 {
		return
	}
	m.weight += weight
	m.value += (x - m.value) * weight / m.weight
}

// Value is the mean; 0 of none.
func (m *Mean) Value() float64 { return m.value }

// Weight is the sum of the weights.
func (m *Mean) Weight() float64 { return m.weight }

// Recent is a mean in which older numbers count less and less: each new one has the
// given share, such as 0.1. Of its first numbers it is the plain mean.
type Recent struct {
	Share float64
	value float64
	count int
}

// Add adds a number.
func (r *Recent) Add(x float64) {
	r.count++
	r.value += float64((x - r.value) * max(r.Share, 1/float64(r.count)))
}

// Value is the mean; 0 of none.
func (r *Recent) Value() float64 { return r.value }

// Confusion counts what a classifier took for what.
type Confusion struct {
	counts [][]int // by the true class, and by the one that was said
}

// NewConfusion counts nothing yet, of so many classes.
func NewConfusion(classes int) *Confusion {
	c := &Confusion{counts: make([][]int, max(0, classes))}
	for i := range c.counts {
		c.counts[i] = make([]int, classes)
	}
	return c
}

// Add counts an example of a class that was taken for another, or for itself. Examples of
// classes that there are none of, such as rows that pad a batch, are not counted.
func (c *Confusion) Add(class, said int) {
	if n := len(c.counts); class >= 0 && class < n && said >= 0 && said < n {
		c.counts[class][said]++
	}
}

// Count is how often a class was taken for another, or for itself.
func (c *Confusion) Count(class, said int) int { return c.counts[class][said] }

// Accuracy is the share of examples that were taken for what they are; 0 of none.
func (c *Confusion) Accuracy() float64 {
	right, all := 0, 0
	for i, row := range c.counts {
		right += row[i]
		for _, n := range row {
			all += n
		}
	}
	return share(right, all)
}

// Precision is the share of what was taken for a class that is of it, Recall that of the
// class that was taken for it; 0 of none.
func (c *Confusion) Precision(class int) float64 {
	all := 0
	for _, row := range c.counts {
		all += row[class]
	}
	return share(c.counts[class][class], all)
}

// Recall is the share of the examples of a class that were taken for it; 0 of none.
func (c *Confusion) Recall(class int) float64 {
	all := 0
	for _, n := range c.counts[class] {
		all += n
	}
	return share(c.counts[class][class], all)
}

// share is a part of a whole; 0 of nothing.
func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
