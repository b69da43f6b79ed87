package main

import (
	"fmt"
	"slices"
	"strings"
)

// A function is a kernel's code for one instruction set, before registers.
type function struct {
	isa
	kernel   *kernel
	prologue []instr
	main     []instr
	tail     [][]instr // one section that repeats, or one for each accumulator
	epilogue []instr
	results  []*value
	consts   []*value
}

// build runs the kernel's description, interleaving as many copies as the
// kernel asks for and registers allow.
func build(k *kernel, set isa) *function {
	for weave := k.weave; weave > 0; weave /= 2 {
		f := describe(k, set, weave)
		if f.required()+f.temporaries() <= set.regs {
			return f
		}
	}
	panic(k.name + set.suffix + " needs too many registers")
}

func describe(k *kernel, set isa, weave int) *function {
	b := &builder{isa: set, kernel: k, consts: map[string]*value{}}
	f := &function{isa: set, kernel: k}
	section := func() []instr {
		code := b.code
		b.code = nil
		return code
	}
	var state any
	if k.start != nil {
		state = k.start(b)
	}
	f.prologue = section()
	if b.copies = k.unroll(set); k.joint {
		k.body(b, state)
		f.main = section()
	} else {
		f.main = woven(b, state, weave)
	}
	if k.ahead {
		f.main = append(b.prefetches(), f.main...)
	}
	b.copies = 1
	b.masked = true
	for b.copy = range k.tails(set) {
		k.body(b, state)
		f.tail = append(f.tail, section())
	}
	b.masked = false
	if k.finish != nil {
		f.results = k.finish(b, state)
	}
	f.epilogue = section()
	f.consts = b.order
	return f
}

// woven builds the copies of a body, interleaving groups of them: the
// processor's window holds about a hundred instructions, and should always
// contain independent ones.
func woven(b *builder, state any, group int) []instr {
	var all []instr
	for first := 0; first < b.copies; first += group {
		copies := make([][]instr, group)
		for i := range copies {
			b.code, b.copy = nil, first+i
			b.kernel.body(b, state)
			copies[i] = b.code
		}
		for i := range copies[0] {
			for _, code := range copies {
				all = append(all, code[i])
			}
		}
	}
	b.code, b.copy = nil, 0
	return all
}

// tails is the number of tail sections: a reduction has one for each accumulator.
func (k *kernel) tails(set isa) int {
	switch {
	case k.whole && !set.masks, k.far:
		return 0
	case k.finish != nil:
		return k.unroll(set)
	}
	return 1
}

// step is the number of elements of one body.
func (f *function) step() int { return f.width * f.kernel.vecs }

// assemble returns the function's text.
func (f *function) assemble() string {
	a := f.plan()
	a.section(f.prologue)
	f.loop(a)
	a.section(f.epilogue)
	for i, r := range f.results {
		name := []string{"ret", "ret1"}[i]
		a.line("VMOVSS", fmt.Sprintf("X%d", r.reg),
			fmt.Sprintf("%s+%d(FP)", name, f.kernel.offset("ret")+4*i))
	}
	return fmt.Sprintf("\nTEXT ·%s%s(SB), NOSPLIT, $0-%d\n", f.kernel.name, f.suffix,
		f.kernel.frame()) +
		f.arguments() + a.text.String() + "\tVZEROUPPER\n\tRET\n"
}

// plan gives pinned values their registers, from the top down: first what must
// have one, then constants, most used first, as long as temporaries have room.
func (f *function) plan() *assembler {
	room := f.temporaries()
	next := f.regs - 1
	a := &assembler{isa: f.isa, masks: []int{1, 2}}
	a.busyK = [8]bool{true, true, true}
	for _, in := range f.prologue {
		if in.dst.pinned {
			in.dst.reg = next
			next--
		}
	}
	if !f.isa.masks {
		for lane := range f.kernel.vecs {
			a.masks[lane] = next
			next--
		}
	}
	consts := slices.Clone(f.consts)
	slices.SortStableFunc(consts, func(x, y *value) int { return y.uses - x.uses })
	for _, c := range consts[:min(len(consts), next+1-room)] {
		a.load(c, next)
		c.reg = next
		next--
	}
	a.limit = next + 1
	return a
}

// required is the number of registers that pinned values and vector masks take.
func (f *function) required() int {
	n := 0
	for _, in := range f.prologue {
		if in.dst.pinned {
			n++
		}
	}
	if !f.isa.masks {
		n += f.kernel.vecs
	}
	return n
}

// temporaries is the number of registers that they need if all constants are in memory.
func (f *function) temporaries() int {
	a := &assembler{isa: f.isa, limit: 64, masks: []int{1, 2}}
	a.busyK = [8]bool{true, true, true}
	for _, in := range f.prologue {
		if in.dst.pinned {
			in.dst.reg = 100
		}
	}
	for _, code := range append([][]instr{f.prologue, f.main, f.epilogue}, f.tail...) {
		a.section(code)
	}
	return a.most
}

// arguments loads pointers and the length, and clears the index.
func (f *function) arguments() string {
	var s strings.Builder
	next := 0
	for i, p := range f.kernel.params {
		if !p.slice() {
			continue
		}
		off := f.kernel.offset(p.name)
		fmt.Fprintf(&s, "\tMOVQ %s_base+%d(FP), %s\n", p.name, off, pointers[next])
		if i == 0 {
			fmt.Fprintf(&s, "\tMOVQ %s_len+%d(FP), CX\n", p.name, off+8)
		}
		next++
	}
	return s.String() + "\tXORL AX, AX\n"
}

// loop writes the main loop and the tail. CX counts the elements that remain.
func (f *function) loop(a *assembler) {
	block := f.step() * f.kernel.unroll(f.isa)
	fmt.Fprintf(&a.text, "\tSUBQ $%d, CX\n\tJLT tail\n\tPCALIGN $32\nmain:\n", block)
	a.section(f.main)
	fmt.Fprintf(&a.text, "\tADDQ $%d, AX\n\tSUBQ $%d, CX\n\tJGE main\ntail:\n", block, block)
	if len(f.tail) == 0 {
		return
	}
	fmt.Fprintf(&a.text, "\tADDQ $%d, CX\n\tJLE done\n", block)
	for i, code := range f.tail {
		if f.results == nil {
			a.text.WriteString("last:\n")
		}
		f.mask(a)
		a.section(code)
		switch step := f.step(); {
		case f.results == nil:
			fmt.Fprintf(&a.text, "\tADDQ $%d, AX\n\tSUBQ $%d, CX\n\tJGT last\n", step, step)
		case i < len(f.tail)-1:
			fmt.Fprintf(&a.text, "\tADDQ $%d, AX\n\tSUBQ $%d, CX\n\tJLE done\n", step, step)
		}
	}
	a.text.WriteString("done:\n")
}

// mask sets the tail masks to the first CX lanes.
func (f *function) mask(a *assembler) {
	if f.isa.masks {
		a.text.WriteString("\tMOVQ $-1, BX\n\tBZHIQ CX, BX, BX\n")
		for lane := range f.kernel.vecs {
			if lane > 0 {
				a.text.WriteString("\tSHRQ $16, BX\n")
			}
			fmt.Fprintf(&a.text, "\tKMOVW BX, %s\n", a.maskName(lane))
		}
		return
	}
	// The table holds 8 lanes of ones and then 8 of zeros.
	a.text.WriteString("\tLEAQ lanes<>(SB), R10\n")
	for lane := range f.kernel.vecs {
		fmt.Fprintf(&a.text, "\tMOVQ $%d, BX\n\tSUBQ CX, BX\n", f.width*(lane+1))
		a.text.WriteString("\tMOVQ $0, R9\n\tCMPQ BX, $0\n\tCMOVQLT R9, BX\n")
		if lane > 0 {
			fmt.Fprintf(&a.text, "\tMOVQ $%d, R9\n\tCMPQ BX, $%d\n\tCMOVQGT R9, BX\n", f.width,
				f.width)
		}
		fmt.Fprintf(&a.text, "\tVMOVUPS (R10)(BX*4), %s\n", a.maskName(lane))
	}
}
