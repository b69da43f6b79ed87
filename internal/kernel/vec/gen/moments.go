package main

// one is the bits of 1.
const one = 0x3f800000

// moments are the conversions of an optimizer's small moments. Words of random bits are added to
// those that a number loses, so that a number is rounded up as often as it is near.
func moments() []*kernel {
	down := func(name, to string, body func(b *builder, x, word *value)) *kernel {
		return &kernel{
			name: name, params: []param{{"dst", to}, {"x", "f32s"}, {"words", "u32s"}},
			unroll: times(4), whole: true,
			body: func(b *builder, _ any) { body(b, b.load("x"), b.load("words")) },
		}
	}
	up := func(name string, body func(b *builder, code *value) *value) *kernel {
		return &kernel{
			name: name, params: []param{{"dst", "f32s"}, {"x", "u8s"}},
			unroll: times(4), whole: true,
			body: func(b *builder, _ any) {
				b.store("dst", body(b, b.loadAt("x", 0, "VPMOVZXBD")))
			},
		}
	}
	return []*kernel{
		down("bf16Low", "u16s", func(b *builder, x, word *value) {
			b.narrow("dst", drawn16(b, x, b.and(word, b.bits(0xffff))))
		}),
		down("bf16High", "u16s", func(b *builder, x, word *value) {
			b.narrow("dst", drawn16(b, x, b.shr(word, 16)))
		}),
		down("signed8", "u8s", func(b *builder, x, word *value) {
			code := drawn8(b, b.abs(x), b.shr(b.shl(word, 16), 12))
			sign := b.shl(b.shr(x, 31), 7)
			narrowest(b, "dst", b.or(b.op("VPMINUD", code, b.bits(127)), sign))
		}),
		down("unsigned8", "u8s", func(b *builder, x, word *value) {
			code := drawn8(b, x, b.shl(b.shr(word, 16), 4))
			narrowest(b, "dst", b.op("VPMAXUD", b.op("VPMINUD", code, b.bits(255)), b.bits(1)))
		}),
		up("fromSigned8", func(b *builder, code *value) *value {
			sign := b.shl(b.shr(code, 7), 31)
			return b.or(eighth(b, b.and(code, b.bits(127))), sign)
		}),
		up("fromUnsigned8", eighth),
	}
}

// drawn16 rounds to bfloat16 by 16 random bits, into the low half of each lane.
func drawn16(b *builder, x, random *value) *value {
	rounded := b.shr(b.addi(x, random), 16)
	return b.sel(b.cmp(unordered, x, x), b.or(b.shr(x, 16), b.bits(0x40)), rounded)
}

// drawn8 is the number of 3 bits behind the point, from 1 on, that x + 1 is rounded to.
func drawn8(b *builder, x, random *value) *value {
	return b.shr(b.subi(b.addi(b.add(x, b.f(1)), random), b.bits(one)), 20)
}

// eighth is what a number of drawn8 stands for.
func eighth(b *builder, code *value) *value {
	return b.sub(b.addi(b.shl(code, 20), b.bits(one)), b.f(1))
}

// narrowest stores the low byte of each lane.
func narrowest(b *builder, name string, x *value) {
	if b.masks {
		b.storeAt(name, 0, x, "VPMOVDB", "")
		return
	}
	words := b.opImm("VPERMQ", 0x08, b.op("VPACKUSDW", x, x))
	b.storeAt(name, 0, b.op("VPACKUSWB", words, words), "storeQuarter", "")
}
