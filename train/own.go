package train

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/internal/tensor"
)

// Workers that are kept in step between steps have some variables each their own: the state
// of optimizers and, on their own between averages, weights too. Worker 0's have the
// checkpoint's names; of the others, those that differ from worker 0's are saved beside them
// under the rank, and read back by it: "w/momentum@2". They travel to worker 0, which alone
// need have the disk.

// ownName is the name in a checkpoint of a variable of worker rank's own.
func ownName(name string, rank int) string {
	if rank == 0 {
		return name
	}
	return name + "@" + strconv.Itoa(rank)
}

// parseOwn reads what ownName made of a rank from 1.
func parseOwn(s string) (name string, rank int, ok bool) {
	i := strings.LastIndexByte(s, '@')
	if i < 0 {
		return "", 0, false
	}
	rank, err := strconv.Atoi(s[i+1:])
	return s[:i], rank, err == nil && rank > 0 && ownName(s[:i], rank) == s
}

// common are the entries but for those of workers other than the first, of variables that
// are there.
func (o *opened) common() []safetensors.Entry {
	types := map[string]tensor.Type{}
	for _, e := range o.file.Entries() {
		types[e.Name] = e.Type
	}
	return slices.DeleteFunc(slices.Clone(o.file.Entries()), func(e safetensors.Entry) bool {
		name, rank, ok := parseOwn(e.Name)
		t, there := types[name]
		return ok && there && rank < o.Workers && t.Equal(e.Type)
	})
}

// ownOf gives a worker what is its own; if there are more workers than there were, those
// beyond have that of the ones whose ranks are less by the number that there were.
func (o *opened) ownOf(r *run) error {
	rank := r.Parallel.Rank % max(o.Workers, 1)
	for _, e := range o.file.Entries() {
		name, of, ok := parseOwn(e.Name)
		if !ok || of != rank {
			continue
		}
		for _, v := range r.session.Variables() {
			if v.Node.Name != name {
				continue
			}
			if err := o.setFrom(r.session, v, e.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// differs reports whether workers have variables of their own that are to be saved. Where
// they come and go they have not: whoever goes on has all of one of them.
func (r *run) differs() bool {
	return r.Parallel != nil && r.Parallel.Between != nil && r.elastic() == nil
}

// saveAll saves what all workers have, if worker 0 has to save.
func (r *run) saveAll(ctx context.Context, due bool) error {
	if !r.differs() {
		if r.leads() && due {
			return r.save(nil)
		}
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	says, err := r.agree(ctx, []byte{flag(r.leads() && due)})
	if err != nil || !slices.Equal(says[0], []byte{1}) {
		return err
	}
	list, err := r.collect(ctx)
	if err != nil {
		return err
	}
	if r.leads() {
		return r.save(list)
	}
	for _, x := range list {
		if _, err := r.fetch(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// foreign is a variable of another worker than the first.
type foreign struct {
	v    graph.Value
	rank int
}

// collect is what other workers have otherwise than worker 0.
func (r *run) collect(ctx context.Context) (list []foreign, err error) {
	vars := r.session.Variables()
	sums, err := checksums(r.session, vars)
	if err != nil {
		return nil, err
	}
	all, err := r.agree(ctx, sums)
	if err != nil {
		return nil, err
	}
	for i, v := range vars {
		for rank, said := range all {
			at, end := 4*i, 4*i+4
			if len(said) < end {
				return nil, fmt.Errorf("worker %d has other variables", rank)
			}
			if !slices.Equal(said[at:end], all[0][at:end]) {
				list = append(list, foreign{v, rank})
			}
		}
	}
	return list, nil
}

// fetch is another worker's value, which all take part in bringing.
func (r *run) fetch(ctx context.Context, x foreign) ([]byte, error) {
	value := tensor.New(x.v.Type())
	mine := r.Parallel.Rank == x.rank
	if mine {
		var err error
		if value, err = r.session.Get(x.v); err != nil {
			return nil, err
		}
	}
	for part := range slices.Chunk(value.Data, portion) {
		var says []byte
		if mine {
			says = part
		}
		told, err := r.agree(ctx, says)
		if err != nil {
			return nil, err
		}
		if len(told[x.rank]) != len(part) {
			return nil, fmt.Errorf("worker %d gives %d bytes of variable %s, %d are expected",
				x.rank, len(told[x.rank]), x.v.Node.Name, len(part))
		}
		copy(part, told[x.rank])
	}
	return value.Data, nil
}
