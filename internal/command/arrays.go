package command

import (
	"context"
	"io"

	"github.com/gomem/gomem/data/arrays"
	"github.com/gomem/gomem/models"
)

// readArrays reads the arrays that a network of a file learns from.
func readArrays(_ context.Context, w io.Writer, c *trainCmd) error {
	set, err := openArrays(w, c.spec())
	c.given = given{arrays: set}
	return err
}

// openArrays reads the arrays of a spec.
func openArrays(w io.Writer, spec string) (*arrays.Set, error) {
	if spec == "" {
		return nil, usagef("--data is missing: want npz:FILE, npz:DIR or tensors:FILE, with an " +
			"array for each input and for the target")
	}
	defer notice(w, "gomem: reading "+spec)()
	set, err := arrays.Open(spec)
	return set, asSpec(err)
}

// loadArrays makes batches of arrays.
func loadArrays(_ context.Context, _ io.Writer, c *trainCmd, m *models.Model) (dataset, error) {
	return arrayLoader(c.given.arrays, m, arrays.LoaderOptions{Seed: c.Seed,
		EvalShare: float64(c.EvalShare)})
}

// arrays are named arrays, all of them where the model was trained on others.
func (l *evalLoading) arrays() (dataset, error) {
	set, err := openArrays(l.w, l.spec)
	if err != nil {
		return dataset{}, err
	}
	return arrayLoader(set, l.model, arrays.LoaderOptions{Seed: l.Seed, EvalShare: l.share,
		Whole: l.whole(dataset{id: set.SHA256})})
}

// arrayLoader makes batches of a model's inputs.
func arrayLoader(set *arrays.Set, m *models.Model, o arrays.LoaderOptions) (dataset, error) {
	for i, v := range m.Data {
		c := arrays.Column{Name: v.Node.Name, Type: v.Type()}
		if i == len(m.Data)-1 && m.Classes > 0 {
			c.Below = m.Classes
		}
		o.Columns = append(o.Columns, c)
	}
	batches, err := arrays.NewLoader(set, o)
	return dataset{batches: batches, about: set.Spec + ": " + set.String(), id: set.SHA256}, err
}
