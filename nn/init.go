package nn

import (
	"math"

	"github.com/gomem/gomem/graph"
)

// Init says how a parameter starts, given how many elements go into one of its
// outputs, and how many outputs one element of its input reaches. Nil is zeros
// where a parameter is made, and the layer's own where a layer is.
type Init func(in, out int) graph.Init

// of is the initial value of a parameter of a type: a vector's elements are its
// inputs and its outputs; a matrix has inputs along its first axis; filters, [out
// in k k], outputs.
func (i Init) of(t graph.Type) graph.Init {
	if i == nil {
		return graph.Init{}
	}
	return i(fans(t))
}

func fans(t graph.Type) (in, out int) {
	switch t.Rank() {
	case 0:
		return 1, 1
	case 1:
		return t.Size(0), t.Size(0)
	case 2:
		return t.Size(0), t.Size(1)
	}
	window := graph.Type{Shape: t.Shape[2:]}.Elems()
	return t.Size(1) * window, t.Size(0) * window
}

// or is i, or another if i is nil.
func (i Init) or(other Init) Init {
	if i == nil {
		return other
	}
	return i
}

// Exactly starts as package graph says, whatever the sizes.
func Exactly(init graph.Init) Init { return func(_, _ int) graph.Init { return init } }

// Zeros are all 0.
func Zeros(_, _ int) graph.Init { return graph.Init{} }

// Ones are all 1.
func Ones(_, _ int) graph.Init { return graph.Init{Dist: graph.Constant, Scale: 1} }

// Fill is the same number everywhere.
func Fill(x float64) Init { return Exactly(graph.Init{Dist: graph.Constant, Scale: x}) }

// Normal is a normal distribution around 0.
func Normal(deviation float64) Init {
	return Exactly(graph.Init{Dist: graph.Normal, Scale: deviation})
}

// Truncated is a normal distribution around 0 that is drawn again beyond twice its
// scale; what is drawn has 0.88 of the scale as deviation.
func Truncated(scale float64) Init {
	return Exactly(graph.Init{Dist: graph.Truncated, Scale: scale})
}

// Uniform is from −half to half.
func Uniform(half float64) Init {
	return Exactly(graph.Init{Dist: graph.Uniform, Scale: half})
}

// Positive is uniform from 0 to most.
func Positive(most float64) Init {
	return Exactly(graph.Init{Dist: graph.Positive, Scale: most})
}

// uniform has the given variance.
func uniform(variance float64) graph.Init {
	return graph.Init{Dist: graph.Uniform, Scale: math.Sqrt(3 * variance)}
}

// Glorot is Glorot and Bengio's uniform distribution (2010), of variance
// 2/(in+out): that of Keras, and of TensorFlow's variance scaling over the average
// fan.
func Glorot(in, out int) graph.Init { return uniform(2 / float64(in+out)) }

// GlorotNormal is [Glorot], drawn from a normal distribution.
func GlorotNormal(in, out int) graph.Init {
	return graph.Init{Dist: graph.Normal, Scale: math.Sqrt(2 / float64(in+out))}
}

// He is He et al.'s normal distribution (2015), of variance 2/in, for what a
// rectifier follows.
func He(in, _ int) graph.Init {
	return graph.Init{Dist: graph.Normal, Scale: math.Sqrt(2 / float64(in))}
}

// HeUniform is [He], drawn from a uniform distribution.
func HeUniform(in, _ int) graph.Init { return uniform(2 / float64(in)) }

// LeCun is LeCun et al.'s normal distribution (1998), of variance 1/in: what in
// inputs are multiplied with keeps their variance.
func LeCun(in, _ int) graph.Init {
	return graph.Init{Dist: graph.Normal, Scale: 1 / math.Sqrt(float64(in))}
}

// LeCunTruncated is [LeCun], drawn from a truncated normal distribution, which is
// narrower than its scale: TensorFlow's variance scaling over the fan in.
func LeCunTruncated(in, _ int) graph.Init {
	const truncation = 0.87962566103423978 // deviation of a standard normal cut at ±2
	return graph.Init{Dist: graph.Truncated, Scale: 1 / math.Sqrt(float64(in)) / truncation}
}

// LeCunUniform is uniform of variance 1/(3 in), from −1/√in to 1/√in: what PyTorch
// starts linear layers and convolutions with.
func LeCunUniform(in, _ int) graph.Init {
	return graph.Init{Dist: graph.Uniform, Scale: 1 / math.Sqrt(float64(in))}
}
