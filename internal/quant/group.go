package quant

// GroupSize is the elements of a [Group].
const GroupSize = 256

// Group is up to 256 elements of a row as integers with what they are multiplied by: element i is
// Scales[i/32]·Codes[i] - Floors[i/32]. The products of all codes of 32 with integers of magnitudes
// up to 16383 add up to less than 2³¹.
type Group struct {
	Codes          [GroupSize]int16
	Scales, Floors [8]float32
}

// Integral says whether elements are integers times a scale, less a floor, as [Format.Group] has
// them.
func (f Format) Integral() bool { return f.valid() && layouts[f].group != nil }

// Group sets g to whole blocks of a row that are at most 256 elements, and what is beyond them to
// zero. The format is one that is Integral.
func (f Format) Group(g *Group, blocks []byte) {
	*g = Group{}
	layouts[f].group(g, blocks)
}

func groupQ8(g *Group, src []byte) {
	for b := 0; len(src) > 0; b, src = b+1, src[q8Bytes:] {
		g.Scales[b] = half(src)
		codes := g.Codes[32*b:]
		for i, q := range src[2:q8Bytes] {
			codes[i] = int16(int8(q))
		}
	}
}

func groupQ4(g *Group, src []byte) {
	for b := 0; len(src) > 0; b, src = b+1, src[q4Bytes:] {
		g.Scales[b] = half(src)
		codes := g.Codes[32*b:]
		for i, q := range src[2:q4Bytes] {
			codes[i], codes[16+i] = int16(q&15)-8, int16(q>>4)-8
		}
	}
}

func groupQ4K(g *Group, src []byte) {
	if len(src) == 0 {
		return
	}
	in := (*[q4kBytes]byte)(src)
	d, m := half(in[0:]), half(in[2:])
	for p := range 8 {
		step, floor := sixBitsOf((*[12]byte)(in[4:]), p)
		g.Scales[p], g.Floors[p] = d*float32(step), m*float32(floor)
		codes := in[16+p/2*32:]
		for i := range 32 {
			g.Codes[32*p+i] = int16(codes[i] >> (4 * (p & 1)) & 15)
		}
	}
}

// groupQ6K has the steps of parts, 8 bits, in the codes.
func groupQ6K(g *Group, src []byte) {
	if len(src) == 0 {
		return
	}
	in := (*[q6kBytes]byte)(src)
	for p := range g.Scales {
		g.Scales[p] = half(in[208:])
	}
	for i := range g.Codes {
		low, lowShift, high, highShift := sixAt(i)
		code := in[low]>>lowShift&15 | in[high]>>highShift&3<<4
		g.Codes[i] = (int16(code) - 32) * int16(int8(in[192+i/16]))
	}
}
