package orion

import (
	"bufio"
	"fmt"
	"io"
	"math"

	"github.com/gomem/gomem/internal/libm"
	"github.com/gomem/gomem/internal/regular"
)

// Uniform is a number from 0 to below 1, drawn by a seed and an index: whoever draws it, and in
// whatever order, has the same.
func Uniform(seed, index uint64) float64 {
	return float64(float64(mix(mix(seed)^index)>>11) * 0x1p-53)
}

// normal is a number of mean 0 and variance 1, drawn likewise (G. Box and M. Muller, 1958).
func normal(seed, index uint64) float64 {
	u, v := 1-Uniform(seed, 2*index), Uniform(seed, 2*index+1)
	return math.Sqrt(-2*libm.Log(u)) * libm.Cos(2*math.Pi*v)
}

// Rand is an array of numbers from 0 to below 1, drawn by a seed.
func Rand(seed uint64, shape ...int64) *DistArray[float32] { return drawn(seed, Uniform, shape) }

// Randn is an array of numbers of mean 0 and variance 1, drawn by a seed.
func Randn(seed uint64, shape ...int64) *DistArray[float32] { return drawn(seed, normal, shape) }

func drawn(seed uint64, draw func(seed, index uint64) float64, shape []int64) *DistArray[float32] {
	return &DistArray[float32]{recipe: func(yield func([]int64, float32) error) ([]int64, error) {
		a := Array{"of drawn numbers", shape, 4}
		if err := a.check(); err != nil {
			return nil, err
		}
		index := make([]int64, len(shape))
		for k := range a.Elements() {
			unkey(shape, k, index)
			if err := yield(index, float32(draw(seed, uint64(k)))); err != nil {
				return nil, err
			}
		}
		return shape, nil
	}}
}

// maxLine is the most bytes of a line.
const maxLine = 16 << 20

// TextFile is an array of what the lines of a file say, by a parser of the caller's: an index, and
// what is there; no index of a line without an element. The shape is the least that has all, or
// the one that is given. Errors name the line.
func TextFile[T any](path string, parse func(line string) (index []int64, x T, err error),
	shape ...int64) *DistArray[T] {
	return &DistArray[T]{recipe: func(yield func([]int64, T) error) ([]int64, error) {
		f, err := regular.Open(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, regular.Bare(err))
		}
		defer f.Close()
		least, err := parseLines(f, parse, yield)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(shape) > 0 {
			return shape, nil
		}
		return least, nil
	}}
}

// parseLines yields the elements of lines, and is the least shape that has them all.
func parseLines[T any](r io.Reader, parse func(string) ([]int64, T, error),
	yield func([]int64, T) error) (shape []int64, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	number := 0
	for lines.Scan() {
		number++
		index, x, err := parse(lines.Text())
		if err == nil && index != nil {
			shape, err = covering(shape, index)
			if err == nil {
				err = yield(index, x)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", number+1, err)
	}
	return shape, nil
}

// covering is a shape that has another element.
func covering(shape, index []int64) ([]int64, error) {
	if shape == nil {
		shape = make([]int64, len(index))
	}
	if len(index) != len(shape) {
		return nil, fmt.Errorf("element %v of an array of %d dimensions", index, len(shape))
	}
	for d, x := range index {
		if x < 0 || x >= maxSize {
			return nil, fmt.Errorf("element %v: want indices from 0 to below %d", index,
				int64(maxSize))
		}
		shape[d] = max(shape[d], x+1)
	}
	return shape, nil
}
