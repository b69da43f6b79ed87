package workload

import (
	"errors"
	"fmt"
)

// Shape is what samples are like from which a model has learnt, and so what those are like that it
// predicts. Files say it of themselves, so that a model has to remember it.
type Shape struct {
	Features int   `json:"features"`
	Classes  int   `json:"classes"`
	Numbers  bool  `json:"numbers,omitempty"`   // as labels, and no classes
	Label    int32 `json:"first_label"`         // what a file calls the first class
	Index    int32 `json:"first_index"`         // and the first feature
	Minus    bool  `json:"minus_one,omitempty"` // it calls the first of two classes -1
}

// Shape is what these samples are like.
func (s *Samples) Shape() Shape {
	return Shape{s.Features, s.Classes, s.target != nil, s.first[0], s.first[1], s.minus}
}

// Check reports a shape that no samples have.
func (s Shape) Check() error {
	if s.Features < 1 || s.Features > maxFeatures+1 || s.Classes < 1 || s.Classes > maxClasses ||
		int64(s.Features)*int64(s.Classes) > maxWeights || s.Index < 0 || s.Index > maxFeatures {
		return fmt.Errorf("no samples have %d features from %d on, and %d classes", s.Features,
			s.Index, s.Classes)
	}
	return nil
}

// Empty is no samples, of this shape.
func (s Shape) Empty() *Samples {
	e := &Samples{Features: s.Features, Classes: s.Classes, start: []int32{0},
		first: [2]int32{s.Label, s.Index}, minus: s.Minus}
	if s.Numbers {
		e.target = []float64{}
	}
	return e
}

// Class is what a file calls a class.
func (s Shape) Class(class int) int {
	if s.Minus && class == 0 {
		return -1
	}
	return class + int(s.Label)
}

// Sample reads a line of LIBSVM's format, whose label is any number: the features of a sample, and
// their values. !ok if the line has none, as a comment.
func (s Shape) Sample(line string) (index []int32, value []float32, ok bool, err error) {
	p := libsvm{s: &Samples{start: []int32{0}}, targets: true}
	if err := p.line([]byte(line)); err != nil {
		return nil, nil, false, err
	}
	for i, j := range p.s.index {
		if j < s.Index {
			return nil, nil, false, errors.New("feature 0, and the model's begin at 1")
		}
		if p.s.index[i] = j - s.Index; int(j-s.Index) >= s.Features {
			return nil, nil, false, fmt.Errorf("feature %d, and the model has %d to %d", j, s.Index,
				int(s.Index)+s.Features-1)
		}
	}
	return p.s.index, p.s.value, p.s.Len() > 0, nil
}
