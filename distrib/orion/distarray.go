package orion

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sort"
)

// DistArray is an array of a loop, or the data that it iterates over: elements of any type by their
// indices, all or some of a shape (appendix A.1 of the thesis). It is a recipe at first: a file to
// be parsed, numbers to be drawn, or a function of another array's elements. [DistArray.Make] makes
// the elements that a process asks for; of a map of a map it does so in one pass, and nothing in
// between is ever there. What an element is does not depend on who makes it.
type DistArray[T any] struct {
	shape  []int64 // what there is of it; nil of a recipe that will tell
	recipe recipe[T]
	made   bool
	keys   []int64 // of the elements that there are, in order: row-major
	values []T
}

// recipe yields the elements with their indices, which may be used again, and returns the shape.
type recipe[T any] func(yield func(index []int64, x T) error) (shape []int64, err error)

// Make makes the elements whose indices are to be kept; nil: all. Two of one index are an error, as
// is one that is not in the shape.
func (a *DistArray[T]) Make(keep func(index []int64) bool) error {
	var indices [][]int64
	var values []T
	shape, err := a.recipe(func(index []int64, x T) error {
		if keep == nil || keep(index) {
			indices, values = append(indices, slices.Clone(index)), append(values, x)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := (Array{"of elements", shape, 1}).check(); err != nil {
		return err
	}
	keys := make([]int64, len(indices))
	for i, index := range indices {
		if keys[i], err = key(shape, index); err != nil {
			return err
		}
	}
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return keys[order[i]] < keys[order[j]] })
	a.shape, a.made = shape, true
	a.keys, a.values = make([]int64, 0, len(keys)), make([]T, 0, len(keys))
	for _, i := range order {
		if last := len(a.keys) - 1; last >= 0 && a.keys[last] == keys[i] {
			return fmt.Errorf("element %v comes twice", indices[i])
		}
		a.keys, a.values = append(a.keys, keys[i]), append(a.values, values[i])
	}
	return nil
}

// key is the number of an element in row-major order.
func key(shape, index []int64) (k int64, err error) {
	if len(index) != len(shape) {
		return 0, fmt.Errorf("element %v of an array of %d dimensions", index, len(shape))
	}
	for d, x := range index {
		if x < 0 || x >= shape[d] {
			return 0, fmt.Errorf("element %v is not within %v", index, shape)
		}
		k = k*shape[d] + x
	}
	return k, nil
}

// unkey is the index of an element by its number.
func unkey(shape []int64, k int64, index []int64) {
	for d := len(shape) - 1; d >= 0; d-- {
		index[d], k = k%shape[d], k/shape[d]
	}
}

// Shape is the size of each dimension, once the array is made.
func (a *DistArray[T]) Shape() []int64 { return slices.Clone(a.shape) }

// Len is how many elements are made.
func (a *DistArray[T]) Len() int { return len(a.keys) }

// At is an element, if it is there: a point query.
func (a *DistArray[T]) At(index ...int64) (x T, ok bool) {
	i, ok := a.find(index)
	if ok {
		x = a.values[i]
	}
	return x, ok
}

// Set puts another in place of an element, and reports whether there was one.
func (a *DistArray[T]) Set(x T, index ...int64) bool {
	i, ok := a.find(index)
	if ok {
		a.values[i] = x
	}
	return ok
}

func (a *DistArray[T]) find(index []int64) (int, bool) {
	k, err := key(a.shape, index)
	if err != nil {
		return 0, false
	}
	return slices.BinarySearch(a.keys, k)
}

// Where are the elements with an index, in which [Every] stands for any: a set query. They come in
// order, and their indices are not to be kept.
func (a *DistArray[T]) Where(index ...int64) iter.Seq2[[]int64, T] {
	return func(yield func([]int64, T) bool) {
		if len(index) != len(a.shape) {
			return
		}
		from, to := a.span(index)
		at := make([]int64, len(a.shape))
		for i := from; i < to; i++ {
			unkey(a.shape, a.keys[i], at)
			if meets(at, index) && !yield(at, a.values[i]) {
				return
			}
		}
	}
}

// span are the places between which elements are that begin with the numbers of an index.
func (a *DistArray[T]) span(index []int64) (from, to int) {
	first, size := int64(0), int64(1)
	fixed := slices.Index(index, Every)
	if fixed < 0 {
		fixed = len(index)
	}
	for d, n := range a.shape {
		if d < fixed {
			first = first*n + index[d]
			continue
		}
		first, size = first*n, size*n
	}
	from, _ = slices.BinarySearch(a.keys, first)
	to, _ = slices.BinarySearch(a.keys, first+size)
	return from, to
}

func meets(at, index []int64) bool {
	for d, x := range index {
		if x != Every && x != at[d] {
			return false
		}
	}
	return true
}

// Row is the memory of the elements that begin with some indices, if they are all there.
func (a *DistArray[T]) Row(index ...int64) []T {
	full := slices.Clone(index)
	n := int64(1)
	for d := len(index); d < len(a.shape); d++ {
		full, n = append(full, Every), n*a.shape[d]
	}
	if len(full) != len(a.shape) {
		return nil
	}
	from, to := a.span(full)
	if int64(to-from) != n {
		return nil
	}
	return a.values[from:to]
}

// Points are the indices of all elements, in order: the iterations of a loop over the array.
func (a *DistArray[T]) Points() [][]int64 {
	points := make([][]int64, len(a.keys))
	flat := make([]int64, len(a.keys)*len(a.shape))
	for i, k := range a.keys {
		points[i] = flat[i*len(a.shape):][:len(a.shape)]
		unkey(a.shape, k, points[i])
	}
	return points
}

// elements are those of an array that is made, and else of its recipe.
func (a *DistArray[T]) elements(yield func([]int64, T) error) ([]int64, error) {
	if !a.made {
		return a.recipe(yield)
	}
	index := make([]int64, len(a.shape))
	for i, k := range a.keys {
		unkey(a.shape, k, index)
		if err := yield(index, a.values[i]); err != nil {
			return nil, err
		}
	}
	return a.shape, nil
}

// Map is an array of what a function makes of each element of another.
func Map[T, U any](a *DistArray[T], f func(index []int64, x T) (U, error)) *DistArray[U] {
	return &DistArray[U]{recipe: func(yield func([]int64, U) error) ([]int64, error) {
		return a.elements(func(index []int64, x T) error {
			y, err := f(index, x)
			if err != nil {
				return err
			}
			return yield(index, y)
		})
	}}
}

// Randomized is an array with the indices of some dimensions in another order, drawn by a seed, so
// that parts of it have about as many elements each.
func Randomized[T any](a *DistArray[T], seed uint64, dims ...int) *DistArray[T] {
	return &DistArray[T]{recipe: func(yield func([]int64, T) error) ([]int64, error) {
		var indices [][]int64 // the shape is known at the end
		var values []T
		shape, err := a.elements(func(index []int64, x T) error {
			indices, values = append(indices, slices.Clone(index)), append(values, x)
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, d := range dims {
			if d < 0 || d >= len(shape) {
				return nil, fmt.Errorf("there is no dimension %d of %d to be put in another order",
					d, len(shape))
			}
			order := rand.New(rand.NewPCG(seed, uint64(d))).Perm(int(shape[d]))
			for _, index := range indices {
				index[d] = int64(order[index[d]])
			}
		}
		for i, index := range indices {
			if err := yield(index, values[i]); err != nil {
				return nil, err
			}
		}
		return shape, nil
	}}
}

// Cell is an element with its index.
type Cell[T any] struct {
	Index []int64
	Value T
}

// GroupBy has the elements that have the same index in a dimension in one: an array of one
// dimension, which is made at once. Indices that no element has are not there.
func GroupBy[T any](a *DistArray[T], dim int) (*DistArray[[]Cell[T]], error) {
	groups := map[int64][]Cell[T]{}
	shape, err := a.elements(func(index []int64, x T) error {
		if dim < 0 || dim >= len(index) {
			return fmt.Errorf("there is no dimension %d of %d to group by", dim, len(index))
		}
		groups[index[dim]] = append(groups[index[dim]], Cell[T]{slices.Clone(index), x})
		return nil
	})
	if err != nil {
		return nil, err
	}
	g := &DistArray[[]Cell[T]]{recipe: func(yield func([]int64, []Cell[T]) error) ([]int64,
		error) {
		for k, cells := range groups {
			if err := yield([]int64{k}, cells); err != nil {
				return nil, err
			}
		}
		return []int64{shape[dim]}, nil
	}}
	return g, g.Make(nil)
}
