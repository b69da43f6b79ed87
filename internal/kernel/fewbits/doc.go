// Package fewbits reads rows of few bits, those of package quant, as float32, on raw slices.
//
// Every format has a kernel that unpacks whole blocks, in assembly for AVX-512 and for AVX2; the
// generator in gen writes them, which go generate runs. Elsewhere, and with the tag portable,
// package quant does it. An element is computed by the same operations, each rounded, so that it
// has the same bits; only the payloads of NaN may differ. With 16 lanes a code of 4 bits is looked
// up in a register that has what each of the codes comes to, which is computed once for a block, or
// for its part; with 8 lanes that is done for NF4, and others are computed element by element.
//
// What unpacks the two formats of 16 bits is package vec's.
//
// # Products of integers
//
// Elements of Q8_0, Q4_0, Q4_K and Q6_K are integers times a scale. So what they are multiplied by
// is rounded to integers, too, of 15 bits with a scale for each 32: an error of at most 1/32,766 of
// their largest, where 8 bits, as llama.cpp has them, would be 1/254. [Rows.Times] says how. Sums
// of integers are exact in any order, and what is left to be added in float32 has an order of its
// own, so that products have the same bits by every set of instructions, by plain Go and on a GPU,
// and however many of them are made at once. An instruction multiplies and adds pairs of 16 bits:
// 32 of them at a time with AVX-512's VNNI, 16 with AVX2. Unpacking to float32 and multiplying that
// took 2 to 3 times as long.
//
// With a single row of x, or a few, codes go from registers to sums, and a product reads the packed
// rows and nothing else. Sums of eight blocks are eight vectors, which are added across: for eight
// at once that takes less than to convert and scale each. Of Q4_K bytes are multiplied, as they are
// but for a mask, by the two bytes of each integer of x, and elements of four blocks side by side,
// so that four vectors are left to add. Codes of Q4_K and Q6_K are unpacked once for four rows of
// x. From 8 rows of x on, the codes of as many rows as a vector has lanes are unpacked once, and
// transposed, so that a vector has two elements of each; its products with pairs of 8 rows of x
// stay in registers for a block.
//
// # Products of the others
//
// Other kernels multiply a vector by rows of NF4 and of 16 bits, two at a time, of which elements
// go from registers to sums. Here too a product reads the packed rows and nothing else, so that
// memory fetched ahead makes the most of its time: without that two rows were read at a third to
// two thirds of the rate.
package fewbits
