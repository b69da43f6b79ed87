package fewbits

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/gomem/gomem/internal/quant"
)

// Times multiplies so many rounded rows, of as many elements as r has, by n rows of r from first
// on: out[i·stride+j] is the product of row i of x and row first+j. The format is one that is
// Integral. It panics if something of that is not there.
//
// A row x is rounded in blocks of 32 elements: with m the largest magnitude of a block, its scale s
// is m/16383, and its codes c are x·(16383/m), to the nearest integer, of two the even one. A block
// whose m is below 2⁻¹¹² counts as zeros. One with NaN is NaN; else one with infinities is these:
// codes of ±1 for them, 0 for all else, and s infinite. So what is not finite in x is not finite in
// every product either.
//
// A row of r is w = t·q - f, with t and f of a block, as [quant.Group] has them. A block's products
//
//	s·(t·Σc·q - f·Σc)
//
// have exact sums of integers, which become float32, in which all else is computed, each operation
// rounded. Products of every eighth block are added up, those of blocks 0, 8, 16, …, of 1, 9, … and
// so on, from zero on. Of these eight sums each two are added, of the four again, and of the two.
// That is all that the bits depend on.
func (r *Rows) Times(out []float32, stride int, x []byte, count, first, n int) {
	r.times(fastest, out, stride, x, count, first, n)
}

// times is Times by an instruction set.
func (r *Rows) times(s integers, out []float32, stride int, x []byte, count, first, n int) {
	if count <= 0 || n <= 0 {
		return
	}
	if !r.Format.Integral() || first < 0 || first+n > r.Len() || n > stride ||
		(count-1)*stride+n > len(out) {
		panic(fmt.Sprintf("fewbits: no products of %d rows with %d rows of %s from %d of %d in %d "+
			"elements, %d a row", count, n, r.Format, first, r.Len(), len(out), stride))
	}
	p := product{Rows: r, set: s, out: out, x: roundedRows(x, count, r.Elements), count: count,
		groups: groups(r.Elements), stride: stride, first: first, n: n, size: r.size(),
		groupSize: offset(r.Format, quant.GroupSize)}
	switch {
	case p.groups == 0:
		p.zero()
	case s == plain:
		p.plainly()
	case count < tileRows:
		p.few()
	default:
		p.tiled()
	}
}

// product is what Times multiplies.
type product struct {
	*Rows
	set              integers
	out              []float32
	x                []rounded
	count, groups    int // rows of x, and of what each has
	stride, first, n int
	size, groupSize  int // bytes of a packed row, and of its whole groups
}

// zero sets products of no elements.
func (p *product) zero() {
	for i := range p.count {
		clear(p.out[i*p.stride:][:p.n])
	}
}

// row is a packed row.
func (p *product) row(j int) []byte { return p.Data[(p.first+j)*p.size:][:p.size] }

// group are the blocks of a group of a row, of which the last may have fewer.
func (p *product) group(j, g int) []byte {
	return p.row(j)[g*p.groupSize : min((g+1)*p.groupSize, p.size)]
}

// sums are those of every eighth block.
type sums [8]float32

// total adds them up.
func (s *sums) total() float32 {
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}

// plainRows are the rows of x for which a group is unpacked once by plain Go.
const plainRows = 16

// plainly computes products by plain Go.
func (p *product) plainly() {
	space := workspaces.Get().(*workspace)
	w := &space.rows[0]
	for j := range p.n {
		for i0 := 0; i0 < p.count; i0 += plainRows {
			rows := min(plainRows, p.count-i0)
			var all [plainRows]sums
			for g := range p.groups {
				p.Format.Group(w, p.group(j, g))
				for i := range rows {
					all[i].add(&p.x[(i0+i)*p.groups+g], w)
				}
			}
			for i := range rows {
				p.out[(i0+i)*p.stride+j] = all[i].total()
			}
		}
	}
	workspaces.Put(space)
}

// add adds the products of a group.
func (s *sums) add(x *rounded, w *quant.Group) {
	for b := range s {
		var dot int32
		for i, c := range x.codes[b*block:][:block] {
			dot += int32(c) * int32(w.Codes[b*block+i])
		}
		both := float32(w.Scales[b]*float32(dot)) - float32(w.Floors[b]*x.sums[b])
		s[b] += float32(x.scales[b] * both)
	}
}

// groupArgs are the arguments of the kernels of integers.
type groupArgs struct {
	x, src, dst, scales  unsafe.Pointer
	groups, rows, stride int

	xs    [four]unsafe.Pointer // of few, in place of x
	space unsafe.Pointer       // a products4

	// Assembly keeps steps of Q6_K here.
	//lint:ignore U1000 only assembly uses it
	words [16]uint32
}

const (
	rowsAtOnce = 32 // packed rows of which sums are kept at a time
	four       = 4  // rows of x for which codes are unpacked once, if that takes long
)

// products4 are those of a group's blocks, each 8 integers to be added up, with 4 rows of x.
type products4 [four][8][8]int32

// few computes products of one or a few rows of x, for which codes are unpacked in registers.
func (p *product) few() {
	w := workspaces.Get().(*workspace)
	if p.Format == quant.Q4_K {
		p.inBytes(w)
	}
	shared := p.Format == quant.Q4_K || p.Format == quant.Q6_K
	most := max(1, min(rowsAtOnce, span/min(four, p.count)/p.Elements))
	for j := 0; j < p.n; j += most {
		rows := min(most, p.n-j)
		for i, n := 0, 0; i < p.count; i += n {
			wide := four
			n = min(four, p.count-i)
			if n == 1 || !shared {
				n, wide = 1, 1
			}
			to := w.few[:wide*rows]
			clear(to)
			p.rows(w, to, i, wide, j)
			for k := range rows {
				for r := range n {
					p.out[(i+r)*p.stride+j+k] = to[k*wide+r].total()
				}
			}
		}
	}
	workspaces.Put(w)
}

// inBytes makes rows of x what kernels of Q4_K read: each integer as two of 8 bits, elements of
// several blocks side by side.
func (p *product) inBytes(w *workspace) {
	n := p.count * p.groups
	w.x = slices.Grow(w.x[:0], n)[:n]
	args := groupArgs{src: unsafe.Pointer(&p.x[0]), dst: unsafe.Pointer(&w.x[0]), groups: n}
	p.set.bytes(&args)
	p.x = w.x
}

// rows adds the products of rows of x from i on, one or four, the last for those that there are
// not, with packed rows from j on.
func (p *product) rows(w *workspace, to []sums, i, wide, j int) {
	whole := p.Elements / quant.GroupSize
	if whole > 0 {
		p.adds(w, to, i, wide, 0, groupArgs{src: unsafe.Pointer(&p.row(j)[0]), groups: whole,
			rows: len(to) / wide, stride: p.size})
	}
	if whole == p.groups {
		return
	}
	for k := 0; k < len(to); k += wide {
		var blocks lastGroup
		copy(blocks[:], p.group(j+k/wide, whole))
		p.adds(w, to[k:], i, wide, whole,
			groupArgs{src: unsafe.Pointer(&blocks), groups: 1, rows: 1})
	}
}

// adds calls a kernel for groups from one on.
func (p *product) adds(w *workspace, to []sums, i, wide, group int, args groupArgs) {
	args.dst = unsafe.Pointer(&to[0])
	at := func(i int) unsafe.Pointer {
		return unsafe.Pointer(&p.x[min(i, p.count-1)*p.groups+group])
	}
	args.space = unsafe.Pointer(&w.space)
	for r := range args.xs[:wide] {
		args.xs[r] = at(i + r)
	}
	if wide == 1 {
		p.set.products(p.Format, &args)
	} else {
		p.set.fours(p.Format, &args)
	}
}

// lastGroup has the blocks of a group that are there, and zeros behind them, which kernels read.
type lastGroup [quant.GroupSize / 32 * 34]byte

// Tiles.
const (
	tileRows    = 8   // rows of x of a tile
	passRows    = 256 // rows of x whose sums are kept
	panelGroups = 8   // groups of a panel
	mostLanes   = 16  // rows of a panel
)

// workspace is what products are computed in: of many rows of x, groups of rows, a panel of them,
// and sums; of few rows, what is kept of them. All but the slice begins at multiples of 64 bytes,
// so that no vector is in two lines of the cache.
type workspace struct {
	rows  [mostLanes]quant.Group
	panel [panelGroups][mostLanes]quant.Group
	sums  [passRows / tileRows][8][tileRows * mostLanes]float32
	to    [tileRows * mostLanes]float32

	few   [four * rowsAtOnce]sums
	space products4
	x     []rounded
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// tiled computes products by tiles of rows of x and of packed rows, whose codes are unpacked once
// for many rows of x.
func (p *product) tiled() {
	w := workspaces.Get().(*workspace)
	for j := 0; j < p.n; j += p.set.lanes() {
		for i := 0; i < p.count; i += passRows {
			p.pass(w, i, min(p.count-i, passRows), j)
		}
	}
	workspaces.Put(w)
}

// pass computes products of rows of x with those of a panel.
func (p *product) pass(w *workspace, i, rows, j int) {
	if rows < tileRows { // together with rows that are computed again
		i, rows = i-(tileRows-rows), tileRows
	}
	tiles := (rows + tileRows - 1) / tileRows
	first := func(t int) int { return i + min(t*tileRows, rows-tileRows) }
	clear(w.sums[:tiles])
	for g := 0; g < p.groups; g += panelGroups {
		n := min(panelGroups, p.groups-g)
		p.unpack(w, j, g, n)
		for t := range tiles {
			args := groupArgs{x: unsafe.Pointer(&p.x[first(t)*p.groups+g]), groups: n,
				stride: p.groups * int(unsafe.Sizeof(rounded{})),
				src:    unsafe.Pointer(&w.panel), dst: unsafe.Pointer(&w.sums[t])}
			p.set.tile(&args)
		}
	}
	lanes := p.set.lanes()
	for t := range tiles {
		args := groupArgs{src: unsafe.Pointer(&w.sums[t]), dst: unsafe.Pointer(&w.to)}
		p.set.add(&args)
		for r := range tileRows {
			copy(p.out[(first(t)+r)*p.stride:][j:min(j+lanes, p.n)], w.to[r*lanes:])
		}
	}
}

// unpack makes a panel of groups.
func (p *product) unpack(w *workspace, j, g, n int) {
	lanes := p.set.lanes()
	for k := range n {
		for lane := range lanes {
			p.unpackGroup(&w.rows[lane], j+lane, g+k)
		}
		to := unsafe.Add(unsafe.Pointer(&w.panel), uintptr(k*lanes)*unsafe.Sizeof(w.rows[0]))
		for lane := 0; lane < lanes; lane += 8 {
			args := groupArgs{src: unsafe.Pointer(&w.rows[lane]), dst: unsafe.Add(to, 4*lane)}
			p.set.transpose(&args)
		}
	}
}

// unpackGroup unpacks a group of a row, or zeros where there is none.
func (p *product) unpackGroup(to *quant.Group, j, g int) {
	if j >= p.n {
		*to = quant.Group{}
		return
	}
	blocks := p.group(j, g)
	args := groupArgs{src: unsafe.Pointer(&blocks[0]), dst: unsafe.Pointer(to)}
	if g == p.Elements/quant.GroupSize {
		var last lastGroup
		copy(last[:], blocks)
		args.src = unsafe.Pointer(&last)
	}
	p.set.group(p.Format, &args)
}
