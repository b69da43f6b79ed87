package main

// Philox4x32-10 on 64-bit lanes, one block of four words a lane, in the low
// halves: the multiplication is 32×32→64 bits of the low halves, so what is in
// the high halves does not matter until the end.

const (
	philoxRounds       = 10
	philoxM0, philoxM1 = 0xd2511f53, 0xcd9e8d57
	philoxW0, philoxW1 = 0x9e3779b9, 0xbb67ae85
)

type generator struct {
	index        *value // element index of each lane's block
	key0, key1   *value
	scale, limit *value // of dropout
}

// startPhilox assigns blocks to lanes such that interleaving within 128 bits
// puts the words in order.
func (b *builder) startPhilox(index string) generator {
	order := []uint32{0, 8, 4, 12}
	if b.masks {
		order = []uint32{0, 16, 4, 20, 8, 24, 12, 28}
	}
	var lanes []uint32
	for _, o := range order {
		lanes = append(lanes, o, 0)
	}
	key := b.broadcast("key")
	return generator{
		index: b.pin(b.op("VPADDQ", b.broadcast(index), b.bits(lanes...))),
		key0:  key,
		key1:  b.pin(b.opImm("VPSRLQ", 32, key)),
	}
}

// philox returns the next vectors of words, two for each of n chains. One round
// of a block takes five cycles and six instructions, so a processor is only busy
// with several blocks' rounds side by side.
func (b *builder) philox(g generator, n int) []*value {
	step := uint32(2 * b.width)
	chains := make([][4]*value, n)
	for i := range chains {
		index := g.index
		if i > 0 {
			index = b.op("VPADDQ", g.index, b.bits(uint32(i)*step, 0))
		}
		chains[i] = [4]*value{b.opImm("VPSRLQ", 2, index), b.opImm("VPSRLQ", 34, index)}
	}
	b.set(g.index, b.op("VPADDQ", g.index, b.bits(uint32(n)*step, 0)))
	k0, k1 := g.key0, g.key1
	for round := range philoxRounds {
		if round > 0 {
			k0, k1 = b.addi(k0, b.bits(philoxW0)), b.addi(k1, b.bits(philoxW1))
		}
		for i, c := range chains {
			h0, l0 := b.wide(c[0], philoxM0)
			h1, l1 := b.wide(c[2], philoxM1)
			chains[i] = [4]*value{b.xor3(h1, c[1], k0), l1, b.xor3(h0, c[3], k1), l0}
		}
	}
	var words []*value
	for _, c := range chains {
		w01, w23 := b.join(c[0], c[1]), b.join(c[2], c[3])
		words = append(words, b.op("VPUNPCKLQDQ", w01, w23), b.op("VPUNPCKHQDQ", w01, w23))
	}
	return words
}

// wide multiplies by a constant and returns the high and the low words; nil
// stands for a word known to be zero.
func (b *builder) wide(x *value, by uint32) (hi, lo *value) {
	if x == nil {
		return nil, nil
	}
	lo = b.op("VPMULUDQ", x, b.bits(by, 0))
	return b.opImm("VPSRLQ", 32, lo), lo
}

// xor3 is the exclusive or of three words, of which x and y may be zero.
func (b *builder) xor3(x, y, z *value) *value {
	switch {
	case x == nil && y == nil:
		return z
	case x == nil:
		return b.xor(y, z)
	case y == nil:
		return b.xor(x, z)
	case b.masks:
		return b.tern(0x96, x, y, z)
	}
	return b.xor(b.xor(x, y), z)
}

// join puts the words of lo and hi into the halves of 64-bit lanes.
func (b *builder) join(lo, hi *value) *value {
	hi = b.opImm("VPSLLQ", 32, hi)
	if !b.masks {
		return b.opImm("VPBLENDD", 0xaa, lo, hi)
	}
	return b.tern(0xec, lo, hi, b.bits(0xffffffff, 0)) // lo AND mask, OR hi
}

// keep is x·scale where the word is at most the limit, else zero.
func (b *builder) keep(g generator, word, x *value) *value {
	x = b.mul(x, g.scale)
	if b.masks {
		return b.only(b.test("VPCMPUD", 2, word, g.limit), x)
	}
	return b.only(b.op("VPCMPEQD", b.op("VPMINUD", word, g.limit), word), x)
}

func random() []*kernel {
	unroll := func(s isa) int { return max(1, s.regs/4-4) } // as many chains as there are registers
	return []*kernel{
		{
			name:   "philox",
			params: append(params("u32s", "dst"), params("u64", "key", "index")...),
			vecs:   2, unroll: unroll, joint: true,
			start: func(b *builder) any { return b.startPhilox("index") },
			body: func(b *builder, s any) {
				for i, word := range b.philox(s.(generator), b.copies) {
					b.storeAt("dst", i, word, "VMOVUPS", "")
				}
			},
		},
		{
			name: "dropout",
			params: append(params("f32s", "dst", "x"),
				param{"scale", "f32"}, param{"limit", "u32"}, param{"key", "u64"}, param{"offset",
					"u64"}),
			vecs: 2, unroll: unroll, joint: true, twin: true,
			start: func(b *builder) any {
				g := b.startPhilox("offset")
				g.scale, g.limit = b.broadcast("scale"), b.broadcast("limit")
				return g
			},
			body: func(b *builder, s any) {
				g := s.(generator)
				for i, word := range b.philox(g, b.copies) {
					x := b.loadAt("x", i, "VMOVUPS")
					b.storeAt("dst", i, b.keep(g, word, x), "VMOVUPS", "")
				}
			},
		},
	}
}
