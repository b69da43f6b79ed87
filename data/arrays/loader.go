package arrays

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
)

// Column is an array that a batch has a part of: Type is that of a batch, whose axis 0 counts
// examples.
type Column struct {
	Name string
	Type tensor.Type
	// Below, unless it is 0, is what all numbers have to be below, and no number negative: labels.
	Below int
}

// LoaderOptions of [NewLoader].
type LoaderOptions struct {
	Columns   []Column // of a batch, in this order; at least one
	Seed      uint64
	EvalShare float64 // of the examples, that is held out; 0: a tenth
	Whole     bool    // all are held out, for an evaluation of other data than was trained on
}

// NewLoader prepares batches. Every column has to be an array, and every array a column. The error
// is a *[data.Error].
func NewLoader(s *Set, o LoaderOptions) (data.Batches, error) {
	b, err := s.loader(o)
	if err != nil {
		return nil, &data.Error{Spec: s.Spec, Err: err}
	}
	return b, nil
}

func (s *Set) loader(o LoaderOptions) (data.Batches, error) {
	columns, err := s.Columns(o.Columns)
	if err != nil {
		return nil, err
	}
	first := o.Columns[0].Type
	if first.Rank() == 0 {
		return nil, fmt.Errorf("column %q of a batch is %s, which counts no examples",
			o.Columns[0].Name, first)
	}
	rows, batch := columns[0].Type.Size(0), first.Size(0)
	for i, c := range o.Columns {
		if c.Type.Rank() == 0 || c.Type.Size(0) != batch {
			return nil, fmt.Errorf("column %q of a batch is %s: want axis 0 to count the %d "+
				"examples of %q", c.Name, c.Type, batch, o.Columns[0].Name)
		}
		if have := columns[i].Type.Size(0); have != rows {
			return nil, fmt.Errorf("array %q has %d examples, and %q %d", o.Columns[0].Name, rows,
				c.Name, have)
		}
	}
	e := data.ExamplesOptions{Batch: batch, Seed: o.Seed, HeldOut: -1}
	if o.Whole {
		all, err := data.FromTensors(e, columns...)
		return whole{all}, err
	}
	if e.HeldOut = 0; o.EvalShare != 0 {
		if e.HeldOut, err = data.Share(rows, o.EvalShare); err != nil {
			return nil, err
		}
	}
	return data.FromTensors(e, columns...)
}

// whole is examples all of which are held out.
type whole struct{ all *data.Examples }

func (whole) StepsPerEpoch() int         { return 0 }
func (whole) Train(int) (b data.Batch)   { return b }
func (w whole) HeldOutBatches() int      { return w.all.StepsPerEpoch() }
func (w whole) HeldOut(i int) data.Batch { return w.all.Train(i) }

// Columns are the arrays that some columns name, in the columns' element types. Their axes have the
// columns' sizes, but for axis 0. A column without an array is an error, and an array without a
// column.
func (s *Set) Columns(columns []Column) ([]tensor.View, error) {
	if len(columns) == 0 {
		return nil, errors.New("no columns are asked for")
	}
	var out []tensor.View
	for _, c := range columns {
		v, ok := s.Get(c.Name)
		if !ok {
			return nil, fmt.Errorf("there is no array %q, %s: there are %s", c.Name, c.Type, s)
		}
		converted, err := c.of(v)
		if err != nil {
			return nil, fmt.Errorf("array %q is %s: %w", c.Name, v.Type, err)
		}
		out = append(out, converted)
	}
	for _, a := range s.Arrays {
		if !slices.ContainsFunc(columns, func(c Column) bool { return c.Name == a.Name }) {
			return nil, fmt.Errorf("array %q is for nothing: want %s alone", a.Name,
				listed(columns))
		}
	}
	return out, nil
}

// listed names columns with their types.
func listed(columns []Column) (text string) {
	for i, c := range columns {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %s", c.Name, c.Type)
	}
	return text
}

// of is an array as the column has it.
func (c Column) of(v tensor.View) (tensor.View, error) {
	have, want := v.Type.Sizes(), c.Type.Sizes()
	if len(have) != len(want) || len(want) > 0 && !slices.Equal(have[1:], want[1:]) {
		return v, fmt.Errorf("want the axes of %s, of which the first counts examples", c.Type)
	}
	d := c.Type.DType
	if !exact(v, d) {
		return v, fmt.Errorf("not all of it is in %s as it is: convert it, as by "+
			".astype('%s') of NumPy", d, numpyName(d))
	}
	if v = v.As(d); c.Below > 0 && d == tensor.I32 {
		for i, n := range v.I32() {
			if n < 0 || int(n) >= c.Below {
				return v, fmt.Errorf("number %d of it is %d: want labels from 0 to %d", i, n,
					c.Below-1)
			}
		}
	}
	return v, nil
}

// exact reports whether all elements are the same numbers in another type. Where integers do not
// fit, they become others, of which the former are not made again.
func exact(v tensor.View, d tensor.DType) bool {
	from := v.Type.DType
	if !from.Integer() || !d.Integer() {
		return from == d || from == tensor.F16 && d == tensor.F32
	}
	return from == d || bytes.Equal(v.To(d).To(from).Data, v.Data)
}

// numpyName is what NumPy calls a type.
func numpyName(d tensor.DType) string {
	bits := strconv.Itoa(int(8 * d.Size()))
	switch {
	case d == tensor.Bool || d == tensor.BF16:
		return d.String()
	case d.Floating():
		return "float" + bits
	case d.String()[0] == 'u':
		return "uint" + bits
	}
	return "int" + bits
}
