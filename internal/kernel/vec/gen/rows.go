package main

// rows lists what normalisations and softmax do to a row when its sums are known.
func rows() []*kernel {
	list := func(names ...string) []string { return names }
	return []*kernel{
		rowMap("affine", list("dst", "x"), list("shift", "factor", "offset"),
			func(b *builder, s []*value) *value {
				return b.fma(b.sub(b.load("x"), s[0]), s[1], s[2])
			}),
		softmaxLast(),
		rowMap("mulScaled", list("dst", "x", "scale"), list("s"),
			func(b *builder, s []*value) *value {
				return b.mul(b.mul(b.load("x"), s[0]), b.load("scale"))
			}),
		rowMap("mulShifted", list("dst", "a", "b"), list("shift"),
			func(b *builder, s []*value) *value {
				return b.mul(b.sub(b.load("a"), s[0]), b.load("b"))
			}),
		rowMap("normalize", list("dst", "x", "scale", "bias"), list("shift", "factor"),
			func(b *builder, s []*value) *value {
				return b.fma(b.mul(b.sub(b.load("x"), s[0]), s[1]), b.load("scale"), b.load("bias"))
			}),
		rowMap("normGrad", list("dst", "x", "scale", "d"), list("shift", "mean", "factor", "along"),
			func(b *builder, s []*value) *value {
				g := b.mul(b.sub(b.mul(b.load("d"), b.load("scale")), s[1]), s[2])
				return b.fma(b.sub(b.load("x"), s[0]), s[3], g)
			}),
	}
}

// rowMap is dst = f of some slices and scalars.
func rowMap(name string, slices, numbers []string, f func(b *builder, s []*value) *value) *kernel {
	return &kernel{
		name: name, params: append(params("f32s", slices...), params("f32", numbers...)...),
		unroll: times(4), twin: true, start: scalars,
		body: func(b *builder, s any) { b.store("dst", f(b, s.([]*value))) },
	}
}

// softmaxLast is the last pass over a row of softmax, which computes the
// exponentials again rather than keep them.
func softmaxLast() *kernel {
	k := rowMap("expAffine", []string{"dst", "x"}, []string{"shift", "factor", "offset"},
		func(b *builder, s []*value) *value {
			return b.fma(b.exp(b.sub(b.load("x"), s[0])), s[1], s[2])
		})
	k.weave, k.fetched = 4, true
	return k
}

// pairs lists the sums that gradients of normalisations take two at a time. Each
// has the bits of the reduction that computes it alone, which is what instruction
// sets with half the registers do.
func pairs() []*kernel {
	return []*kernel{
		pair("sumAndDot", params("f32s", "x", "d", "scale"),
			func(b *builder, first, second, _ *value) (x, y *value) {
				return b.add(first, b.load("x")), b.fma(b.load("d"), b.load("scale"), second)
			}),
		pair("squaresAndDot", append(params("f32s", "x", "d", "scale"), param{"shift", "f32"}),
			func(b *builder, first, second, shift *value) (x, y *value) {
				x = b.sub(b.load("x"), shift)
				return b.fma(x, x, first), b.fma(b.mul(b.load("d"), b.load("scale")), x, second)
			}),
	}
}

// pair is two sums over 64 lanes each.
func pair(name string, ps []param,
	step func(b *builder, first, second, shift *value) (x, y *value)) *kernel {
	lanes := func(s isa) int { return sums / s.width }
	r := reduction{combine: (*builder).add}
	return &kernel{
		name: name, params: ps, pair: true, unroll: lanes, weave: 4,
		start: func(b *builder) any {
			var a accumulators
			for range 2 * lanes(b.isa) {
				a.acc = append(a.acc, b.pin(b.op("load", b.bits(0))))
			}
			if ps[len(ps)-1].name == "shift" {
				a.shift = b.broadcast("shift")
			}
			return a
		},
		body: func(b *builder, s any) {
			a := s.(accumulators)
			first, second := a.acc[b.copy], a.acc[lanes(b.isa)+b.copy]
			x, y := step(b, first, second, a.shift)
			b.set(first, x)
			b.set(second, y)
		},
		finish: func(b *builder, s any) []*value {
			acc, n := s.(accumulators).acc, lanes(b.isa)
			b.set(acc[0], r.fold(b, acc[:n])) // keeps a register while the other is folded
			return []*value{acc[0], r.fold(b, acc[n:])}
		},
	}
}
