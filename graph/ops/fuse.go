package ops

import "github.com/gomem/gomem/graph"

// Application is an operation on its operands that is not, or not yet, a node.
type Application struct {
	Op graph.Op
	In []graph.Value
}

// Fuse is the application that computes what p and then c do, where operand v
// of c is the result of p: a chain of elementwise operations, or a matrix product or a
// convolution followed by one. Its bits are those of the two. ok is false if there is no such
// operation; whether the one there is accepts the operands' shapes, [Application.Type] says.
func Fuse(p, c Application, v graph.Value) (fused Application, ok bool) {
	tail, ok := chainOf(c)
	if !ok {
		return fused, false
	}
	if head, ok := chainOf(p); ok {
		code, in, ok := join(head, p.In, tail, c.In, v)
		return Application{code, in}, ok
	}
	head, code, ok := leaderOf(p)
	if !ok {
		return fused, false
	}
	operands := append([]graph.Value{{}}, p.In[2:]...) // its result is not a value any more
	code, in, ok := join(code, operands, tail, c.In, v)
	if !ok {
		return fused, false
	}
	in = append([]graph.Value{p.In[0], p.In[1]}, in[1:]...)
	return Application{head.before(code), in}, true
}

// chainOf is an application as a chain.
func chainOf(a Application) (chain, bool) {
	if c, ok := a.Op.(chain); ok {
		return c, true
	}
	e, ok := isElementwise(a.Op)
	if !ok {
		return chain{}, false
	}
	return single(e, len(a.In)), true
}

// Type is the type of the application's result; the zero type if the operation
// does not accept the operands.
func (a Application) Type() graph.Type {
	types := make([]graph.Type, len(a.In))
	for i, v := range a.In {
		types[i] = v.Type()
	}
	out, err := a.Op.Infer(types)
	if err != nil || len(out) != 1 {
		return graph.Type{}
	}
	return out[0]
}
