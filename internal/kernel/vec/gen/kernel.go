package main

import "fmt"

// A kernel is a function over slices of one length. Its body handles vecs
// vectors; the main loop holds unroll copies of it, and the tail is the same
// body under masks, so that an element's operations do not depend on where it is.
type kernel struct {
	name   string
	params []param
	vecs   int // vectors a body handles: 1 if zero
	unroll func(isa) int
	weave  int                              // copies that are interleaved: 1 if zero
	joint  bool                             // the body builds all copies at once
	start  func(b *builder) any             // prologue: what it returns is passed on
	body   func(b *builder, s any)          // one step
	finish func(b *builder, s any) []*value // the results
	// two results, and only where there are registers for both
	pair bool
	// no tail without mask registers: the caller completes the last block
	whole bool
	twin  bool // there is to be a second version, with far set
	// stores bypass the caches: aligned blocks only, and no tail
	far   bool
	ahead bool // prefetches its sources
	// an earlier pass over the row prefetches: the far version need not
	fetched bool
}

// farAhead is how many bytes before their use sources are prefetched: two rows of
// a thousand elements. Half of it lets the processor wait at every row's end.
const farAhead = 8192

// distant is the version of a kernel whose stores bypass the caches.
func (k *kernel) distant() *kernel {
	d := *k
	d.name, d.far, d.twin, d.ahead = k.name+"Far", true, false, !k.fetched
	return &d
}

// A param is a parameter of the Go function.
type param struct {
	name string
	kind string // f32s, u32s, u16s, u8s (slices), f32, u32, u64
}

// goType and size describe a parameter to Go.
func (p param) goType() string {
	return map[string]string{
		"f32s": "[]float32", "u32s": "[]uint32", "u16s": "[]uint16", "u8s": "[]uint8",
		"f32": "float32", "u32": "uint32", "u64": "uint64",
	}[p.kind]
}

func (p param) slice() bool { return p.kind[len(p.kind)-1] == 's' }

func (p param) size() int {
	switch {
	case p.slice():
		return 24
	case p.kind == "u64":
		return 8
	}
	return 4
}

// elem is the size of a slice's elements in bytes.
func (p param) elem() int {
	switch p.kind {
	case "u8s":
		return 1
	case "u16s":
		return 2
	}
	return 4
}

// offset is the parameter's place in the frame; the name "ret" means the result's.
func (k *kernel) offset(name string) int {
	off := 0
	for _, p := range k.params {
		align := min(p.size(), 8)
		off = (off + align - 1) / align * align
		if p.name == name {
			return off
		}
		off += p.size()
	}
	return (off + 7) / 8 * 8
}

// results is the number of results.
func (k *kernel) results() int {
	switch {
	case k.pair:
		return 2
	case k.finish != nil:
		return 1
	}
	return 0
}

// frame is the size of parameters and result.
func (k *kernel) frame() int {
	if n := k.results(); n > 0 {
		return k.offset("ret") + 4*n
	}
	last := k.params[len(k.params)-1]
	return k.offset(last.name) + last.size()
}

// pointers are the registers that hold the slices' addresses, in order.
var pointers = []string{"DI", "SI", "DX", "R8"}

// stream finds a slice's pointer register and element size.
func (k *kernel) stream(name string) (reg string, elem int) {
	i := 0
	for _, p := range k.params {
		if p.name == name {
			return pointers[i], p.elem()
		}
		if p.slice() {
			i++
		}
	}
	panic("no parameter " + name)
}

// address is the memory operand of the body's i-th vector of a slice. In the
// tail AX points at the vector of each copy.
func (b *builder) address(name string, i int) string {
	reg, elem := b.kernel.stream(name)
	if !b.masked {
		i += b.copy * b.kernel.vecs
	}
	return fmt.Sprintf("%d(%s)(AX*%d)", i*b.width*elem, reg, elem)
}

// load reads a vector; absent lanes of the tail read as zero.
func (b *builder) load(name string) *value { return b.loadAt(name, 0, "VMOVUPS") }

func (b *builder) loadAt(name string, i int, op string) *value {
	return b.emit(instr{op: op, mem: b.address(name, i), dst: temp(), lane: b.lane(i)})
}

// prefetches asks for what the main loop will read of its sources, but for those
// that are the same for every row.
func (b *builder) prefetches() []instr {
	const line = 64
	var all []instr
	sources := -1
	for _, p := range b.kernel.params {
		if !p.slice() {
			continue
		}
		if sources++; p.name == "dst" || p.name == "dx" || p.name == "scale" || p.name == "bias" {
			continue
		}
		bytes := b.width * b.kernel.vecs * b.copies * p.elem()
		for at := 0; at < bytes; at += line {
			mem := fmt.Sprintf("%d(%s)(AX*%d)", farAhead+at, pointers[sources], p.elem())
			all = append(all, instr{op: "PREFETCHT0", mem: mem, lane: none})
		}
	}
	return all
}

// store writes a vector, in the tail its existing lanes.
func (b *builder) store(name string, v *value) { b.storeAt(name, 0, v, "VMOVUPS", "") }

func (b *builder) storeAt(name string, i int, v *value, op, imm string) {
	if b.kernel.far {
		op = "VMOVNTPS"
	}
	b.emit(instr{op: op, imm: imm, args: []*value{v}, mem: b.address(name, i), lane: b.lane(i)})
}

// broadcast pins a scalar parameter in every lane.
func (b *builder) broadcast(name string) *value {
	op := "VBROADCASTSS"
	for _, p := range b.kernel.params {
		if p.name == name && p.kind == "u64" {
			op = "VPBROADCASTQ"
		}
	}
	mem := fmt.Sprintf("%s+%d(FP)", name, b.kernel.offset(name))
	return b.pin(b.emit(instr{op: op, mem: mem, dst: temp(), lane: none}))
}
