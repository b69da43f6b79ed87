package graph

// Part says that a factor of a [Rule] is divided into N equal parts, of which this is
// number I. The zero Part, and N = 1, is a factor that is not divided.
type Part struct{ N, I int }

// Factor is a loop of an operation.
type Factor struct {
	Size int // of the loop
	// Sum: results are sums over the loop, so that a part of it makes a partial sum. A result
	// that has the factor on an axis is not: it is divided all the same, as the gradient of
	// an operand is, beside those of the weights. Exact: of the partial sums' elements all
	// but one are zero, so that adding them up rounds nothing.
	Sum, Exact bool
}

// Rule is how an operation divides: which axes of operands and results belong together.
type Rule struct {
	Factors []Factor
	// In and Out have, for every operand and result, and for every axis of it, the factors
	// whose product the axis is, the major first. An axis without factors is whole in every
	// part. Only the major factor of an axis divides it, into equal blocks.
	In, Out [][][]int
	// Local is the operation that computes a part, by factor; nil: the operation itself.
	Local func([]Part) Op
	// Along is 1 + the axis along which the operation only arranges its operands or results,
	// as join, split and slice do: whole ones can be at different places of a mesh. 0: none.
	Along int
	// Adds are sets of operands in which results are linear, at no cost to speak of: where
	// each of a set is a sum of as many terms, results are the sums of what the operation
	// makes of the terms one by one, beside all other operands.
	Adds [][]int
	// Zeros are sets of operands where results are zero, element by element, if all of the
	// set are: so results, too, are sums of terms that are zero but in places of their own.
	Zeros [][]int
}

// Splitter is implemented by operations that divide over their axes: parts that are computed
// apart and joined equal the whole, bit for bit where results are divided, and within
// rounding where they are added up.
type Splitter interface {
	Op
	// Split says how, for operands and results of these types; ok is false if it is computed
	// whole. It stands beside Infer, and is as sure of the types.
	Split(in, out []Type) (r Rule, ok bool)
}

// Composer is implemented by updates that are computed whole, and that can be composed of
// operations that divide: a pass that wants their variables in pieces composes them.
type Composer interface {
	Op
	// Compose appends operations to the operands' graph that do to the first of them what the
	// update does, up to rounding, and returns the updates among them; none if it cannot.
	Compose(in []Value) []*Node
}
