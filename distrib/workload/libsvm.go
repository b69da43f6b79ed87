package workload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// The most that a line of a file may have, a vector, and a set of classes.
const (
	maxLine     = 16 << 20
	maxFeatures = 1 << 26
	maxClasses  = 1 << 16
)

// ReadLIBSVM reads samples in LIBSVM's format: a line is a label and pairs index:value
// with ascending indices. Labels and indices begin at 1, as LIBSVM writes
// them; files with a 0 among their labels, or their indices, begin at 0 there. like, if it
// is not nil, is the training set of a test set: what it begins with, how many features it
// has and how many classes holds for both.
func ReadLIBSVM(r io.Reader, like *Samples) (*Samples, error) {
	return readLIBSVM(r, like, false)
}

// ReadBinary is [ReadLIBSVM] of two classes, whose labels are 0 and 1, or -1 and 1; also 1 and 2,
// of which 2 is a click.
func ReadBinary(r io.Reader, like *Samples) (*Samples, error) {
	s, err := readLIBSVM(r, like, true)
	switch {
	case err != nil:
		return nil, err
	case s.Classes > 2:
		return nil, fmt.Errorf("%d classes: want two, 0 and 1, or -1 and 1", s.Classes)
	}
	s.Classes = 2
	return s, nil
}

// ReadTargets is [ReadLIBSVM] of labels that are numbers, not classes.
func ReadTargets(r io.Reader, like *Samples) (*Samples, error) {
	return scanLIBSVM(r, like, libsvm{targets: true})
}

func readLIBSVM(r io.Reader, like *Samples, binary bool) (*Samples, error) {
	return scanLIBSVM(r, like, libsvm{binary: binary})
}

func scanLIBSVM(r io.Reader, like *Samples, p libsvm) (*Samples, error) {
	p.s = &Samples{start: []int32{0}, first: [2]int32{1, 1}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	number := 0
	for lines.Scan() {
		number++
		if err := p.line(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", number+1, err)
	}
	return p.finish(like)
}

type libsvm struct {
	s          *Samples
	most, last int32
	binary     bool // there are two classes, and the first may be called -1
	minus      bool // it is
	zero       bool // or 0
	targets    bool // labels are numbers
}

func (p *libsvm) line(b []byte) error {
	if at := bytes.IndexByte(b, '#'); at >= 0 {
		b = b[:at]
	}
	words := bytes.Fields(b)
	if len(words) == 0 {
		return nil
	}
	label, err := strconv.ParseFloat(string(words[0]), 64)
	if p.targets {
		if err != nil || math.IsNaN(label) || math.IsInf(label, 0) {
			return fmt.Errorf("label %.20q is no number", words[0])
		}
		p.s.target, label = append(p.s.target, label), 1
	}
	if p.binary && label == -1 {
		label, p.minus = 0, true
	} else {
		p.zero = p.zero || label == 0
	}
	if err != nil || label != math.Trunc(label) || label < 0 || label >= maxClasses {
		return fmt.Errorf("label %.20q is no class: want 0 to %d", words[0], maxClasses-1)
	}
	p.last = -1
	for _, w := range words[1:] {
		if err := p.pair(w); err != nil {
			return err
		}
	}
	p.s.first[0], p.most = min(p.s.first[0], int32(label)), max(p.most, int32(label))
	p.s.end(int32(label))
	return nil
}

func (p *libsvm) pair(w []byte) error {
	left, right, ok := bytes.Cut(w, []byte(":"))
	index, err := strconv.ParseUint(string(left), 10, 31)
	value, bad := strconv.ParseFloat(string(right), 32)
	switch {
	case !ok || err != nil || bad != nil || math.IsNaN(value) || math.IsInf(value, 0):
		return fmt.Errorf("%.40q is no index:value", w)
	case index > maxFeatures:
		return fmt.Errorf("index %d is more than %d", index, maxFeatures)
	case int32(index) <= p.last:
		return fmt.Errorf("index %d comes after %d: want ascending ones", index, p.last)
	}
	p.last = int32(index)
	p.s.first[1] = min(p.s.first[1], p.last)
	p.s.Features = max(p.s.Features, int(p.last)+1)
	p.s.index, p.s.value = append(p.s.index, p.last), append(p.s.value, float32(value))
	return nil
}

// finish makes labels and indices begin at 0.
func (p *libsvm) finish(like *Samples) (*Samples, error) {
	s := p.s
	if s.Len() == 0 {
		return nil, errors.New("no samples")
	}
	if p.minus && p.zero {
		return nil, errors.New("labels -1 and 0: want two classes, 0 and 1, or -1 and 1")
	}
	if p.binary && like == nil && p.most <= 1 {
		s.first[0] = 0 // though there may be clicks alone
	}
	s.minus = p.minus
	if like != nil {
		if s.first[0] < like.first[0] || s.first[1] < like.first[1] {
			return nil, errors.New("begins at 0, and the training set at 1")
		}
		s.first, s.minus = like.first, like.minus
	}
	s.Classes = int(p.most-s.first[0]) + 1
	s.Features = max(0, s.Features-int(s.first[1])) // there may be labels alone
	for i := range s.label {
		s.label[i] -= s.first[0]
	}
	for i := range s.index {
		s.index[i] -= s.first[1]
	}
	if like == nil {
		return s, nil
	}
	if s.Classes > like.Classes || s.Features > like.Features {
		return nil, fmt.Errorf("%d classes and %d features, and the training set has %d and %d",
			s.Classes, s.Features, like.Classes, like.Features)
	}
	s.Classes, s.Features = like.Classes, like.Features
	return s, nil
}
