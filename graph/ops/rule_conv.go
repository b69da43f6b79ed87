package ops

import (
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/kernel/conv"
)

// convAxes are the factors of a convolution's axes: images, channels of x and of y, and the
// first two axes of filters. Rows and columns are whole.
type convAxes struct{ images, x, y, out, in []int }

func (a convAxes) ofX() [][]int { return [][]int{a.images, a.x, nil, nil} }
func (a convAxes) ofY() [][]int { return [][]int{a.images, a.y, nil, nil} }
func (a convAxes) ofW() [][]int { return [][]int{a.out, a.in, nil, nil} }

// setChannels has axes of channels that do not fall into groups.
func (a *convAxes) setChannels(in, out []int) {
	a.x, a.in, a.y, a.out = in, in, out, out
}

// setGroups has axes of channels of which a part has those of some groups.
func (a *convAxes) setGroups(r *graph.Rule, s conv.Shape, groups []int) {
	within := func(channels int) []int {
		if len(groups) == 0 || channels == s.Groups {
			return groups
		}
		return append(slices.Clone(groups), factor(r, channels/s.Groups))
	}
	a.x, a.y = within(s.InC), within(s.OutC)
	a.out = a.y
}

// inGroups is a convolution with so many groups, which are as large.
func inGroups(s conv.Shape, groups int) conv.Shape {
	s.InC, s.OutC, s.Groups = s.InC/s.Groups*groups, s.OutC/s.Groups*groups, groups
	return s
}

// splitConv is the rule of a convolution, or of the gradient of its images, which adds up
// elements in an order: along images and channels of the result, or groups. Parts are so
// large that they have the order of the whole. Without groups, it is a sum over the channels
// of the source.
func splitConv(r *graph.Rule, s conv.Shape, backward bool) (a convAxes) {
	order := conv.OrderForward
	if backward {
		order = conv.OrderGradInput
	}
	whole := order(s)
	result, source := s.OutC, s.InC
	if backward {
		result, source = source, result
	}
	if s.Groups > 1 {
		var groups []int
		a.images, groups = coarseTwo(r, s.Batch, s.Groups, func(images, groups int) bool {
			part := inGroups(s, groups)
			part.Batch = images
			return order(part) == whole
		})
		a.setGroups(r, s, groups)
		return a
	}
	var made []int
	a.images, made = coarseTwo(r, s.Batch, result, func(images, channels int) bool {
		part := s
		part.Batch, part.OutC = images, channels
		if backward {
			part.OutC, part.InC = s.OutC, channels
		}
		return order(part) == whole
	})
	added := oneAxis(r, source)
	sums(r, added)
	if backward {
		a.setChannels(made, added)
	} else {
		a.setChannels(added, made)
	}
	return a
}

// local is the convolution of some groups.
func (a convAxes) local(c Conv, at []graph.Part, of func(Conv) graph.Op) graph.Op {
	if c.Groups > 1 {
		c.Groups, _ = shareOf(c.Groups, a.x, at)
	}
	return of(c)
}

// Split is along images, channels of the result or groups, and channels of the images.
func (o conv2D) Split(in, _ []graph.Type) (r graph.Rule, ok bool) {
	s, err := o.shape(in)
	if err != nil || s.Batch == 0 {
		return r, false
	}
	a := splitConv(&r, s, false)
	r.In, r.Out = [][][]int{a.ofX(), a.ofW()}, [][][]int{a.ofY()}
	r.Local = func(at []graph.Part) graph.Op {
		return a.local(o.Conv, at, func(c Conv) graph.Op { return conv2D{c} })
	}
	return r, true
}

// Split is along images, channels of the result or groups, and channels of the gradient.
func (o convInputGrad) Split(in, _ []graph.Type) (r graph.Rule, ok bool) {
	s, err := o.shape(in)
	if err != nil || s.Batch == 0 {
		return r, false
	}
	a := splitConv(&r, s, true)
	r.In, r.Out = [][][]int{a.ofY(), a.ofW()}, [][][]int{a.ofX()}
	r.Local = func(at []graph.Part) graph.Op {
		return a.local(o.Conv, at, func(c Conv) graph.Op { return convInputGrad{c, o.H, o.W} })
	}
	return r, true
}

// Split is along channels or groups, and along images, over which the gradient is a sum.
func (o convFilterGrad) Split(in, _ []graph.Type) (r graph.Rule, ok bool) {
	s, err := o.shape(in)
	if err != nil || s.Batch == 0 {
		return r, false
	}
	a := convAxes{images: oneAxis(&r, s.Batch)}
	sums(&r, a.images)
	whole := conv.OrderGradFilter(s)
	if s.Groups > 1 {
		a.setGroups(&r, s, coarse(&r, s.Groups, func(groups int) bool {
			return conv.OrderGradFilter(inGroups(s, groups)) == whole
		}))
	} else {
		a.setChannels(coarseTwo(&r, s.InC, s.OutC, func(in, out int) bool {
			part := s
			part.InC, part.OutC = in, out
			return conv.OrderGradFilter(part) == whole
		}))
	}
	r.In, r.Out = [][][]int{a.ofX(), a.ofY()}, [][][]int{a.ofW()}
	r.Local = func(at []graph.Part) graph.Op {
		return a.local(o.Conv, at, func(c Conv) graph.Op { return convFilterGrad{c, o.KH, o.KW} })
	}
	return r, true
}
