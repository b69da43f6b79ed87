package graph

// Sequence is implemented by operations that go along the first axis of some operands, step by
// step, and hand a state from each step to the next. They can be made some steps at a time, with
// the bits of the whole: what a part needs is less.
type Sequence interface {
	Op
	// Steps is how many steps there are, and into how many parts of them it is to be made so that
	// each needs about so many bytes, or little more than with any number. One step: it is never
	// made in parts.
	Steps(in, out []Type, limit int64) (steps, parts int)
	// Unfold makes it in so many parts, or as many as it has to be in, one after the other as they
	// need each other. Each result is values that follow one another along its first axis.
	Unfold(in []Value, parts int, u Unfolder) [][]Value
}

// Unfolder makes the nodes of a [Sequence] in another graph.
type Unfolder interface {
	// Whole is what stands for an operand there.
	Whole(v Value) Value
	// Rows is what stands for steps lo to hi-1 of an operand, which are along its first axis.
	Rows(v Value, lo, hi int) Value
	// Part begins a part, of so many: what follows is of it.
	Part(k, count int)
	// Node are the results of a node, so many, that is named after what it computes. After an error
	// they are no values.
	Node(results int, what string, op Op, in ...Value) []Value
}
