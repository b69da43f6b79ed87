package onnx

import (
	"math"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// Noise is a function of a seed, so a file computes it as gomem does: the words of a stream of
// Philox4x32-10 (Salmon et al. 2011), in integers of 64 bits.

// ofNoise are the forms of what is drawn.
func ofNoise() map[string]func(x exported) []string {
	return map[string]func(x exported) []string{
		"random-uniform": func(x exported) []string {
			return x.is("Reshape", nil, x.chances(x.in[0], x.Out[0].Elems()),
				x.numbers(x.Out[0].Sizes()...))
		},
		"random-normal": exportedNormal,
	}
}

// low are the 32 bits that are left of a product.
const low = 1<<32 - 1

// word writes numbers of 64 bits, one axis.
func (e *exporter) word(v ...uint64) string {
	x := tensor.New(tensor.Of(tensor.U64, len(v)))
	copy(x.U64(), v)
	return e.constant(x)
}

// to is a value as numbers of another type.
func (e *exporter) to(d graph.DType, v string) string {
	return e.made("Cast", attributes{"to": int(dataType(d))}, v)
}

func (e *exporter) xor(a, b string) string { return e.made("BitwiseXor", nil, a, b) }

func (e *exporter) lower(v string) string { return e.made("BitwiseAnd", nil, v, e.word(low)) }

func (e *exporter) shifted(v string, places uint64) string {
	return e.made("BitShift", attributes{"direction": "RIGHT"}, v, e.word(places))
}

// scrambled is the finaliser of SplitMix64.
func (e *exporter) scrambled(v string) string {
	v = e.made("Add", nil, v, e.word(0x9e3779b97f4a7c15))
	v = e.made("Mul", nil, e.xor(v, e.shifted(v, 30)), e.word(0xbf58476d1ce4e5b9))
	v = e.made("Mul", nil, e.xor(v, e.shifted(v, 27)), e.word(0x94d049bb133111eb))
	return e.xor(v, e.shifted(v, 31))
}

// key is what selects the stream of the node's salt: the two halves, u64[1].
func (x exported) key(seed string) [2]string {
	words := x.lower(x.to(graph.U64, x.to(graph.I64, seed)))
	part := func(i int) string {
		return x.made("Slice", nil, words, x.numbers(i), x.numbers(i+1), x.numbers(0))
	}
	both := x.made("Add", nil, part(0), x.made("Mul", nil, part(1), x.word(1<<32)))
	key := x.scrambled(x.xor(x.scrambled(both), x.word(field(x.Op, "Salt").Uint())))
	return [2]string{x.lower(key), x.shifted(key, 32)}
}

// words are the first n of the node's stream, u64[n], each below 2³².
func (x exported) words(seed string, n int) string {
	blocks := make([]uint64, (n+3)/4)
	for i := range blocks {
		blocks[i] = uint64(i)
	}
	zero, key := x.word(0), x.key(seed)
	c := [4]string{x.word(blocks...), zero, zero, zero}
	product := func(a string, by uint64) (high, rest string) {
		p := x.made("Mul", nil, a, x.word(by))
		return x.shifted(p, 32), x.lower(p)
	}
	for range 10 {
		high0, low0 := product(c[0], 0xd2511f53)
		high1, low1 := product(c[2], 0xcd9e8d57)
		c = [4]string{x.xor(x.xor(high1, c[1]), key[0]), low1,
			x.xor(x.xor(high0, c[3]), key[1]), low0}
		for i, by := range [2]uint64{0x9e3779b9, 0xbb67ae85} {
			key[i] = x.lower(x.made("Add", nil, key[i], x.word(by)))
		}
	}
	for i := range c {
		c[i] = x.made("Unsqueeze", nil, c[i], x.numbers(1))
	}
	all := x.made("Reshape", nil, x.made("Concat", attributes{"axis": 1}, c[:]...), x.numbers(-1))
	return x.made("Slice", nil, all, x.numbers(0), x.numbers(n), x.numbers(0))
}

// chances are numbers in [0, 1), f32[n], of the node's stream.
func (x exported) chances(seed string, n int) string {
	words := x.to(graph.F32, x.shifted(x.words(seed, n), 8))
	return x.made("Mul", nil, words, x.number(1.0/(1<<24)))
}

// exportedNormal makes pairs of words pairs of numbers, as Box and Muller do, in 64 bits.
func exportedNormal(x exported) []string {
	n := x.Out[0].Elems()
	pairs := x.made("Reshape", nil, x.to(graph.F64, x.words(x.in[0], n+n%2)), x.numbers(-1, 2))
	part := func(i int, add, factor float64) string {
		v := x.made("Slice", nil, pairs, x.numbers(i), x.numbers(i+1), x.numbers(1))
		return x.made("Mul", nil, x.made("Add", nil, v, x.double(add)), x.double(factor))
	}
	const words = 1 << 32
	r := x.made("Sqrt", nil, x.made("Mul", nil, x.made("Log", nil, part(0, 1, 1.0/words)),
		x.double(-2)))
	angle := part(1, 0, 2*math.Pi/words)
	a := x.made("Mul", nil, r, x.made("Cos", nil, angle))
	b := x.made("Mul", nil, r, x.made("Sin", nil, angle))
	both := x.made("Concat", attributes{"axis": 1}, a, b)
	all := x.made("Reshape", nil, x.to(graph.F32, both), x.numbers(-1))
	some := x.made("Slice", nil, all, x.numbers(0), x.numbers(n), x.numbers(0))
	return x.is("Reshape", nil, some, x.numbers(x.Out[0].Sizes()...))
}

// double writes a number of f64.
func (e *exporter) double(v float64) string {
	x := tensor.New(tensor.Of(tensor.F64))
	x.F64()[0] = v
	return e.constant(x)
}
