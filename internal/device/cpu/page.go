package cpu

import (
	"bytes"
	"cmp"
	"hash/crc32"
	"slices"
	"sync"
)

// pageBytes is how much of a disk has one checksum at most, sectionBytes how much is read or
// written at once: enough for a disk to be as fast as it can.
const (
	pageBytes    = 64 << 10
	sectionBytes = 4 << 20
)

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// page is bytes of a section that were written at once, or what is left of them, with their
// checksum.
type page struct {
	lo, hi int32 // within the section
	sum    uint32
}

// sumOf is the page that data makes from lo.
func sumOf(lo int, data []byte) page {
	return page{int32(lo), int32(lo + len(data)), crc32.Checksum(data, castagnoli)}
}

// sumsOf are the pages that data makes from lo. They end where those of any other data do.
func sumsOf(lo int, data []byte) []page {
	var out []page
	for len(data) > 0 {
		n := min(len(data), pageBytes-lo%pageBytes)
		out = append(out, sumOf(lo, data[:n]))
		lo, data = lo+n, data[n:]
	}
	return out
}

// pages is what is known of a section: its pages in order, apart from each other. What is in
// none was never written, and is zero.
type pages []page

// within finds the pages that have a byte from lo to hi: those from first up to last.
func (p pages) within(lo, hi int) (first, last int) {
	first, _ = slices.BinarySearchFunc(p, lo, func(q page, lo int) int {
		return cmp.Or(cmp.Compare(int(q.hi), lo), -1)
	})
	for last = first; last < len(p) && int(p[last].lo) < hi; last++ {
	}
	return first, last
}

// cut are the pages that have bytes both from lo to hi and outside, two at most.
func (p pages) cut(lo, hi int) []page {
	first, last := p.within(lo, hi)
	return slices.DeleteFunc(slices.Clone(p[first:last]), func(q page) bool {
		return int(q.lo) >= lo && int(q.hi) <= hi
	})
}

// damage finds the first page, or gap between pages, of data that is not what it should be.
// The data are the section's from lo, and cut no page.
func (p pages) damage(lo int, data []byte) (at int, damaged bool) {
	first, last := p.within(lo, lo+len(data))
	next := lo
	for _, q := range p[first:last] {
		if written(data[next-lo : int(q.lo)-lo]) {
			return next, true
		}
		if sumOf(int(q.lo), data[int(q.lo)-lo:int(q.hi)-lo]) != q {
			return int(q.lo), true
		}
		next = int(q.hi)
	}
	return next, written(data[next-lo:])
}

// zeros is a page that nobody has written.
var zeros [pageBytes]byte

// written reports a byte that is not zero.
func written(data []byte) bool {
	for part := range slices.Chunk(data, pageBytes) {
		if !bytes.Equal(part, zeros[:len(part)]) {
			return true
		}
	}
	return false
}

// section is a part of a disk. Streams may touch different bytes of one at the same time, and
// one of them may need all of a page that the other changes; so it has a lock.
type section struct {
	sync.RWMutex
	pages pages
}
