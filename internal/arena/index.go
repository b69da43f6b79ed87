package arena

// timeIndex finds the placed blocks that are live at some time of a given
// block. Time is cut into buckets; a block is listed in the bucket in which it
// starts if it is short, and in every bucket it reaches if it is not, by way of
// a list for each power-of-two level, so that a look-up sees few strangers.
type timeIndex struct {
	blocks []Block
	levels []map[int][]int // levels[k][t>>k] are blocks of at most 1<<k ticks that start there
}

func newTimeIndex(blocks []Block) *timeIndex { return &timeIndex{blocks: blocks} }

// level is the least k with 1<<k ≥ the block's duration.
func level(b Block) int {
	k := 0
	for 1<<k < b.To-b.From+1 {
		k++
	}
	return k
}

func (x *timeIndex) add(i int) {
	k := level(x.blocks[i])
	for len(x.levels) <= k {
		x.levels = append(x.levels, map[int][]int{})
	}
	cell := x.blocks[i].From >> k
	x.levels[k][cell] = append(x.levels[k][cell], i)
}

// visit calls f with every placed block that meets b in time.
func (x *timeIndex) visit(b Block, f func(i int)) {
	for k, cells := range x.levels {
		if len(cells) == 0 {
			continue
		}
		// A block of this level that meets b starts at most 1<<k before b does.
		for cell := (b.From >> k) - 1; cell <= b.To>>k; cell++ {
			for _, i := range cells[cell] {
				if o := x.blocks[i]; o.From <= b.To && o.To >= b.From {
					f(i)
				}
			}
		}
	}
}
