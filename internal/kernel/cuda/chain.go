package cuda

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Written is a kernel that is written for one launch of a kernel of [Source], whose arguments it
// takes and whose bits it has, and for all that differ from it in sizes, addresses and constants
// only. A device may compile it: see [WrittenSource].
type Written struct {
	Name string // says what is in the text
	Text string
}

// WrittenSource is the text of kernels that were written, of other names each, to be compiled as
// [Source] is, in a module beside it.
func WrittenSource(list []*Written) string {
	var text strings.Builder
	text.WriteString(filesOf("prelude libm elements vectors"))
	for _, w := range list {
		text.WriteString("\n" + w.Text)
	}
	return text.String()
}

// Chain is what elementwise operations do one after the other, which the kernel "chain" is told
// by its arguments.
type Chain struct {
	N      int // elements of the result
	Code   []Instruction
	In     []Spread
	Half   bool // the result is of bfloat16
	Window bool // noise is that of elements in a window of others
}

// Instruction is an operation, by its number in elements.cu, of operands: numbers of In, or ^i for
// the result of instruction i. The second operand of one that draws noise is its seed.
type Instruction struct {
	Op      int
	A, B    int  // B is None for an operation of one operand
	Rounded bool // the result is rounded to bfloat16
	Noise   bool
	From    uint64 // where in its stream the noise of element 0 is
}

// None is no operand.
const None = 100

// Spread is how an operand is met: element i of the result meets element (i/Hold) mod Period of it,
// or element i if Period is 0.
type Spread struct {
	Hold, Period int
	Half         bool // it is of bfloat16
}

// Width is how many elements a thread takes at a time: as many as 16 bytes have, of the operands
// that have as many elements as the result, and of it.
func (c Chain) Width() int {
	if !c.Half {
		return 4
	}
	for _, s := range c.In {
		if s.Period == 0 && !s.Half {
			return 4
		}
	}
	return 8
}

// Write is the kernel for a chain.
func (c Chain) Write() *Written {
	body := c.body()
	sum := sha256.Sum256([]byte(body))
	name := "chain_" + hex.EncodeToString(sum[:8])
	return &Written{name, "extern \"C\" __global__ void __launch_bounds__(256) " + name + body}
}

// body is all of the kernel but its name.
func (c Chain) body() string {
	var b strings.Builder
	put := func(format string, list ...any) { fmt.Fprintf(&b, format, list...) }
	width, index := c.Width(), "u32"
	if c.N >= 1<<31 {
		index = "i64"
	}
	put("(PARAM Chain c, %s *to) {\n\tconst %s n = (%[2]s)c.n;\n", element(c.Half), index)
	for i, s := range c.In {
		if s.Period == 1 && !c.seeds(i) {
			put("\tconst float x%d = first<%s>(c.in[%[1]d]);\n", i, element(s.Half))
		}
	}
	for i, ins := range c.Code {
		if ins.Noise {
			put("\tconst u64 key%d = stream_key((const int *)c.in[%d].at, c.code[%[1]d].salt);\n",
				i, ins.B)
		}
	}
	put("\tfor (%s i = %d * (blockIdx.x * (%[1]s)blockDim.x + threadIdx.x); i < n;\n"+
		"\t\ti += %[2]d * (%[1]s)gridDim.x * blockDim.x) {\n\t\tfloat y[%[2]d];\n", index, width)
	c.loads(put, width)
	put("#pragma unroll\n\t\tfor (int k = 0; k < %d; k++) {\n", width)
	c.instructions(put)
	put("\t\t\ty[k] = v%d;\n\t\t}\n\t\tput(to, y, i, n);\n\t}\n}\n", len(c.Code)-1)
	return b.String()
}

// loads put what a thread reads and draws before it computes.
func (c Chain) loads(put func(string, ...any), width int) {
	for i, s := range c.In {
		if s.Period != 1 {
			put("\t\tfloat x%d[%d];\n\t\ttake<%s, %s>(x%[1]d, c.in[%[1]d], i, n);\n", i, width,
				c.kind(s, width), element(s.Half))
		}
	}
	for i, ins := range c.Code {
		if !ins.Noise {
			continue
		}
		put("\t\tu32 w%d[%d];\n", i, width)
		switch {
		case c.Window:
			put("\t\twords_within(w%d, key%[1]d, c.code[%[1]d].from + i, c.window);\n", i)
		case ins.From%4 == 0:
			put("\t\twords_of_blocks(w%d, key%[1]d, c.code[%[1]d].from + i);\n", i)
		default:
			put("\t\twords_from(w%d, key%[1]d, c.code[%[1]d].from + i);\n", i)
		}
	}
}

// instructions put what a thread computes of each of its elements.
func (c Chain) instructions(put func(string, ...any)) {
	for i, ins := range c.Code {
		value := fmt.Sprintf("applied(%d, c.code[%d], %s, %s)", ins.Op, i, c.value(ins.A),
			c.value(ins.B))
		if ins.Noise {
			value = fmt.Sprintf("noisy(%d, c.code[%d], %s, w%[2]d[k])", ins.Op, i, c.value(ins.A))
		}
		if ins.Rounded {
			value = "rounded(" + value + ")"
		}
		put("\t\t\tconst float v%d = %s;\n", i, value)
	}
}

// value is an operand of an instruction, of one element.
func (c Chain) value(ref int) string {
	switch {
	case ref == None:
		return "0.f"
	case ref < 0:
		return fmt.Sprintf("v%d", ^ref)
	case c.In[ref].Period == 1:
		return fmt.Sprintf("x%d", ref)
	}
	return fmt.Sprintf("x%d[k]", ref)
}

// kind is the name of how an operand is spread, in vectors.cu.
func (c Chain) kind(s Spread, width int) string {
	name, side := "WHOLE", 1
	switch {
	case s.Period == 0:
	case s.Hold == 1:
		name, side = "CYCLE", s.Period
	case s.Hold*s.Period == c.N:
		name, side = "HELD", s.Hold
	default:
		name, side = "HELD_CYCLE", s.Hold
	}
	if side%width == 0 {
		name += " | EVEN"
	}
	return name
}

// seeds reports whether an operand is the seed of noise.
func (c Chain) seeds(i int) bool {
	for _, ins := range c.Code {
		if ins.Noise && ins.B == i {
			return true
		}
	}
	return false
}

// element is the type of the elements of operands.
func element(half bool) string {
	if half {
		return "Half"
	}
	return "float"
}
