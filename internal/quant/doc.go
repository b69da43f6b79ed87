// Package quant has the formats in which the elements of a row take few bits, as pure functions on
// one row: [Format.Pack] and [Format.Unpack].
//
// A row is a sequence of blocks, with nothing between or after them, and but for NF4 nothing before
// them, so that a matrix of whole rows can be cut at any row. All numbers are little endian. Below,
// d and m are binary16, and an element is computed in float32, each operation rounded, in the order
// that is written.
//
// # Q8_0, 34 bytes for 32 elements
//
//	2   d
//	32  codes q, int8
//
// x = q·d. The largest magnitude of a block is ±127.
//
// # Q4_0, 18 bytes for 32 elements
//
//	2   d
//	16  codes of 4 bits: byte i has element i in its low half and element 16+i in its high half
//
// x = d·(q-8). The largest magnitude of a block is -8, so d has its sign.
//
// # Q4_K, 144 bytes for 256 elements
//
//	2    d, the unit of steps
//	2    m, the unit of floors
//	12   steps s and floors f of 8 parts of 32 elements, 6 bits each
//	128  codes of 4 bits: of each 64 elements 32 bytes, byte i has i, low, and 32+i, high
//
// x = (d·s)·q - m·f. Of the 12 bytes, the first four have the steps of parts 0 … 3 in their low 6
// bits, the next four their floors; the last four have the low 4 bits of the step, and above them
// those of the floor, of parts 4 … 7, whose upper 2 bits are above the steps and floors of parts
// 0 … 3.
//
// # Q6_K, 210 bytes for 256 elements
//
//	128  low 4 bits of the codes: of each 128 elements 64 bytes, byte i has i, low, and 64+i, high
//	64   high 2 bits: of each 128 elements 32 bytes, byte i has those of i, 32+i, 64+i, 96+i
//	16   steps s of 16 parts of 16 elements, int8
//	2    d
//
// x = (d·s)·(q-32).
//
// # NF4, 33 bytes for 64 elements, and 8 for the row
//
// Codes are indices into a table of 16 quantiles of a normal distribution, which is bitsandbytes':
// see Dettmers et al., QLoRA, 2023, appendix E. The scale of a block is the largest magnitude in
// it, and is itself quantised, as in that paper: here to 8 bits between the least and the largest
// scale of the row, so that a row is read without any other. The layout is our own:
//
//	4   offset, float32, and
//	4   step, float32: of the scales of the row's blocks
//	33  of each block: code c of its scale; then byte i has element i, low, and 32+i, high
//
// x = table[q]·(offset + step·c). A row of 4,096 elements has 4.14 bits an element.
//
// # BF16, F16
//
// Elements of two bytes, rounded to nearest even.
//
// # How rows are packed
//
// All but NF4 are the formats of GGUF files. Q8_0, Q4_0, BF16 and F16 pack to the bytes that gguf,
// GGUF's library for Python, packs them to. How Q4_K and Q6_K are packed is not a part of the
// format: here, by a search for steps (fit.go), whose errors tests compare with those of ggml's
// reference. A d is a binary16, so that steps below 2⁻²⁴ vanish, and what would need one of 65,520
// or more becomes infinite.
package quant
