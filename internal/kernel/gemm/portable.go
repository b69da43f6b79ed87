package gemm

import "unsafe"

// portable is the instruction set of Go itself, with tiles of 4×4. Products are
// rounded before they are added (the conversions to float32 say so), so that the
// results do not depend on where the compiler would fuse the two.
var portable = &isa{
	name: "portable", rows: 4, vectors: 1, lanes: 4, strip: nBlock, direct: 1 << 17,
	tiles:     portableTable(portableTile4),
	edges:     portableTable(portableEdge(4)),
	transpose: portableTranspose,
	copyA:     portableCopyA,
	copyB:     portableCopyB,
	row:       portableRow,
	dots:      [maxDots][2]func(*dotArgs){{portableDot(1), portableDot(dotCols)}},
	dotRows:   1,
}

// portableTable is the table of the kernels of one to three rows, and four.
func portableTable(four func(*tileArgs)) table {
	return table{{portableEdge(1)}, {portableEdge(2)}, {portableEdge(3)}, {four}}
}

// portable4 is the side of a tile.
const portable4 = 4

// at returns the element at a byte offset.
func at(base unsafe.Pointer, offset int) *float32 {
	return (*float32)(unsafe.Add(base, offset))
}

// vector returns the four elements at a byte offset.
func vector(base unsafe.Pointer, offset int) *[4]float32 {
	return (*[4]float32)(unsafe.Add(base, offset))
}

// portableEdge returns the kernel of so many rows and any number of lanes.
func portableEdge(rows int) func(*tileArgs) {
	return func(t *tileArgs) {
		cols := t.inUse
		for panel := range t.panels {
			b, c := unsafe.Add(t.b, panel*t.bpanel), unsafe.Add(t.c, panel*t.cpanel)
			for row := range rows {
				a := unsafe.Add(t.a, panel*t.apanel+row*t.ars)
				for col := range cols {
					old := at(c, row*t.ldc+4*col)
					sum := t.dot(t.begin(old), a, unsafe.Add(b, 4*col))
					update(old, sum, t.alpha, t.beta)
				}
			}
		}
	}
}

// begin returns what the sum of an element of C begins with.
func (t *tileArgs) begin(c *float32) float32 {
	if t.resume == 0 {
		return 0
	}
	return *c
}

// dot returns a sum and the product of a row of A and a column of B.
func (t *tileArgs) dot(sum float32, a, b unsafe.Pointer) float32 {
	for k := range t.k {
		sum += float32(*at(a, k*t.acs) * *at(b, k*t.bs))
	}
	return sum
}

// portableTile4 computes whole tiles of 4×4.
func portableTile4(t *tileArgs) {
	for panel := range t.panels {
		b, c := unsafe.Add(t.b, panel*t.bpanel), unsafe.Add(t.c, panel*t.cpanel)
		for row := range portable4 {
			sum := t.dot4(vector(c, row*t.ldc), unsafe.Add(t.a, panel*t.apanel+row*t.ars), b)
			for col := range sum {
				update(at(c, row*t.ldc+4*col), sum[col], t.alpha, t.beta)
			}
		}
	}
}

// dot4 returns what four elements of C begin with and the products of a row of A and
// four columns of B.
func (t *tileArgs) dot4(c *[portable4]float32, a, b unsafe.Pointer) [portable4]float32 {
	s0, s1, s2, s3 := t.begin(&c[0]), t.begin(&c[1]), t.begin(&c[2]), t.begin(&c[3])
	for k := range t.k {
		x, y := *at(a, k*t.acs), vector(b, k*t.bs)
		s0 += float32(x * y[0])
		s1 += float32(x * y[1])
		s2 += float32(x * y[2])
		s3 += float32(x * y[3])
	}
	return [portable4]float32{s0, s1, s2, s3}
}

// portableTranspose is transpose, without writing more than it must.
func portableTranspose(p *packArgs) {
	for row := range p.rows {
		for col := range p.cols {
			*at(p.dst, col*p.dstStride+4*row) = *at(p.src, row*p.srcStride+4*col)
		}
	}
}

// portableCopyA is copyA.
func portableCopyA(p *packArgs) {
	for panel := range p.rows {
		n := p.step / 4
		if panel == p.rows-1 {
			n = p.inUse
		}
		for col := range p.cols {
			dst := unsafe.Add(p.dst, panel*p.dstStride+col*p.step)
			src := unsafe.Add(p.src, panel*p.step+col*p.srcStride)
			copy(unsafe.Slice((*float32)(dst), n), unsafe.Slice((*float32)(src), n))
		}
	}
}

// portableCopyB is copyB.
func portableCopyB(p *packArgs) {
	for panel := range p.rows {
		for k := range p.cols {
			*vector(p.dst, panel*p.dstStride+k*4*portable4) =
				*vector(p.src, panel*4*portable4+k*p.srcStride)
		}
	}
}

// portableRow is row.
func portableRow(t *rowArgs) {
	cols := (t.vectors-1)*4 + t.inUse
	c := unsafe.Slice((*float32)(t.c), cols)
	for row := range singleRows {
		x := *at(t.a, 4*row)
		for i, y := range unsafe.Slice((*float32)(unsafe.Add(t.b, row*t.bs)), cols) {
			c[i] += float32(x * y)
		}
	}
}

// portableDot returns the dot kernel of a row and so many columns.
func portableDot(cols int) func(*dotArgs) {
	return func(t *dotArgs) {
		k := (t.vectors-1)*4 + t.inUse
		a := unsafe.Slice((*float32)(t.a), k)
		for col := range cols {
			var sum float32
			for i, y := range unsafe.Slice((*float32)(unsafe.Add(t.b, col*t.bs)), k) {
				sum += float32(a[i] * y)
			}
			t.sums[0][col] = sum
		}
	}
}
