package onnx

import (
	"math"

	"github.com/gomem/gomem/graph/ops"
)

// bits are operators of remainders and of bits.
var bits = each(map[string]func(n *node){
	"Mod": modulo, "IsInf": isInf, "BitShift": shift,
	"BitwiseAnd": two(ops.BitAnd), "BitwiseOr": two(ops.BitOr), "BitwiseXor": two(ops.BitXor),
	"BitwiseNot": one(ops.BitNot),
	"BitCast":    func(n *node) { n.give(ops.BitCast(n.x(0), typed(n.int("to", 0)))) },
})

// modulo has the sign of the divisor, or, as C has it, that of what is divided.
func modulo(n *node) {
	f := ops.Mod
	if n.flag("fmod", false) {
		f = ops.Remainder
	}
	n.give(f(n.x(0), n.x(1)))
}

func shift(n *node) {
	way := n.text("direction", "")
	n.only("direction", way, "LEFT", "RIGHT")
	f := ops.ShiftLeft
	if way == "RIGHT" {
		f = ops.ShiftRight
	}
	n.give(f(n.x(0), n.x(1)))
}

// isInf is of either sign, if that is to be detected.
func isInf(n *node) {
	x := n.wide(0)
	of := func(sign int, detected bool) value {
		if !detected {
			return ops.BroadcastTo(n.b.g.Constant("none", truth(false)), x.Type().Sizes()...)
		}
		return ops.Equal(x, like(x, math.Inf(sign)))
	}
	n.give(ops.Or(of(1, n.flag("detect_positive", true)), of(-1, n.flag("detect_negative", true))))
}
