package gguf

import "fmt"

// Type is the code of how elements of tensors are stored.
type Type uint32

// The types that tests and readers name; others are in the table.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2
	Q8_0 Type = 8
	Q4_K Type = 12
	Q6_K Type = 14
	BF16 Type = 30
)

// storage is the name of a type, and the elements and the bytes of a block.
type storage struct {
	name            string
	elements, bytes int
}

// storages are those of ggml, by their codes. Codes without a name are no longer in use.
var storages = [...]storage{
	F32: {"F32", 1, 4}, F16: {"F16", 1, 2}, Q4_0: {"Q4_0", 32, 18}, 3: {"Q4_1", 32, 20},
	6: {"Q5_0", 32, 22}, 7: {"Q5_1", 32, 24}, Q8_0: {"Q8_0", 32, 34}, 9: {"Q8_1", 32, 40},
	10: {"Q2_K", 256, 84}, 11: {"Q3_K", 256, 110}, Q4_K: {"Q4_K", 256, 144},
	13: {"Q5_K", 256, 176}, Q6_K: {"Q6_K", 256, 210}, 15: {"Q8_K", 256, 292},
	16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74}, 18: {"IQ3_XXS", 256, 98},
	19: {"IQ1_S", 256, 50}, 20: {"IQ4_NL", 32, 18}, 21: {"IQ3_S", 256, 110},
	22: {"IQ2_S", 256, 82}, 23: {"IQ4_XS", 256, 136}, 24: {"I8", 1, 1}, 25: {"I16", 1, 2},
	26: {"I32", 1, 4}, 27: {"I64", 1, 8}, 28: {"F64", 1, 8}, 29: {"IQ1_M", 256, 56},
	BF16: {"BF16", 1, 2}, 34: {"TQ1_0", 256, 54}, 35: {"TQ2_0", 256, 66}, 39: {"MXFP4", 32, 17},
	40: {"NVFP4", 64, 36}, 41: {"Q1_0", 128, 18},
}

// known reports whether the table has a type.
func (t Type) known() bool { return int(t) < len(storages) && storages[t].name != "" }

// String is the type's name in ggml, such as Q4_K.
func (t Type) String() string {
	if !t.known() {
		return fmt.Sprintf("type %d", uint32(t))
	}
	return storages[t].name
}

// Tensor is one of a file. Its axes are the outermost first, so that a row is the last; in the file
// they are the other way about.
type Tensor struct {
	Name  string
	Type  Type
	Sizes []int
	off   int64 // from where the data begins
	bytes int64
}

// Bytes is how many bytes its elements have in a file that was read.
func (t Tensor) Bytes() int64 { return t.bytes }

// maxAxes are the most axes of a tensor in ggml.
const maxAxes = 4

// measure finds out the bytes of a tensor, and refuses those that cannot be.
func (t *Tensor) measure() error {
	if !t.Type.known() {
		return t.fail("has elements of %s, which is none of ggml's", t.Type)
	}
	if len(t.Sizes) > maxAxes {
		return t.fail("has %d axes: want %d at most", len(t.Sizes), maxAxes)
	}
	s := storages[t.Type]
	blocks, most := int64(1), int64(1)<<56
	for i, n := range t.Sizes {
		if n < 1 {
			return t.fail("has an axis of %d elements", n)
		}
		if i == len(t.Sizes)-1 {
			if n%s.elements != 0 {
				return t.fail("has rows of %d elements in %s: want a multiple of %d", n, t.Type,
					s.elements)
			}
			n /= s.elements
		}
		if int64(n) > most/blocks {
			return t.fail("has too many elements: %v", t.Sizes)
		}
		blocks *= int64(n)
	}
	if len(t.Sizes) == 0 && s.elements > 1 {
		return t.fail("is one number in %s, whose blocks have %d", t.Type, s.elements)
	}
	t.bytes = blocks * int64(s.bytes)
	return nil
}
