package arena

import (
	"cmp"
	"slices"
)

// strip is what is to be packed, in the form that the searches need: the moving
// blocks that have bytes, in order of their starts, with times counted in sections.
// A section begins at the first start of a block after an end of one; two blocks meet if
// and only if they share a section, and all blocks of a section meet.
type strip struct {
	arena    Arena
	ids      []int   // by block: its index among the caller's
	size     []int64 // by block, in bytes, a multiple of its alignment
	from, to []int32 // by block: its first and last section
	starts   []int32 // by section, and one more: the first block that starts there or later
	head     []int32 // by block, and one more: where its list begins in before; or no lists
	before   []int32 // by block: the earlier ones that are live when it starts
	load     int64   // the most bytes in a section
}

// newStrip prepares blocks of which so many pairs meet.
func (a Arena) newStrip(blocks []Block, pairs int64) *strip {
	s := a.sectioned(blocks)
	s.list(pairs)
	return s
}

// sectioned prepares blocks, but for the lists of what meets and the load.
func (a Arena) sectioned(blocks []Block) *strip {
	s := &strip{arena: a}
	for i, b := range blocks {
		if !b.Fixed && b.Bytes > 0 {
			s.ids = append(s.ids, i)
		}
	}
	slices.SortStableFunc(s.ids, func(a, b int) int {
		return cmp.Compare(blocks[a].From, blocks[b].From)
	})
	var ends, times []int
	for _, i := range s.ids {
		ends = append(ends, blocks[i].To)
	}
	slices.Sort(ends)
	for k, i := range s.ids {
		s.size = append(s.size, a.Up(blocks[i].Bytes))
		ended, _ := slices.BinarySearch(ends, blocks[i].From)
		if len(times) == 0 || ended > 0 && ends[ended-1] >= times[len(times)-1] {
			times = append(times, blocks[i].From)
			s.starts = append(s.starts, int32(k))
		}
		s.from = append(s.from, int32(len(times)-1))
	}
	s.starts = append(s.starts, int32(len(s.ids)))
	for _, i := range s.ids {
		after, found := slices.BinarySearch(times, blocks[i].To)
		if !found {
			after--
		}
		s.to = append(s.to, int32(after))
	}
	return s
}

// list fills the lists of blocks that are live when another starts, so many in all, and
// finds the load.
func (s *strip) list(pairs int64) {
	s.before = make([]int32, 0, pairs)
	var live []int32
	var bytes int64
	for k := range s.ids {
		s.head = append(s.head, int32(len(s.before)))
		kept := live[:0]
		for _, j := range live {
			if s.to[j] >= s.from[k] {
				kept = append(kept, j)
			} else {
				bytes -= s.size[j]
			}
		}
		s.before = append(s.before, kept...)
		live = append(kept, int32(k))
		bytes += s.size[k]
		s.load = max(s.load, bytes)
	}
	s.head = append(s.head, int32(len(s.before)))
}

// earlier lists the blocks before block k that meet it.
func (s *strip) earlier(k int32) []int32 { return s.before[s.head[k]:s.head[k+1]] }

// later is the range of the blocks after block k that meet it: from k+1 to, but
// without, the result.
func (s *strip) later(k int32) int32 { return s.starts[s.to[k]+1] }

// degree is how many blocks meet block k.
func (s *strip) degree(k int32) int64 {
	return int64(s.head[k+1]-s.head[k]) + int64(s.later(k)-k-1)
}
