package ops

import "github.com/gomem/gomem/graph"

// pieces are groups of heads of a single element of a batch. Of several, some elements are in f32
// at a time as it is ([inBF16.tiling]).
func (o attention) pieces(in, out []graph.Type) []piece {
	return o.byGroups(in, out, func(part attention) graph.Op { return part })
}

// pieces are groups of heads, as of the attention.
func (o attentionGrad) pieces(in, out []graph.Type) []piece {
	return o.Of.byGroups(in, out, func(part attention) graph.Op { return attentionGrad{part} })
}

// byGroups cuts between groups. A piece has two at least, which two threads share, and more until
// its operands and results are of [tileBytes].
func (o attention) byGroups(in, out []graph.Type, op func(attention) graph.Op) []piece {
	x := o.sizes(in[0], in[1], in[2])
	each := int(bytes(in, out)) / max(1, x.Groups)
	least := max(2, eighth(x.Groups), tileBytes/max(1, each))
	if x.Batch != 1 || least >= x.Groups {
		return nil
	}
	axis, masks := 2, len(in)-o.masks()
	if o.HeadsFirst {
		axis = 1
	}
	var list []piece
	for lo := 0; lo < x.Groups; lo += least {
		hi := min(x.Groups, lo+least)
		of := func(types []graph.Type) (s []stretch) {
			for _, t := range types {
				per := t.Size(axis) / x.Groups
				s = append(s, stretch{axis: axis, lo: lo * per, hi: hi * per})
			}
			return s
		}
		p := piece{op: op(o.from(in, 1, lo*x.Heads/x.Groups)), out: of(out),
			in: append(of(in[:masks]), make([]stretch, len(in)-masks)...)}
		list = append(list, p)
	}
	return list
}
