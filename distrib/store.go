package distrib

import "slices"

// store is rows of a parameter in memory, by their places in it. Its methods are called under the
// node's lock.
type store interface {
	// begin makes rows what a parameter begins with.
	begin(at int, p *Param, row, n int)
	// add adds an update of n rows.
	add(at, n int, u Update)
	// set makes rows those of an update that is not rounded.
	set(at, n int, u Update)
	// get is rows as they are, until they change.
	get(at, n int) Update
	// clear makes rows zero.
	clear(at, n int)
	// numbers is rows as numbers: a dense row's own memory, others' a copy.
	numbers(at, n int) []float32
	// pull brings a worker's own copy of rows [from, to) up to these.
	pull(p *Param, from, to int)
	// save adds rows, which do not change any more, to what is saved, and load takes them back.
	save(r *SavedRows, at, n int)
	load(at int, r SavedRows)
	// size is the bytes held now, at most so far, and at most ever.
	size() (now, peak, most int64)
}

// floats are dense rows.
type floats struct {
	cols int
	data []float32
}

func (f floats) numbers(at, n int) []float32 { return f.data[at*f.cols : (at+n)*f.cols] }

func (f floats) begin(at int, p *Param, row, n int) {
	copy(f.numbers(at, n), p.Data[row*f.cols:])
}

func (f floats) add(at, n int, u Update) { u.AddTo(f.numbers(at, n), f.cols, 1) }

func (f floats) set(at, n int, u Update) { copy(f.numbers(at, n), u.(Dense)) }

func (f floats) get(at, n int) Update { return Dense(f.numbers(at, n)) }

func (f floats) clear(at, n int) { clear(f.numbers(at, n)) }

func (f floats) pull(p *Param, from, to int) {
	copy(p.Data[from*f.cols:to*f.cols], f.numbers(from, to-from))
}

func (f floats) save(r *SavedRows, at, n int) { r.Data = slices.Clone(f.numbers(at, n)) }

func (f floats) load(at int, r SavedRows) { copy(f.numbers(at, int(r.N)), r.Data) }

func (f floats) size() (now, peak, most int64) {
	n := 4 * int64(len(f.data))
	return n, n, n
}

// cells are rows of a kind. A row's memory is the store's own until it is lent to somebody who
// keeps it; the next addition then makes another.
type cells struct {
	kind       Kind
	cols       int
	rows       []Update
	own        bitset
	zero       Update
	held, peak int64 // bytes of rows, beside slotBytes for each
}

// slotBytes is what the place of a row takes, beside the row.
const slotBytes = 16

// put makes a row another one.
func (c *cells) put(at int, u Update, own bool) {
	c.held += int64(Bytes(u) - Bytes(c.rows[at]))
	c.peak = max(c.peak, c.held)
	c.rows[at] = u
	if own {
		c.own.set(at)
	} else {
		c.own.clear(at)
	}
}

func (c *cells) begin(at int, p *Param, row, n int) {
	for i := range n {
		c.put(at+i, p.cell(row+i), false)
	}
}

func (c *cells) add(at, _ int, u Update) {
	c.held -= int64(Bytes(c.rows[at])) // which the sum may be made in
	sum := add(c.rows[at], u, c.own.has(at))
	c.held += int64(Bytes(sum))
	c.peak = max(c.peak, c.held)
	c.rows[at] = sum
	c.own.set(at)
}

func (c *cells) set(at, _ int, u Update) { c.put(at, u, false) }

func (c *cells) get(at, _ int) Update { return c.rows[at] }

func (c *cells) clear(at, n int) {
	for i := at; i < at+n; i++ {
		c.put(i, c.zero, false)
	}
}

func (c *cells) numbers(at, _ int) []float32 { return AsDense(c.rows[at]) }

// lend is a row whose memory does not change any more.
func (c *cells) lend(at int) Update {
	c.own.clear(at)
	return c.rows[at]
}

func (c *cells) pull(p *Param, from, to int) {
	for i := from; i < to; i++ {
		p.Cells[i] = c.lend(i)
	}
}

func (c *cells) save(r *SavedRows, at, n int) {
	r.Kind = c.kind.Name()
	for i := range n {
		r.Cells = append(r.Cells, c.lend(at+i))
	}
}

func (c *cells) load(at int, r SavedRows) {
	for i, u := range r.Cells {
		c.put(at+i, u, false)
	}
}

func (c *cells) size() (now, peak, most int64) {
	slots := int64(len(c.rows))*slotBytes + c.own.bytes()
	return slots + c.held, slots + c.peak, slots + int64(len(c.rows))*int64(c.kind.Most(c.cols))
}
