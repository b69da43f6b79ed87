package workload

// Samples are labelled sparse vectors.
type Samples struct {
	Features, Classes int

	start []int32 // of each sample's entries; one more at the end
	index []int32
	value []float32
	label []int32
	// target are labels that are numbers; nil: they are classes.
	target []float64
	first  [2]int32 // the least label and index of the file that it was
	minus  bool     // which called the first of two classes -1
}

// Len is how many samples there are.
func (s *Samples) Len() int { return len(s.label) }

// Shard is the part of worker w of n: samples w, w+n, and so on. It shares no memory.
func (s *Samples) Shard(w, n int) *Samples {
	part := &Samples{Features: s.Features, Classes: s.Classes, start: []int32{0}}
	for i := w; i < s.Len(); i += n {
		index, value := s.at(i)
		part.index, part.value = append(part.index, index...), append(part.value, value...)
		part.end(s.label[i])
		if s.target != nil {
			part.target = append(part.target, s.target[i])
		}
	}
	return part
}

func (s *Samples) at(i int) (index []int32, value []float32) {
	from, to := s.start[i], s.start[i+1]
	return s.index[from:to], s.value[from:to]
}

func (s *Samples) end(label int32) {
	s.start = append(s.start, int32(len(s.index)))
	s.label = append(s.label, label)
}

// columns are samples by feature.
type columns struct {
	start []int // of each feature's entries; one more at the end
	row   []int32
	value []float32
}

func (s *Samples) columns() columns {
	c := columns{make([]int, s.Features+1), make([]int32, len(s.index)),
		make([]float32, len(s.index))}
	for _, j := range s.index {
		c.start[j+1]++
	}
	for j := range s.Features {
		c.start[j+1] += c.start[j]
	}
	next := append([]int(nil), c.start[:s.Features]...)
	for i := range s.Len() {
		index, values := s.at(i)
		for k, j := range index {
			c.row[next[j]], c.value[next[j]] = int32(i), values[k]
			next[j]++
		}
	}
	return c
}
