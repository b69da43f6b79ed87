package main

import (
	"fmt"
	"slices"
	"strings"
)

// An assembler assigns registers to one section after another and writes the
// text. The sections of a kernel share its pinned registers.
type assembler struct {
	isa
	text  strings.Builder
	masks []int    // registers of the tail masks, by lane
	limit int      // vector registers for temporaries: 0 to limit−1
	busy  [64]bool // of them
	busyK [8]bool  // mask registers
	most  int      // one more than the highest temporary taken
	uses  map[*value]int
}

// section assigns registers within a straight line of code and writes it.
func (a *assembler) section(code []instr) {
	a.liveness(code)
	for i, in := range code {
		if a.computesInPlace(code, i) {
			in.dst.reg = code[i+1].dst.reg
		}
		switch in.op {
		case "VFMADD", "VFNMADD":
			a.fma(in, i)
		case "VPTERNLOGD":
			a.tern(in, i)
		case "set":
			a.set(in, i)
		case "load":
			a.define(in.dst)
			a.load(in.args[0], in.dst.reg)
		case "storeHalf":
			a.line("VMOVUPS", fmt.Sprintf("X%d", in.args[0].reg), in.mem)
			a.release(i, in.args...)
		case "storeQuarter":
			a.line("VMOVQ", fmt.Sprintf("X%d", in.args[0].reg), in.mem)
			a.release(i, in.args...)
		default:
			a.plain(in, i)
		}
	}
}

// liveness finds every temporary's last use and its number of uses.
func (a *assembler) liveness(code []instr) {
	a.uses = map[*value]int{}
	for i, in := range code {
		if in.dst != nil && !in.dst.pinned {
			in.dst.reg, in.dst.last = none, i
		}
		for _, v := range in.args {
			v.last = i
			a.uses[v]++
		}
	}
}

// computesInPlace reports whether the next instruction assigns this one's
// result, not used otherwise, to all lanes of a pinned value.
func (a *assembler) computesInPlace(code []instr, i int) bool {
	if i+1 == len(code) || code[i].dst == nil || code[i].dst.pinned {
		return false
	}
	next := code[i+1]
	return next.op == "set" && next.lane == none && next.args[0] == code[i].dst &&
		a.uses[code[i].dst] == 1
}

var commutative = []string{"VADDPS", "VMULPS", "VPADDD", "VPADDQ", "VPAND", "VPANDD", "VPOR",
	"VPORD", "VPXOR", "VPXORD"}

// plain writes an instruction that does not overwrite a source. Its last source
// may be a constant in memory; other constants are loaded first.
func (a *assembler) plain(in instr, i int) {
	args := slices.Clone(in.args)
	if slices.Contains(commutative, in.op) && a.inMemory(args[0]) {
		args[0], args[1] = args[1], args[0]
	}
	op, fields, scratch := in.op, []string{}, []int{}
	for j, v := range args {
		switch last := j == len(args)-1; {
		case last && a.inMemory(v) && a.isa.masks && len(v.bits) == 1:
			op += ".BCST"
		case !last && a.inMemory(v):
			r := a.take()
			a.load(v, r)
			fields, scratch = append(fields, a.vector(r)), append(scratch, r)
			continue
		}
		fields = append(fields, a.name(v))
	}
	slices.Reverse(fields)
	for _, r := range scratch {
		a.busy[r] = false
	}
	a.release(i, in.args...)
	a.define(in.dst)
	if in.dst != nil && in.mem != "" {
		fields = append(fields, in.mem)
	}
	if in.imm != "" {
		fields = slices.Insert(fields, 0, in.imm)
	}
	op, fields = a.masked(in, op, fields)
	a.line(op, append(fields, a.target(in))...)
	a.release(i, in.dst)
}

// masked adds the tail's mask to a load or a store.
func (a *assembler) masked(in instr, op string, fields []string) (string, []string) {
	if in.lane == none {
		return op, fields
	}
	if !a.isa.masks {
		op = "VMASKMOVPS"
	} else if in.dst != nil {
		op += ".Z"
	}
	return op, append(fields, a.maskName(in.lane))
}

// target is the last operand: the result, or where a store goes.
func (a *assembler) target(in instr) string {
	if in.dst == nil {
		return in.mem
	}
	return a.name(in.dst)
}

// fma writes x·y + z. The result overwrites z if it dies here, else x or y, else
// a copy of z; the form follows, since only one operand may be in memory.
func (a *assembler) fma(in instr, i int) {
	x, y, z := in.args[0], in.args[1], in.args[2]
	if a.inMemory(x) || !a.dies(x, i) && a.dies(y, i) {
		x, y = y, x
	}
	switch {
	case in.dst.reg != none && in.dst.reg == z.reg:
		a.line(in.op+a.form("231", y), a.name(y), a.name(x), a.name(z))
	case a.dies(z, i):
		in.dst.reg = z.reg
		a.line(in.op+a.form("231", y), a.name(y), a.name(x), a.name(z))
	case a.dies(x, i) && !a.inMemory(y):
		in.dst.reg = x.reg
		a.line(in.op+a.form("213", z), a.name(z), a.name(y), a.name(x))
	case a.dies(x, i) && !a.inMemory(z):
		in.dst.reg = x.reg
		a.line(in.op+a.form("132", y), a.name(y), a.name(z), a.name(x))
	default:
		in.dst.reg = a.take()
		a.load(z, in.dst.reg)
		a.line(in.op+a.form("231", y), a.name(y), a.name(x), a.name(in.dst))
	}
	a.releaseBut(in.dst.reg, i, in.args...)
}

// form completes a fused multiply's mnemonic; v is the operand that may be in memory.
func (a *assembler) form(order string, v *value) string {
	if a.inMemory(v) && a.isa.masks {
		return order + "PS.BCST"
	}
	return order + "PS"
}

// tern writes a ternary logic instruction, which overwrites its first source.
// That of the exclusive or (0x96) may be any of the three.
func (a *assembler) tern(in instr, i int) {
	args := slices.Clone(in.args)
	for j, v := range args {
		if in.imm == "$0x96" && a.dies(v, i) {
			args[0], args[j] = args[j], args[0]
			break
		}
	}
	if a.dies(args[0], i) {
		in.dst.reg = args[0].reg
	} else {
		in.dst.reg = a.take()
		a.load(args[0], in.dst.reg)
	}
	a.line(in.op, in.imm, a.name(args[2]), a.name(args[1]), a.name(in.dst))
	a.releaseBut(in.dst.reg, i, in.args...)
}

// set assigns to a pinned register, in the tail only the lanes that exist.
func (a *assembler) set(in instr, i int) {
	v, dst := a.name(in.args[0]), a.name(in.dst)
	switch {
	case v == dst: // computed in place
	case in.lane == none:
		a.line("VMOVAPS", v, dst)
	case a.isa.masks:
		a.line("VMOVAPS", v, a.maskName(in.lane), dst)
	default:
		a.line("VBLENDVPS", a.maskName(in.lane), v, dst, dst)
	}
	a.releaseBut(in.dst.reg, i, in.args...)
}

// load writes a copy of a register or of a constant into register r.
func (a *assembler) load(v *value, r int) {
	op := "VMOVAPS"
	switch {
	case a.inMemory(v) && a.isa.masks && len(v.bits) == 1:
		op = "VBROADCASTSS"
	case a.inMemory(v):
		op = "VMOVUPS"
	}
	a.line(op, a.name(v), a.vector(r))
}

func (a *assembler) inMemory(v *value) bool { return v.bits != nil && v.reg == none }

// dies reports whether v is a temporary that instruction i reads last.
func (a *assembler) dies(v *value, i int) bool { return a.temporary(v) && v.last == i }

func (a *assembler) temporary(v *value) bool { return !v.pinned && v.bits == nil }

// define finds a register for a result that has none.
func (a *assembler) define(v *value) {
	switch {
	case v == nil || v.reg != none:
	case v.mask:
		v.reg = slices.Index(a.busyK[:], false)
		a.busyK[v.reg] = true
	default:
		v.reg = a.take()
	}
}

// take takes the lowest free vector register.
func (a *assembler) take() int {
	r := slices.Index(a.busy[:], false)
	if r >= a.limit {
		panic("out of vector registers")
	}
	a.busy[r] = true
	a.most = max(a.most, r+1)
	return r
}

// release frees the registers of temporaries that die at instruction i.
func (a *assembler) release(i int, values ...*value) { a.releaseBut(none, i, values...) }

func (a *assembler) releaseBut(keep, i int, values ...*value) {
	for _, v := range values {
		if v == nil || !a.dies(v, i) || v.reg == keep {
			continue
		}
		if v.mask {
			a.busyK[v.reg] = false
		} else {
			a.busy[v.reg] = false
		}
	}
}

func (a *assembler) vector(r int) string { return fmt.Sprintf("%s%d", a.isa.reg, r) }

func (a *assembler) name(v *value) string {
	switch {
	case a.inMemory(v):
		return constName(v.bits) + "(SB)"
	case v.mask:
		return fmt.Sprintf("K%d", v.reg)
	}
	return a.vector(v.reg)
}

func (a *assembler) maskName(lane int) string {
	if a.isa.masks {
		return fmt.Sprintf("K%d", a.masks[lane])
	}
	return a.vector(a.masks[lane])
}

// line writes one instruction.
func (a *assembler) line(op string, operands ...string) {
	fmt.Fprintf(&a.text, "\t%s %s\n", op, strings.Join(operands, ", "))
}
