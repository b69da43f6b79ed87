package main

// kernels lists what is generated for an instruction set.
func kernels(set isa) []*kernel {
	ks := arithmetic()
	ks = append(ks, functions()...)
	ks = append(ks, rows()...)
	ks = append(ks, reductions()...)
	if set.masks {
		ks = append(ks, pairs()...)
	}
	ks = append(ks, optimizers()...)
	ks = append(ks, random()...)
	ks = append(ks, conversions()...)
	ks = append(ks, moments()...)
	for _, k := range ks {
		k.vecs, k.weave = max(k.vecs, 1), max(k.weave, 1)
		if k.twin {
			ks = append(ks, k.distant())
		}
	}
	return ks
}

func arithmetic() []*kernel {
	return []*kernel{
		map2("add", "dst", "a", "b", (*builder).add),
		map2("sub", "dst", "a", "b", (*builder).sub),
		map2("mul", "dst", "a", "b", (*builder).mul),
		map2("div", "dst", "a", "b", (*builder).div),
		map2("max", "dst", "a", "b", (*builder).max),
		map2("min", "dst", "a", "b", (*builder).min),
		mapScalar("addScalar", "a", (*builder).add),
		mapScalar("mulScalar", "a", (*builder).mul),
		mapScalar("divScalar", "a", (*builder).div),
		mapScalar("scalarDiv", "b", func(b *builder, x, s *value) *value { return b.div(s, x) }),
		mapScalar("maxScalar", "a", (*builder).max),
		mapScalar("minScalar", "a", (*builder).min),
		map2("atLeast", "dst", "a", "b", (*builder).atLeast),
		mapScalar("atLeastScalar", "a", (*builder).atLeast),
		mapScalar("scalarAtLeast", "b", func(b *builder, x, s *value) *value {
			return b.atLeast(s, x)
		}),
		{
			name: "axpy", params: append(params("f32s", "dst", "x"),
				param{"s", "f32"}), unroll: times(4), start: scalars,
			body: func(b *builder, s any) {
				b.store("dst", b.fma(b.load("x"), s.([]*value)[0], b.load("dst")))
			},
		},
		{
			name: "fma", params: params("f32s", "dst", "a", "b", "c"), unroll: times(4), twin: true,
			body: func(b *builder, _ any) {
				b.store("dst", b.fma(b.load("a"), b.load("b"), b.load("c")))
			},
		},
		map1("relu", 4, (*builder).relu),
		map1("sqrt", 4, (*builder).sqrt),
		map1("rsqrt", 4, func(b *builder, x *value) *value { return b.div(b.f(1), b.sqrt(x)) }),
		map1("square", 4, func(b *builder, x *value) *value { return b.mul(x, x) }),
		map1("neg", 4, (*builder).neg),
		map1("abs", 4, (*builder).abs),
		map2("reluGrad", "dx", "y", "dy", func(b *builder, y, dy *value) *value {
			return b.only(b.cmp(notLessEqual, y, b.f(0)), dy)
		}),
	}
}

func functions() []*kernel {
	return []*kernel{
		map1("exp", 4, (*builder).exp),
		map1("log", 4, (*builder).log),
		map1("tanh", 4, (*builder).tanh),
		map1("sigmoid", 4, (*builder).sigmoid),
		map1("erf", 4, (*builder).erf),
		map1("gelu", 4, (*builder).gelu),
		map2("tanhGrad", "dx", "y", "dy", func(b *builder, y, dy *value) *value {
			return b.mul(dy, b.fnma(y, y, b.f(1)))
		}),
		map2("sigmoidGrad", "dx", "y", "dy", func(b *builder, y, dy *value) *value {
			return b.mul(dy, b.fnma(y, y, y))
		}),
		{
			name: "geluGrad", params: params("f32s", "dx", "x",
				"dy"), unroll: times(4), weave: 4, twin: true,
			body: func(b *builder, _ any) { b.store("dx", b.geluGrad(b.load("x"), b.load("dy"))) },
		},
	}
}

func reductions() []*kernel {
	return []*kernel{
		reduction{
			name: "sum", params: params("f32s", "x"), combine: (*builder).add, ahead: true,
			step: func(b *builder, acc, _ *value) *value { return b.add(acc, b.load("x")) },
		}.kernel(),
		reduction{
			name: "sumSquares", params: params("f32s", "x"), combine: (*builder).add, ahead: true,
			step: func(b *builder, acc, _ *value) *value {
				x := b.load("x")
				return b.fma(x, x, acc)
			},
		}.kernel(),
		reduction{
			name: "maxOf", params: params("f32s",
				"x"), combine: (*builder).max, initial: signBit | infinity,
			step: func(b *builder, acc, _ *value) *value { return b.max(b.load("x"), acc) },
		}.kernel(),
		reduction{
			name: "maxAbsOf", params: params("f32s", "x"), combine: (*builder).max,
			step: func(b *builder, acc, _ *value) *value { return b.max(b.abs(b.load("x")), acc) },
		}.kernel(),
		reduction{
			name: "dot", params: params("f32s", "a", "b"), combine: (*builder).add, ahead: true,
			step: func(b *builder, acc, _ *value) *value {
				return b.fma(b.load("a"), b.load("b"), acc)
			},
		}.kernel(),
		reduction{
			name: "sumSquaresFrom", params: append(params("f32s", "x"), param{"shift", "f32"}),
			combine: (*builder).add, shifted: true,
			step: func(b *builder, acc, shift *value) *value {
				x := b.sub(b.load("x"), shift)
				return b.fma(x, x, acc)
			},
		}.kernel(),
		reduction{
			name: "dotFrom", params: append(params("f32s", "a", "b", "x"), param{"shift", "f32"}),
			combine: (*builder).add, shifted: true,
			step: func(b *builder, acc, shift *value) *value {
				return b.fma(b.mul(b.load("a"), b.load("b")), b.sub(b.load("x"), shift), acc)
			},
		}.kernel(),
		reduction{
			name: "expSum", params: append(params("f32s", "dst", "x"), param{"shift", "f32"}),
			combine: (*builder).add, shifted: true, ahead: true,
			step: func(b *builder, acc, shift *value) *value {
				e := b.exp(b.sub(b.load("x"), shift))
				b.store("dst", e)
				return b.add(acc, e)
			},
		}.kernel(),
		reduction{
			name: "sumExp", params: append(params("f32s", "x"), param{"shift", "f32"}),
			combine: (*builder).add, shifted: true, ahead: true,
			step: func(b *builder, acc, shift *value) *value {
				return b.add(acc, b.exp(b.sub(b.load("x"), shift)))
			},
		}.kernel(),
	}
}

// scalars pins the kernel's scalar parameters, in order.
func scalars(b *builder) any {
	var vs []*value
	for _, p := range b.kernel.params {
		if !p.slice() {
			vs = append(vs, b.broadcast(p.name))
		}
	}
	return vs
}

func optimizers() []*kernel {
	return []*kernel{
		{
			name: "momentum", params: append(params("f32s", "w", "m", "g"),
				params("f32", "step", "mu")...),
			unroll: times(2), start: scalars,
			body: func(b *builder, s any) {
				step, mu := s.([]*value)[0], s.([]*value)[1]
				m := b.fma(b.load("m"), mu, b.load("g"))
				b.store("m", m)
				b.store("w", b.fma(m, step, b.load("w")))
			},
		},
		{
			name: "adam",
			params: append(params("f32s", "w", "m", "v", "g"),
				params("f32", "step", "beta1", "keep1", "beta2", "keep2", "root", "eps")...),
			unroll: times(2), start: scalars,
			body: func(b *builder, s any) {
				v := s.([]*value)
				b.adam(v[0], v[1], v[2], v[3], v[4], v[5], v[6])
			},
		},
	}
}

func (b *builder) adam(step, beta1, keep1, beta2, keep2, root, eps *value) {
	g := b.load("g")
	m := b.fma(b.load("m"), beta1, b.mul(g, keep1))
	v := b.fma(b.load("v"), beta2, b.mul(b.mul(g, keep2), g))
	b.store("m", m)
	b.store("v", v)
	b.store("w", b.fma(b.div(m, b.fma(b.sqrt(v), root, eps)), step, b.load("w")))
}

func conversions() []*kernel {
	convert := func(name, to, from string, body func(b *builder)) *kernel {
		return &kernel{
			name: name, params: []param{{"dst", to}, {"x", from}}, unroll: times(4), whole: true,
			body: func(b *builder, _ any) { body(b) },
		}
	}
	return []*kernel{
		convert("bf16FromF32", "u16s", "f32s", func(b *builder) {
			b.narrow("dst", b.bf16(b.load("x")))
		}),
		convert("f32FromBF16", "f32s", "u16s", func(b *builder) {
			b.store("dst", b.shl(b.loadAt("x", 0, "VPMOVZXWD"), 16))
		}),
		convert("f16FromF32", "u16s", "f32s", func(b *builder) {
			b.storeAt("dst", 0, b.load("x"), "VCVTPS2PH", "$0")
		}),
		convert("f32FromF16", "f32s", "u16s", func(b *builder) {
			b.store("dst", b.loadAt("x", 0, "VCVTPH2PS"))
		}),
	}
}

// bf16 rounds to nearest even into the low half of each lane.
func (b *builder) bf16(x *value) *value {
	high := b.shr(x, 16)
	odd := b.and(high, b.bits(1))
	rounded := b.shr(b.addi(b.addi(x, b.bits(0x7fff)), odd), 16)
	return b.sel(b.cmp(unordered, x, x), b.or(high, b.bits(0x40)), rounded)
}

// narrow stores the low half of each lane.
func (b *builder) narrow(name string, x *value) {
	if b.masks {
		b.storeAt(name, 0, x, "VPMOVDW", "")
		return
	}
	packed := b.opImm("VPERMQ", 0x08, b.op("VPACKUSDW", x, x))
	b.storeAt(name, 0, packed, "storeHalf", "")
}
