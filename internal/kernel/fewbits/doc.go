// Package packed reads rows of few bits, those of package quant, as float32, on raw slices.
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
// Other kernels multiply a vector by rows, two at a time, of which elements go from registers to
// sums. With a single row of x a product reads the packed rows and nothing else, so that memory
// fetched ahead makes the most of its time: without that two rows were read at a third to two
// thirds of the rate.
package fewbits
