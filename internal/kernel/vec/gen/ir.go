package main

import (
	"fmt"
	"math"
)

// isa is an instruction set to generate for.
type isa struct {
	suffix string // of function names
	reg    string // prefix of vector registers
	regs   int    // vector registers
	width  int    // float32 lanes of one
	masks  bool   // has mask registers (AVX-512), else masks are vectors
}

var (
	avx512 = isa{suffix: "AVX512", reg: "Z", regs: 32, width: 16, masks: true}
	avx2   = isa{suffix: "AVX2", reg: "Y", regs: 16, width: 8}
)

// A value is what an instruction produces: a vector of float32 or integers, or
// a mask. Temporaries live from their definition to their last use within a
// section; pinned values keep a register for the whole kernel; constants do so
// if registers are left over, and are memory operands otherwise.
type value struct {
	pinned bool
	mask   bool
	bits   []uint32 // of a constant: one lane, or the repeating pattern
	uses   int      // of a constant: how often
	reg    int      // assigned register, or none
	last   int      // index of the last instruction of the section that reads it
}

const none = -1

// An instr is a machine instruction, or a pseudo-instruction of the assembler:
// VFMADD and VFNMADD (the addressing form depends on which operand dies), set (assign
// a pinned value), load (a constant into a register), storeHalf
// (the low 128 bits), storeQuarter (the low 64) and VPTERNLOGD, which overwrites an operand.
type instr struct {
	op   string
	imm  string
	args []*value // in the order of the manual: first source first
	dst  *value
	mem  string // memory operand: the source of a load, the destination of a store
	lane int    // of a masked load, store or set: which of the tail masks; else none
}

// A builder appends instructions to a section of a kernel.
type builder struct {
	isa
	kernel *kernel
	code   []instr
	consts map[string]*value
	order  []*value // constants in order of first use
	copy   int      // which copy of the unrolled body is being built
	copies int      // how many a joint body is to build
	masked bool     // whether it is the tail
}

func (b *builder) emit(in instr) *value {
	b.code = append(b.code, in)
	return in.dst
}

// op appends an instruction with a vector result.
func (b *builder) op(op string, args ...*value) *value {
	return b.emit(instr{op: op, args: args, dst: temp(), lane: none})
}

// opImm appends an instruction with an immediate operand.
func (b *builder) opImm(op string, imm int, args ...*value) *value {
	return b.emit(instr{op: op, imm: fmt.Sprintf("$%#x", imm), args: args, dst: temp(), lane: none})
}

func temp() *value { return &value{reg: none} }

// bits returns the constant with this pattern of lanes.
func (b *builder) bits(pattern ...uint32) *value {
	name := constName(pattern)
	if b.consts[name] == nil {
		c := &value{bits: pattern, reg: none}
		b.consts[name] = c
		b.order = append(b.order, c)
	}
	b.consts[name].uses++
	return b.consts[name]
}

// f returns the constant with this number in every lane, which float32 must hold exactly.
func (b *builder) f(x float64) *value {
	if float64(float32(x)) != x {
		panic(fmt.Sprintf("%v is not a float32", x))
	}
	return b.bits(math.Float32bits(float32(x)))
}

func constName(pattern []uint32) string {
	name := "c"
	for _, p := range pattern {
		name += fmt.Sprintf("_%08x", p)
	}
	return name + "<>"
}

// either picks a mnemonic by instruction set.
func (b *builder) either(wide, narrow string) string {
	if b.masks {
		return wide
	}
	return narrow
}

func (b *builder) add(x, y *value) *value  { return b.op("VADDPS", x, y) }
func (b *builder) sub(x, y *value) *value  { return b.op("VSUBPS", x, y) }
func (b *builder) mul(x, y *value) *value  { return b.op("VMULPS", x, y) }
func (b *builder) div(x, y *value) *value  { return b.op("VDIVPS", x, y) }
func (b *builder) sqrt(x *value) *value    { return b.op("VSQRTPS", x) }
func (b *builder) addi(x, y *value) *value { return b.op("VPADDD", x, y) }
func (b *builder) subi(x, y *value) *value { return b.op("VPSUBD", x, y) }

func (b *builder) and(x, y *value) *value { return b.op(b.either("VPANDD", "VPAND"), x, y) }
func (b *builder) or(x, y *value) *value  { return b.op(b.either("VPORD", "VPOR"), x, y) }
func (b *builder) xor(x, y *value) *value { return b.op(b.either("VPXORD", "VPXOR"), x, y) }

func (b *builder) shl(x *value, by int) *value { return b.opImm("VPSLLD", by, x) }
func (b *builder) shr(x *value, by int) *value { return b.opImm("VPSRLD", by, x) }
func (b *builder) sar(x *value, by int) *value { return b.opImm("VPSRAD", by, x) }

func (b *builder) toInt(x *value) *value   { return b.op("VCVTPS2DQ", x) }
func (b *builder) fromInt(x *value) *value { return b.op("VCVTDQ2PS", x) }

// above is x where x > y, else y, also where either is NaN.
func (b *builder) above(x, y *value) *value { return b.op("VMAXPS", x, y) }

// below is x where x < y, else y, also where either is NaN.
func (b *builder) below(x, y *value) *value { return b.op("VMINPS", x, y) }

// fma is x·y + z and fnma is z − x·y, with one rounding.
func (b *builder) fma(x, y, z *value) *value  { return b.op("VFMADD", x, y, z) }
func (b *builder) fnma(x, y, z *value) *value { return b.op("VFNMADD", x, y, z) }

// tern combines three vectors by the truth table of VPTERNLOGD.
func (b *builder) tern(table int, x, y, z *value) *value {
	return b.opImm("VPTERNLOGD", table, x, y, z)
}

// Predicates of VCMPPS, ordered but for unordered.
const (
	equal     = 0x00
	less      = 0x11
	lessEqual = 0x12
	unordered = 0x03

	notLessEqual = 0x16 // also of NaN
)

// cmp is the mask of the lanes where the predicate holds for x and y.
func (b *builder) cmp(predicate int, x, y *value) *value {
	return b.test("VCMPPS", predicate, x, y)
}

func (b *builder) test(op string, predicate int, x, y *value) *value {
	dst := &value{reg: none, mask: b.masks}
	return b.emit(instr{op: op, imm: fmt.Sprintf("$%#x", predicate), args: []*value{x, y}, dst: dst,
		lane: none})
}

// sel is yes where the mask is set, else no.
func (b *builder) sel(mask, yes, no *value) *value {
	if b.masks {
		return b.op("VBLENDMPS", mask, no, yes)
	}
	return b.op("VBLENDVPS", no, yes, mask)
}

// only is x where the mask is set, else zero.
func (b *builder) only(mask, x *value) *value {
	if b.masks {
		return b.op("VMOVAPS.Z", mask, x)
	}
	return b.op("VANDPS", x, mask)
}

// pin keeps a value of the prologue in a register for the whole kernel.
func (b *builder) pin(v *value) *value {
	v.pinned = true
	return v
}

// set assigns v to a pinned value; in the tail, in the lanes that exist.
func (b *builder) set(pinned, v *value) {
	b.emit(instr{op: "set", args: []*value{v}, dst: pinned, lane: b.lane(0)})
}

// lane is the tail mask of the body's i-th vector, none outside the tail.
func (b *builder) lane(i int) int {
	if b.masked {
		return i
	}
	return none
}
