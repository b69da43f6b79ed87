package images

import (
	"fmt"
	"image"
	"math/rand/v2"
	"slices"
)

// Whole is the set with every image held out: for the evaluation of what was trained
// on other data. Nothing can be trained on it.
func (s *Set) Whole() *Set {
	w := *s
	w.train, w.heldOut, w.whole = files{}, both{s.heldOut, s.train}, true
	w.Info.HeldOut = w.heldOut.len()
	return &w
}

// Labelled is the set with the labels of a model's classes, by their names: class i of
// them has the label i+1. Kinds that are none of them are an error.
func (s *Set) Labelled(classes []string) (*Set, error) {
	w := *s
	w.labels = nil
	for _, name := range s.ClassNames {
		i := slices.Index(classes, name)
		if i < 0 {
			return nil, fmt.Errorf("images of %s, which is none of the %d kinds that the model "+
				"knows: give those alone", name, len(classes))
		}
		w.labels = append(w.labels, i+1)
	}
	return &w, nil
}

// label is the label of a kind.
func (s *Set) label(kind int) int {
	if s.labels == nil {
		return kind + 1
	}
	return s.labels[kind]
}

// both is two parts, one behind the other.
type both struct{ first, second part }

func (b both) len() int { return b.first.len() + b.second.len() }

// at is the part that has an image, and its number there.
func (b both) at(i int) (part, int) {
	if n := b.first.len(); i >= n {
		return b.second, i - n
	}
	return b.first, i
}

func (b both) kind(i int) int {
	p, i := b.at(i)
	return p.kind(i)
}

func (b both) paint(dst *image.RGBA, i int, rng *rand.Rand) {
	p, i := b.at(i)
	p.paint(dst, i, rng)
}
