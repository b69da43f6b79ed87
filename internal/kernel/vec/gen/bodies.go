package main

// Builders of kernels by shape.

func params(kind string, names ...string) []param {
	ps := make([]param, len(names))
	for i, n := range names {
		ps[i] = param{n, kind}
	}
	return ps
}

func times(n int) func(isa) int { return func(isa) int { return n } }

// map1 is dst = f(x).
func map1(name string, unroll int, f func(b *builder, x *value) *value) *kernel {
	return &kernel{
		name: name, params: params("f32s", "dst",
			"x"), unroll: times(unroll), weave: unroll, twin: true,
		body: func(b *builder, _ any) { b.store("dst", f(b, b.load("x"))) },
	}
}

// map2 is dst = f(x, y) with the given names of the three.
func map2(name, dst, x, y string, f func(b *builder, x, y *value) *value) *kernel {
	return &kernel{
		name: name, params: params("f32s", dst, x, y), unroll: times(4), twin: true,
		body: func(b *builder, _ any) { b.store(dst, f(b, b.load(x), b.load(y))) },
	}
}

// mapScalar is dst = f(x, s).
func mapScalar(name, x string, f func(b *builder, x, s *value) *value) *kernel {
	return &kernel{
		name:   name,
		params: append(params("f32s", "dst", x), param{"s", "f32"}),
		unroll: times(4),
		twin:   true,
		start:  func(b *builder) any { return b.broadcast("s") },
		body:   func(b *builder, s any) { b.store("dst", f(b, b.load(x), s.(*value))) },
	}
}

// sums is the number of lanes of a reduction, the same for all instruction sets.
const sums = 64

// A reduction is the combination of f over 64 lanes of accumulators.
type reduction struct {
	name    string
	params  []param
	initial uint32 // bits of the combination of nothing
	shifted bool   // has a parameter shift
	ahead   bool   // prefetches its operands
	step    func(b *builder, acc, shift *value) *value
	combine func(b *builder, x, y *value) *value
}

type accumulators struct {
	acc   []*value
	shift *value
}

func (r reduction) kernel() *kernel {
	return &kernel{
		name: r.name, params: r.params, ahead: r.ahead,
		unroll: func(s isa) int { return sums / s.width }, weave: 4,
		start: func(b *builder) any {
			var a accumulators
			for range sums / b.width {
				a.acc = append(a.acc, b.pin(b.op("load", b.bits(r.initial))))
			}
			if r.shifted {
				a.shift = b.broadcast("shift")
			}
			return a
		},
		body: func(b *builder, s any) {
			a := s.(accumulators)
			b.set(a.acc[b.copy], r.step(b, a.acc[b.copy], a.shift))
		},
		finish: func(b *builder, s any) []*value {
			return []*value{r.fold(b,
				s.(accumulators).acc)}
		},
	}
}

// fold combines the lanes by halves.
func (r reduction) fold(b *builder, acc []*value) *value {
	v := append([]*value(nil), acc...)
	for len(v) > 1 {
		half := len(v) / 2
		for i := range half {
			v[i] = r.combine(b, v[i], v[i+half])
		}
		v = v[:half]
	}
	x := v[0]
	if b.masks {
		x = r.combine(b, x, b.opImm("VSHUFF64X2", 0x4e, x, x))
		x = r.combine(b, x, b.opImm("VSHUFF64X2", 0xb1, x, x))
	} else {
		x = r.combine(b, x, b.opImm("VPERM2F128", 0x01, x, x))
	}
	x = r.combine(b, x, b.opImm("VPERMILPS", 0x4e, x))
	return r.combine(b, x, b.opImm("VPERMILPS", 0xb1, x))
}
